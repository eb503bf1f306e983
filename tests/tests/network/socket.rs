//! The Unix socket: modes, users, health, deadlines and sizes.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use heeler_tests::{
    Api, Daemon, Refusal, argv, binary, containment::NOBODY, daemon::SERVICE, disk::files_below,
    http2, request::wait, secs, shell, skipped, v1::WaitRequest, within,
};
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// N1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_socket_and_all_state_files_are_private_to_the_user() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("print secret")).await;
    api.ended(&task.id).await;
    assert_eq!(mode(&daemon.socket()), 0o600);
    assert_eq!(mode(daemon.socket().parent().unwrap()), 0o700);
    assert_eq!(mode(&daemon.state_dir()), 0o700);
    for path in files_below(&daemon.state_dir()) {
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
}

/// N1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_user_is_refused_even_if_the_modes_allow_access() {
    if !nix::unistd::geteuid().is_root() {
        return skipped("only root can act as another user");
    }
    let daemon = Daemon::start().await;
    let caller = daemon.path("heeler-caller");
    binary::copy(&binary::sibling("heeler-caller"), &caller);
    for (path, mode) in [
        (daemon.path(""), 0o755),
        (daemon.path("run"), 0o755),
        (daemon.path("run/heeler"), 0o755),
        (daemon.socket(), 0o666),
    ] {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let call = |uid: u32| {
        let mut command = Command::new(&caller);
        command
            .arg(daemon.address())
            .current_dir("/")
            .uid(uid)
            .gid(uid);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(call(0), "listed\n");
    let refused = call(NOBODY);
    assert!(
        refused.starts_with("PermissionDenied FOREIGN_USER"),
        "{refused}"
    );
    assert!(refused.contains("65534"), "{refused}");
    daemon.api().await.server().await;
}

/// N1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_daemon_listens_on_every_address_given() {
    let daemon = Daemon::builder()
        .arg("--listen")
        .arg("unix:{dir}/run/heeler/heeler.sock")
        .arg("--listen")
        .arg("unix:{dir}/deep/own.sock")
        .start()
        .await;
    let task = daemon.api().await.start(daemon.script("exit 0")).await;
    let api = Api::connect(&format!("unix:{}", daemon.file("deep/own.sock")))
        .await
        .unwrap();
    assert_eq!(
        api.ended(&task.id).await.id,
        task.id,
        "another server answered"
    );
    assert_eq!(mode(&daemon.path("deep/own.sock")), 0o600);
    assert_eq!(mode(&daemon.path("deep")), 0o700);
}

/// N1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_is_reported_for_the_server_and_the_service() {
    let daemon = Daemon::start().await;
    let mut health = HealthClient::new(daemon.api().await.channel());
    for service in ["", SERVICE] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service:?}");
    }
    let request = HealthCheckRequest {
        service: "no.such.Service".to_owned(),
    };
    assert_eq!(
        health.check(request).await.unwrap_err().code(),
        tonic::Code::NotFound
    );
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_passed_deadline_is_answered_as_deadline_exceeded() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(argv(["sleep", "60"])).await;
    let request = WaitRequest {
        timeout: Some(secs(60)),
        ..wait([task.id])
    };
    let socket = daemon.socket();
    for timeout in ["1m", "2m", "3m", "10m", "50m", "1n", "0S"] {
        let headers = [("grpc-timeout", timeout)];
        let call = http2::call(&socket, "Wait", &request, &headers);
        let answer = within("an answer", call).await;
        assert_eq!(answer["grpc-status"], "4", "{timeout}: {answer:?}");
    }
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_oversized_request_is_refused_with_the_limit() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = shell("x".repeat(4 << 20));
    let refusal = Refusal::expect(
        api.spawn(request).await,
        Code::OutOfRange,
        "REQUEST_TOO_LARGE",
    );
    let max: usize = refusal.value("max").parse().unwrap();
    assert!(
        refusal.message.contains("larger than") && max < 4 << 20,
        "{refusal:?}"
    );
    let fits = shell("x".repeat(max - 1000));
    let status = api.spawn(fits).await.unwrap_err();
    assert_ne!(Refusal::of(&status).reason, "REQUEST_TOO_LARGE");
    assert_eq!(api.all().await, []);
}
