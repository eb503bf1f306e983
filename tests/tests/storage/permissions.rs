//! Owners, modes and kinds of files in the state directory and at the address.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use heeler_tests::{Daemon, containment, outcome::exit_code, v1::TaskState};

use super::{
    assert_sound, refused,
    task_file::{ended_unobserved, listed},
};

/// R4: the directory is locked, and the file only names the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_directory_or_a_pipe_in_place_of_the_lock_file_does_not_matter() {
    for make in [
        (|path| fs::create_dir(path).unwrap()) as fn(&Path),
        |path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
    ] {
        let mut daemon = Daemon::builder().prepare();
        fs::create_dir_all(daemon.state_dir()).unwrap();
        make(&daemon.path("state/lock"));
        daemon.restart().await;
        let api = daemon.api().await;
        let id = api.start(daemon.script("print there")).await.id;
        api.ended(&id).await;
    }
}

/// R6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_address_that_is_not_a_socket_is_refused_by_name_and_not_changed() {
    let daemon = Daemon::builder().prepare();
    fs::create_dir_all(daemon.socket().parent().unwrap()).unwrap();
    fs::write(daemon.socket(), "mine").unwrap();
    let stderr = refused(&daemon).await;
    assert!(
        stderr.contains(daemon.socket().to_str().unwrap()),
        "{stderr}"
    );
    assert_eq!(fs::read_to_string(daemon.socket()).unwrap(), "mine");
    fs::remove_file(daemon.socket()).unwrap();
    fs::create_dir(daemon.socket()).unwrap();
    let stderr = refused(&daemon).await;
    assert!(
        stderr.contains(daemon.socket().to_str().unwrap()),
        "{stderr}"
    );
    assert!(daemon.socket().is_dir());
}

/// R6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_socket_left_by_a_crash_is_replaced() {
    let mut daemon = Daemon::start().await;
    daemon.kill9();
    assert!(daemon.socket().exists());
    daemon.restart().await;
}

/// N1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_state_directory_open_to_others_is_closed_and_logged() {
    let mut daemon = Daemon::start().await;
    daemon.kill9();
    fs::set_permissions(daemon.state_dir(), PermissionsExt::from_mode(0o755)).unwrap();
    daemon.restart().await;
    let mode = fs::metadata(daemon.state_dir()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    daemon.logged("was accessible to other users").await;
}

/// N1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_state_directory_of_another_user_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        return heeler_tests::skipped("only root can give a directory away");
    }
    let daemon = Daemon::builder().prepare();
    fs::create_dir(daemon.state_dir()).unwrap();
    let nobody = Some(containment::NOBODY);
    std::os::unix::fs::chown(daemon.state_dir(), nobody, nobody).unwrap();
    let stderr = refused(&daemon).await;
    assert!(stderr.contains("belongs to uid 65534"), "{stderr}");
    assert_eq!(fs::read_dir(daemon.state_dir()).unwrap().count(), 0);
}

/// N1, R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_journal_of_another_user_is_refused_and_not_changed() {
    if !nix::unistd::geteuid().is_root() {
        return heeler_tests::skipped("only root can give a file away");
    }
    let mut daemon = Daemon::start().await;
    let task = daemon.api().await.start(daemon.script("print mine")).await;
    daemon.api().await.ended(&task.id).await;
    daemon.terminate();
    let journal = daemon.path("state/journal.db");
    let before = fs::read(&journal).unwrap();
    let give = |uid| std::os::unix::fs::chown(&journal, Some(uid), None).unwrap();
    give(containment::NOBODY);
    let stderr = refused(&daemon).await;
    assert!(stderr.contains(journal.to_str().unwrap()), "{stderr}");
    assert!(stderr.contains("it belongs to uid 65534"), "{stderr}");
    assert!(
        fs::read(&journal).unwrap() == before,
        "the journal has changed"
    );
    give(0);
    daemon.restart().await;
    assert_eq!(daemon.api().await.lines(&task.id).await, ["mine"]);
}

/// R4: run as a user to whom permissions apply.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn missing_permission_is_reported_and_restored_permission_is_enough() {
    let name = concat!(
        module_path!(),
        "::missing_permission_is_reported_and_restored_permission_is_enough"
    );
    if containment::reruns_as_nobody(name) {
        return;
    }
    let mut daemon = Daemon::start().await;
    let fixture = ended_unobserved(&mut daemon, 6).await;
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    let tasks = daemon.path("state/tasks");
    mode(&tasks, 0);
    let stderr = refused(&daemon).await;
    assert!(stderr.contains("task directories"), "{stderr}");
    mode(&tasks, 0o700);
    // Without permission on one file, that task waits and the others go on.
    let file = daemon.task_file(&fixture.id);
    mode(&file, 0);
    daemon.restart().await;
    let api = daemon.api().await;
    daemon.logged("cannot use the task file").await;
    assert_eq!(listed(&api, &fixture.id).await.state(), TaskState::Running);
    assert_sound(&daemon, &api).await;
    mode(&file, 0o600);
    let task = api.ended(&fixture.id).await;
    assert_eq!(exit_code(&task), 6);
}
