//! Configurations with which a daemon does not start.

use std::{fs, os::unix::fs::PermissionsExt};

use heeler_tests::Daemon;

/// H7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn urls_that_cannot_be_sent_to_are_refused_at_the_start() {
    let daemon = Daemon::builder().prepare();
    let state = daemon.path("other-state");
    for (url, problem) in [
        (
            "https://ntfy.example/topic",
            "cannot send events to ntfy.example: webhooks go to loopback addresses only",
        ),
        ("http://10.0.0.1/", "--allow-webhook-hosts"),
        ("ftp://127.0.0.1/", "does not begin with http://"),
        ("127.0.0.1:80", "does not begin with http://"),
        ("http://user:pass@127.0.0.1/", "contains a user"),
        ("http://127.0.0.1/pass word", "malformed"),
    ] {
        let stderr = daemon.refused_start(&state, &["--webhook", url]).await;
        assert!(stderr.contains(problem), "{url}: {stderr}");
        assert!(!stderr.contains("pass"), "{url}: {stderr}");
    }
}

/// H7, N4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_of_urls_that_others_may_read_is_refused() {
    let daemon = Daemon::builder().prepare();
    let (state, urls) = (daemon.path("other-state"), daemon.path("urls"));
    fs::write(&urls, "http://127.0.0.1:9/secret").unwrap();
    fs::set_permissions(&urls, PermissionsExt::from_mode(0o644)).unwrap();
    let args = ["--webhook-file", urls.to_str().unwrap()];
    let stderr = daemon.refused_start(&state, &args).await;
    assert!(stderr.contains("is not private"), "{stderr}");
    assert!(!stderr.contains("9/secret"), "{stderr}");
}

/// H7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_secret_that_others_may_read_is_refused() {
    let daemon = Daemon::builder().prepare();
    let (state, secret) = (daemon.path("other-state"), daemon.path("secret"));
    fs::write(&secret, "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o644)).unwrap();
    let secret = secret.to_str().unwrap();
    let args = [
        "--webhook",
        "http://127.0.0.1:9/",
        "--webhook-secret-file",
        secret,
    ];
    let stderr = daemon.refused_start(&state, &args).await;
    assert!(stderr.contains("is not private"), "{stderr}");
    // The receivers know it: a new one of the daemon's would make every signature wrong.
    assert!(stderr.contains("give it to the receivers"), "{stderr}");
}
