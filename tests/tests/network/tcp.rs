//! TCP: the token, the addresses, and unauthenticated connections.

use std::{fs, os::unix::fs::MetadataExt, time::Duration};

use heeler_client::{CancelOptions, ConnectOptions, Error, Spawn, v1::ErrorReason};
use heeler_tests::{
    Daemon, Refusal, disk::files_below, grpcurl, process::descriptors, skipped, tcp, v1::*, within,
};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tonic::{Code, Request, metadata::MetadataValue};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use heeler_proto::v1::background_tasks_client::BackgroundTasksClient;

const LOOPBACK: &str = "tcp:127.0.0.1:0";

fn with_header<T>(message: T, value: &str) -> Request<T> {
    let mut request = Request::new(message);
    let value = MetadataValue::try_from(value).unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

fn refused<T: std::fmt::Debug>(answer: Result<T, tonic::Status>) -> Refusal {
    Refusal::expect(answer, Code::Unauthenticated, "TOKEN_REFUSED")
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_is_accepted_with_the_right_token_only() {
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let token = daemon.token();
    let mut raw = BackgroundTasksClient::new(daemon.tcp_channel().await);
    let refusal = refused(raw.list(ListRequest::default()).await);
    let message = &refusal.message;
    assert!(message.contains("authorization: Bearer"), "{message}");
    let (start, end) = token.split_at(token.len() - 1);
    let other = if end == "0" { "1" } else { "0" };
    for wrong in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer x".to_owned(),
        format!("Basic {token}"),
        token.clone(),
        format!("Bearer {start}"),
        format!("Bearer {start}{other}"),
        format!("Bearer {token}0"),
        format!("Bearer {}", token.to_uppercase().repeat(2)),
    ] {
        let refusal = refused(raw.list(with_header(ListRequest::default(), &wrong)).await);
        assert!(!format!("{refusal:?}").contains(start), "{refusal:?}");
    }
    let right = format!("Bearer {token}");
    raw.list(with_header(ListRequest::default(), &right))
        .await
        .unwrap();
    // Each call needs the token: the connection does not remember it.
    refused(raw.list(ListRequest::default()).await);
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_the_token_spawn_watch_and_shutdown_are_refused() {
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let mut raw = BackgroundTasksClient::new(daemon.tcp_channel().await);
    refused(raw.spawn(heeler_tests::argv(["true"])).await);
    refused(raw.watch_events(WatchEventsRequest::default()).await);
    refused(raw.shutdown(ShutdownRequest::default()).await);
    assert_eq!(daemon.api().await.all().await, []);
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_needs_the_token_too() {
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let mut health = HealthClient::new(daemon.tcp_channel().await);
    let request = HealthCheckRequest::default();
    refused(health.check(request.clone()).await);
    let right = format!("Bearer {}", daemon.token());
    health.check(with_header(request, &right)).await.unwrap();
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_token_file_is_private_and_kept_across_a_restart() {
    let mut daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let found = fs::metadata(daemon.token_file()).unwrap();
    assert_eq!(found.mode() & 0o7777, 0o600);
    let token = daemon.token();
    assert!(token.len() >= 43, "fewer than 256 bits");
    daemon.kill9();
    fs::remove_file(daemon.path("server.log")).unwrap();
    daemon.restart().await;
    assert_eq!(daemon.token(), token);
    let options = ConnectOptions::new().token(&token);
    let client = tcp::client(&daemon.remote_address().await, options).await;
    client
        .unwrap()
        .list_page(ListRequest::default())
        .await
        .unwrap();
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_token_of_another_daemon_is_refused() {
    let one = Daemon::builder().also_on(LOOPBACK).start().await;
    let two = Daemon::builder().also_on(LOOPBACK).start().await;
    let options = ConnectOptions::new().token_file(one.token_file());
    let client = tcp::client(&two.remote_address().await, options)
        .await
        .unwrap();
    let error = client.list_page(ListRequest::default()).await.unwrap_err();
    assert!(error.is(ErrorReason::TokenRefused), "{error:?}");
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn listening_beyond_loopback_needs_tls() {
    let daemon = Daemon::builder().prepare();
    let own = tcp::own_address().map(|ip| format!("tcp:{ip}:0"));
    if own.is_none() {
        skipped("no address other than loopback");
    }
    let open = ["tcp:0.0.0.0:0", "tcp:[::]:0"].map(str::to_owned);
    for address in open.into_iter().chain(own) {
        let state = daemon.file("state");
        let result = daemon
            .heeler([
                "serve",
                "--state-dir",
                &state,
                "--listen",
                LOOPBACK,
                "--listen",
                &address,
            ])
            .await;
        assert_eq!(result.code, Some(1), "{address}: {result:?}");
        for part in [address.as_str(), "--tls-cert", "--tls-key", "127.0.0.1"] {
            assert!(result.stderr.contains(part), "{address}: {result:?}");
        }
        assert!(
            !result.stderr.contains("listening"),
            "{address}: {result:?}"
        );
    }
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_loopback_address_works_without_tls() {
    for address in ["tcp:[::1]:0", "tcp:localhost:0", "tcp:127.9.8.7:0"] {
        if address.contains("::1") && std::net::TcpListener::bind("[::1]:0").is_err() {
            skipped("no IPv6");
            continue;
        }
        let daemon = Daemon::builder().also_on(address).start().await;
        let options = ConnectOptions::new().token(daemon.token());
        let client = tcp::client(&daemon.remote_address().await, options)
            .await
            .unwrap();
        client.list_page(ListRequest::default()).await.unwrap();
    }
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_readable_token_file_or_a_taken_port_is_reported_and_nothing_starts() {
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let taken = daemon.remote_address().await;
    let other = Daemon::builder().prepare();
    let state = other.file("state");
    let serve = ["serve", "--state-dir", state.as_str(), "--listen"];
    let result = other.heeler([&serve[..], &[&taken]].concat()).await;
    assert_eq!(result.code, Some(1), "{result:?}");
    assert!(result.stderr.contains(&taken), "{result:?}");
    let secret = "s".repeat(64);
    fs::write(other.token_file(), &secret).unwrap();
    std::os::unix::fs::chown(other.token_file(), None, None).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(other.token_file(), open).unwrap();
    let result = other.heeler([&serve[..], &[LOOPBACK]].concat()).await;
    assert_eq!(result.code, Some(1), "{result:?}");
    assert!(
        result.stderr.contains(&other.file("state/token")),
        "{result:?}"
    );
    assert!(!result.stderr.contains(&secret), "{result:?}");
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_actor_over_tcp_has_no_uid_and_no_pid() {
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let options = ConnectOptions::new().token(daemon.token());
    let client = tcp::client(&daemon.remote_address().await, options)
        .await
        .unwrap();
    let task = client.spawn(Spawn::argv(["sleep", "60"])).await.unwrap();
    let result = task
        .cancel(CancelOptions::force().actor("me"))
        .await
        .unwrap();
    let stop = result.task.unwrap().stop.unwrap();
    let actor = stop.actor.unwrap();
    assert_eq!(
        (actor.name.as_str(), actor.uid, actor.pid),
        ("me", None, None)
    );
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_reaches_a_daemon_without_a_socket() {
    let mut daemon = Daemon::builder().arg("--listen").arg(LOOPBACK).prepare();
    daemon.launch();
    let address = daemon.remote_address().await;
    let options = ConnectOptions::new().token_file(daemon.token_file());
    let client = tcp::client(&address, options).await.unwrap();
    let script = format!("{} ps --json", heeler_tests::binary::heeler().display());
    let task = client.spawn(Spawn::shell(script)).await.unwrap();
    let ended = within("its end", task.wait()).await.unwrap();
    assert_eq!(ended.state(), TaskState::Completed, "{ended:?}");
    client.shutdown(ShutdownRequest::default()).await.unwrap();
    daemon.ended();
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_command_finds_the_token_by_option_variable_or_state_directory() {
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let address = daemon.remote_address().await;
    let file = daemon.token_file();
    let ps = ["ps", "--json", "--addr", address.as_str()];
    let result = daemon.heeler(ps).await;
    assert_eq!(result.code, Some(1), "{result:?}");
    assert!(result.stderr.contains("\"TOKEN_REFUSED\""), "{result:?}");

    let option = ["--token-file", file.to_str().unwrap()];
    daemon.heeler(ps.iter().chain(&option)).await.ok();
    for (name, value) in [
        ("HEELER_TOKEN_FILE", file.clone()),
        ("HEELER_STATE_DIR", daemon.state_dir()),
    ] {
        let mut command = daemon.cli(["ps", "--json"]);
        command.env(name, value).env("HEELER_ADDR", &address);
        heeler_tests::cli::CommandResult::of(command).await.ok();
    }
    let missing = ["--token-file", "/nowhere/token"];
    let result = daemon.heeler(ps.iter().chain(&missing)).await;
    assert_eq!(result.code, Some(2), "{result:?}");
    assert!(result.stderr.contains("/nowhere/token"), "{result:?}");
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_over_tcp_returns_after_the_port_is_free() {
    let mut daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let address = daemon.remote_address().await;
    let file = daemon.file("state/token");
    daemon
        .heeler(["shutdown", "--addr", &address, "--token-file", &file])
        .await
        .ok();
    std::net::TcpListener::bind(address.strip_prefix("tcp:").unwrap()).unwrap();
    daemon.ended();
}

/// N2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn grpcurl_is_served_with_the_token_and_refused_without() {
    let Some(program) = grpcurl::program() else {
        return;
    };
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let address = format!("127.0.0.1:{}", daemon.port().await);
    let method = "heeler.v1.BackgroundTasks/List";
    let run = async |header: &str| {
        let mut command = tokio::process::Command::new(&program);
        command.args(["-plaintext", "-H", header, &address, method]);
        within("grpcurl", command.kill_on_drop(true).output())
            .await
            .unwrap()
    };
    let right = run(&format!("authorization: Bearer {}", daemon.token())).await;
    assert!(right.status.success(), "{right:?}");
    let wrong = run("authorization: Bearer nonsense").await;
    let stderr = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        !wrong.status.success() && stderr.contains("Unauthenticated"),
        "{stderr}"
    );
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn silent_and_garbled_connections_are_bounded_and_block_no_caller() {
    const CONNECTIONS: usize = 600;
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let port = daemon.port().await;
    let options = ConnectOptions::new().token(daemon.token());
    let client = tcp::client(&daemon.remote_address().await, options.clone())
        .await
        .unwrap();
    client.list_page(ListRequest::default()).await.unwrap();
    let before = descriptors(daemon.pid());
    let mut open = Vec::new();
    for number in 0..CONNECTIONS {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        match number % 3 {
            0 => {}
            1 => drop(connection.write_all(b"PRI * HTTP/2.0\r\n").await),
            _ => drop(connection.write_all(&[0xff; 512]).await),
        }
        open.push(connection);
    }
    client.list_page(ListRequest::default()).await.unwrap();
    let next = tcp::client(&daemon.remote_address().await, options)
        .await
        .unwrap();
    within("a new caller", next.list_page(ListRequest::default()))
        .await
        .unwrap();
    heeler_tests::eventually("unauthenticated connections to be closed", || {
        descriptors(daemon.pid()) < before + 300
    })
    .await;
}

/// N4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_token_appears_in_no_log_event_or_other_file() {
    let daemon = Daemon::builder()
        .also_on(LOOPBACK)
        .env("HEELER_LOG", "trace")
        .start()
        .await;
    let token = daemon.token();
    let options = ConnectOptions::new().token(&token);
    let client = tcp::client(&daemon.remote_address().await, options)
        .await
        .unwrap();
    let task = client.spawn(Spawn::shell("env")).await.unwrap();
    within("its end", task.wait()).await.unwrap();
    let almost = ConnectOptions::new().token(format!("{token}0"));
    let other = tcp::client(&daemon.remote_address().await, almost)
        .await
        .unwrap();
    let error = other.list_page(ListRequest::default()).await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
    assert!(!format!("{error:?} {error}").contains(&token));
    assert!(!format!("{:?}", daemon.api().await.history().await).contains(&token));
    assert!(daemon.log().contains("TRACE"), "not logged at trace level");
    let contains_token = |bytes: &[u8]| {
        bytes
            .windows(token.len())
            .any(|part| part == token.as_bytes())
    };
    for path in files_below(&daemon.path("")) {
        if path.is_file() && path != daemon.token_file() {
            let bytes = fs::read(&path).unwrap();
            assert!(!contains_token(&bytes), "{}", path.display());
        }
    }
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_over_tcp_during_a_restart_is_retried() {
    let address = format!(
        "tcp:127.77.{}.{}:7117",
        std::process::id() >> 8 & 0xff,
        std::process::id() & 0xff
    );
    let mut daemon = Daemon::builder().also_on(&address).start().await;
    let options = ConnectOptions::new().token(daemon.token());
    let client = tcp::client(&address, options).await.unwrap();
    let client = client.retry_for(Duration::from_secs(30));
    let task = client.spawn(Spawn::argv(["sleep", "60"])).await.unwrap();
    daemon.kill9();
    let call = tokio::spawn(async move { task.get().await });
    daemon.restart().await;
    let found = within("an answer", call).await.unwrap().unwrap();
    assert_eq!(found.state(), TaskState::Running);
}
