//! TLS: certificates, authorities, and incomplete handshakes.

use std::{fs, path::Path};

use heeler_client::{ConnectOptions, Error, Spawn, v1::ErrorReason};
use heeler_tests::{
    Authority, Daemon, authority::Certified, grpcurl, process::descriptors, tcp, v1::*, within,
};
use tokio::{io::AsyncWriteExt, net::TcpStream};

/// Starts a daemon that listens on every interface, with a certificate for this name.
async fn daemon(authority: &Authority, name: &str) -> Daemon {
    let Certified { certificate, key } = authority.certify(name);
    Daemon::builder()
        .also_on("tcp:0.0.0.0:0")
        .arg("--tls-cert")
        .arg(certificate)
        .arg("--tls-key")
        .arg(key)
        .start()
        .await
}

fn trusting(daemon: &Daemon, authority: &Path) -> ConnectOptions {
    let options = ConnectOptions::new().token_file(daemon.token_file());
    options.tls_ca(authority)
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_trusts_the_authority_is_served_over_tls() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "authority");
    let daemon = daemon(&authority, "127.0.0.1").await;
    assert!(daemon.remote_address().await.starts_with("tls:0.0.0.0:"));
    let address = format!("tls:127.0.0.1:{}", daemon.port().await);
    let options = trusting(&daemon, &authority.certificate);
    let client = tcp::client(&address, options.clone()).await.unwrap();
    let task = client.spawn(Spawn::shell("echo hello")).await.unwrap();
    let ended = within("its end", task.wait()).await.unwrap();
    assert_eq!(ended.state(), TaskState::Completed);

    let wrong = options.token("x".repeat(64));
    let client = tcp::client(&address, wrong).await.unwrap();
    let error = client.list_page(ListRequest::default()).await.unwrap_err();
    assert!(error.is(ErrorReason::TokenRefused), "{error:?}");
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_certificate_of_another_authority_or_for_another_name_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "authority");
    let other = Authority::new(dir.path(), "other");
    let daemon = daemon(&authority, "localhost").await;
    let port = daemon.port().await;
    let options = trusting(&daemon, &authority.certificate);
    let right = tcp::client(&format!("tls:localhost:{port}"), options.clone()).await;
    right
        .unwrap()
        .list_page(ListRequest::default())
        .await
        .unwrap();
    for (host, authority) in [
        ("127.0.0.1", &authority.certificate),
        ("localhost", &other.certificate),
    ] {
        let options = trusting(&daemon, authority);
        let error = tcp::client(&format!("tls:{host}:{port}"), options)
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_plain_connection_to_a_tls_port_is_not_served() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "authority");
    let daemon = daemon(&authority, "127.0.0.1").await;
    let options = ConnectOptions::new().token(daemon.token());
    let address = format!("tcp:127.0.0.1:{}", daemon.port().await);
    let served = match tcp::client(&address, options).await {
        Ok(client) => {
            let client = client.retry_for(std::time::Duration::ZERO);
            client.list_page(ListRequest::default()).await.is_ok()
        }
        Err(_) => false,
    };
    assert!(!served);
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn unusable_certificate_files_are_reported_and_nothing_starts() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "authority");
    let good = authority.certify("one");
    let other = authority.certify("two");
    let path = |name: &str| dir.path().join(name);
    fs::write(path("garbage"), "-----BEGIN PRIVATE KEY-----\nsecret\n").unwrap();
    fs::write(path("empty"), "").unwrap();
    let daemon = Daemon::builder().prepare();
    for (certificate, key, reason) in [
        (path("missing"), good.key.clone(), "missing"),
        (good.certificate.clone(), path("missing"), "missing"),
        (path("empty"), good.key.clone(), "no certificate"),
        (good.certificate.clone(), path("empty"), "no private key"),
        (good.certificate.clone(), path("garbage"), "no private key"),
        (good.key.clone(), good.key.clone(), "no certificate"),
        (
            good.certificate.clone(),
            other.key.clone(),
            "cannot be used",
        ),
    ] {
        let mut command = daemon.cli(["serve", "--listen", "tcp:0.0.0.0:0"]);
        command.arg("--tls-cert").arg(&certificate);
        command.arg("--tls-key").arg(&key);
        let result = heeler_tests::cli::CommandResult::of(command).await;
        assert_eq!(result.code, Some(1), "{reason}: {result:?}");
        assert!(result.stderr.contains(reason), "{reason}: {result:?}");
        assert!(!result.stderr.contains("secret"), "{result:?}");
        assert!(!result.stderr.contains("listening"), "{result:?}");
    }
    let half = ["serve", "--listen", "tcp:0.0.0.0:0", "--tls-cert", "x"];
    let bare = ["serve", "--listen", "tls:127.0.0.1:0"];
    let socket = ["serve", "--tls-cert", "x", "--tls-key", "y"];
    for args in [&half[..], &bare, &socket] {
        let result = daemon.heeler(args).await;
        assert_eq!(result.code, Some(2), "{result:?}");
        assert!(result.stderr.contains("--tls-"), "{result:?}");
    }
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_command_accepts_an_authority_by_option_and_by_variable() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "authority");
    let daemon = daemon(&authority, "127.0.0.1").await;
    let address = format!("tls:127.0.0.1:{}", daemon.port().await);
    let ca = authority.certificate.to_str().unwrap();
    let file = daemon.file("state/token");
    let ps = ["ps", "--json", "--addr", &address, "--token-file", &file];
    daemon.heeler(ps.iter().chain(&["--tls-ca", ca])).await.ok();
    let mut command = daemon.cli(ps);
    command.env("HEELER_TLS_CA", ca);
    heeler_tests::cli::CommandResult::of(command).await.ok();
    let result = daemon.heeler(ps).await;
    assert_eq!(
        result.code,
        Some(4),
        "an authority that the system does not trust: {result:?}"
    );
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn grpcurl_is_served_over_tls() {
    let Some(program) = grpcurl::program() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "authority");
    let daemon = daemon(&authority, "localhost").await;
    let mut command = tokio::process::Command::new(&program);
    command.arg("-cacert").arg(&authority.certificate);
    command.args(["-H", &format!("authorization: Bearer {}", daemon.token())]);
    command.arg(format!("localhost:{}", daemon.port().await));
    command.arg("heeler.v1.BackgroundTasks/List");
    let output = within("grpcurl", command.kill_on_drop(true).output())
        .await
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn incomplete_handshakes_block_no_caller() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new(dir.path(), "authority");
    let daemon = daemon(&authority, "127.0.0.1").await;
    let port = daemon.port().await;
    let before = descriptors(daemon.pid());
    let mut open = Vec::new();
    for number in 0..600 {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        match number % 3 {
            0 => {}
            // The first bytes of a record that never completes.
            1 => drop(connection.write_all(&[22, 3, 1, 2, 0, 1]).await),
            _ => drop(connection.write_all(b"GET / HTTP/1.1\r\n\r\n").await),
        }
        open.push(connection);
    }
    let options = trusting(&daemon, &authority.certificate);
    let client = tcp::client(&format!("tls:127.0.0.1:{port}"), options)
        .await
        .unwrap();
    within("a caller", client.list_page(ListRequest::default()))
        .await
        .unwrap();
    heeler_tests::eventually("unauthenticated connections to be closed", || {
        descriptors(daemon.pid()) < before + 300
    })
    .await;
}
