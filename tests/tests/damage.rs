//! Whatever is wrong with what a server finds: a clear message, the least possible loss, no panic
//! and no silent new beginning.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::Path,
    process::{Output, Stdio},
};

use heeler_tests::{
    Api, Daemon, Fixture, Process, eventually, setting,
    task_file::{BLOCKS, IDENTITY, LEADER_EXIT, START, TREE_END, boot_id, reseal, shim_of},
    v1::{outcome::Result as Ended, *},
};
use nix::sys::signal::Signal::SIGKILL;

const NEVER: &str = "panicked";

/// A task that has ended with this code and this output while no server was there.
async fn ended_unseen(daemon: &mut Daemon, code: i32) -> Fixture {
    let gate = daemon.gate("gate");
    let script = format!(
        "print before gate {} print after exit {code}",
        daemon.file("gate")
    );
    let fixture = daemon.run(&daemon.api().await, &script).await;
    let shim = shim_of(&fixture.process("leader").await);
    daemon.kill9();
    gate.open();
    eventually("the shim's end", || !shim.is_alive()).await;
    fixture
}

/// A task whose processes are gone, and left no record of their end.
async fn killed_unseen(daemon: &mut Daemon) -> Fixture {
    let fixture = daemon.run(&daemon.api().await, "forever").await;
    let leader = fixture.process("leader").await;
    let shim = shim_of(&leader);
    daemon.kill9();
    kill(&[shim, leader]).await;
    fixture
}

async fn kill(processes: &[Process]) {
    for process in processes {
        process.signal(SIGKILL);
        eventually("a death", || !process.is_alive()).await;
    }
}

fn result(task: &BackgroundTask) -> &Ended {
    task.outcome.as_ref().unwrap().result.as_ref().unwrap()
}

fn lost_why(task: &BackgroundTask) -> &str {
    assert_eq!(task.state(), TaskState::Lost, "{task:?}");
    match result(task) {
        Ended::Unknown(unknown) => &unknown.detail,
        other @ (Ended::ExitCode(_) | Ended::Signal(_) | Ended::SpawnError(_)) => {
            panic!("known: {other:?}")
        }
    }
}

/// A task as a list has it, which needs nothing of its file.
async fn listed(api: &Api, id: &str) -> BackgroundTask {
    let mut all = api.all().await;
    all.retain(|task| task.id == id);
    all.remove(0)
}

/// That the server goes on as ever.
async fn assert_sound(daemon: &Daemon, api: &Api) {
    let task = api.start(daemon.script("print fine exit 3")).await;
    let task = api.ended(&task.id).await;
    assert_eq!(result(&task), &Ended::ExitCode(3));
    assert!(!daemon.log().contains(NEVER), "{}", daemon.log());
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_flipped_bit_costs_one_record_and_is_told() {
    for (at, record) in [
        (IDENTITY + 20, "identity"),
        (START + 9, "start"),
        (LEADER_EXIT + 16, "leader's exit"),
        (TREE_END + 1023, "tree's end"),
    ] {
        let mut daemon = Daemon::start().await;
        let fixture = ended_unseen(&mut daemon, 6).await;
        daemon.edit(&fixture.id, |file| file[at] ^= 0x10);
        daemon.restart().await;
        let api = daemon.api().await;
        let task = api.task(&fixture.id).await;
        if record == "leader's exit" {
            assert!(lost_why(&task).contains("cannot be read"), "{task:?}");
        } else {
            assert_eq!(result(&task), &Ended::ExitCode(6), "{record}");
        }
        assert_eq!(api.lines(&fixture.id).await, ["before", "after"]);
        let line = daemon.logged("cannot be read").await;
        assert!(
            line.contains(record) && line.contains(&fixture.id),
            "{line}"
        );
        assert_sound(&daemon, &api).await;
    }
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_file_that_was_cut_short_costs_what_was_cut() {
    for (len, exit, lines) in [
        (BLOCKS + 24 + 20 + 7, Some(6), vec!["before"]),
        (BLOCKS + 3, Some(6), vec![]),
        // In the middle of the record of the tree's end, then in that of the leader's.
        (TREE_END + 30, Some(6), vec![]),
        (LEADER_EXIT + 30, None, vec![]),
        (START, None, vec![]),
        (1, None, vec![]),
        (0, None, vec![]),
    ] {
        let mut daemon = Daemon::start().await;
        let fixture = ended_unseen(&mut daemon, 6).await;
        daemon.edit(&fixture.id, |file| file.truncate(len));
        daemon.restart().await;
        let api = daemon.api().await;
        let task = api.task(&fixture.id).await;
        match exit {
            Some(code) => assert_eq!(result(&task), &Ended::ExitCode(code), "at {len}"),
            None => assert!(lost_why(&task).contains("was gone"), "{task:?}"),
        }
        assert_eq!(api.lines(&fixture.id).await, lines, "at {len}");
        assert_sound(&daemon, &api).await;
    }
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_damaged_block_of_output_costs_itself() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("bytes 200000")).await;
    let whole = api.ended(&task.id).await.output_bytes;
    assert_eq!(whole, 200_000);
    daemon.kill9();
    daemon.edit(&task.id, |file| file[BLOCKS + 65_536 + 8] ^= 1);
    daemon.restart().await;
    let api = daemon.api().await;
    let (mut offset, mut got) = (0, 0);
    while offset < whole {
        let answer = api
            .read(heeler_tests::api::read(&task.id, offset))
            .await
            .unwrap();
        assert!(answer.next_offset > offset, "it goes on");
        offset = answer.next_offset;
        let sizes = answer
            .chunks
            .iter()
            .map(|chunk| heeler_tests::api::raw(chunk).len());
        got += sizes.sum::<usize>() as u64;
    }
    assert!(
        got < whole && got >= whole - 65_536,
        "{got} of {whole} bytes"
    );
}

/// R4: also where nothing is left behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_that_is_gone_is_counted_and_passed_over() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(daemon.script("bytes 5")).await.id;
    api.ended(&id).await;
    daemon.edit(&id, |file| file.truncate(BLOCKS));
    let read = async |offset| {
        let request = heeler_tests::api::read(&id, offset);
        api.read(request).await.unwrap()
    };
    for offset in [0, 3] {
        let answer = read(offset).await;
        assert!(answer.complete && answer.chunks.is_empty());
        assert_eq!((answer.next_offset, answer.end_offset), (5, 5));
    }
    let beyond = read(9).await;
    assert_eq!((beyond.next_offset, beyond.end_offset), (9, 5));
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_tasks_file_is_neither_believed_nor_touched() {
    let mut daemon = Daemon::start().await;
    let other = daemon
        .api()
        .await
        .start(daemon.script("print other exit 0"))
        .await;
    daemon.api().await.ended(&other.id).await;
    let fixture = killed_unseen(&mut daemon).await;
    let foreign = fs::read(daemon.task_file(&other.id)).unwrap();
    fs::write(daemon.task_file(&fixture.id), &foreign).unwrap();
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert!(lost_why(&task).contains("another task's"), "{task:?}");
    let events = api.history_of(&fixture.id).await;
    assert_eq!(
        events.last().unwrap().task.as_ref().unwrap().output_bytes,
        0
    );
    assert_eq!(fs::read(daemon.task_file(&fixture.id)).unwrap(), foreign);
    assert_sound(&daemon, &api).await;
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_no_file_where_a_task_file_should_be_costs_that_task_alone() {
    let put: [fn(&Path); 4] = [
        |path| fs::create_dir(path).unwrap(),
        |path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRUSR).unwrap(),
        |path| drop(UnixListener::bind(path).unwrap()),
        |path| fs::write(path, [0xA5; 9000]).unwrap(),
    ];
    for put in put {
        let mut daemon = Daemon::start().await;
        let fixture = killed_unseen(&mut daemon).await;
        let file = daemon.task_file(&fixture.id);
        fs::remove_file(&file).unwrap();
        put(&file);
        daemon.restart().await;
        let api = daemon.api().await;
        lost_why(&listed(&api, &fixture.id).await);
        assert!(file.exists(), "it is left as it is");
        assert_sound(&daemon, &api).await;
    }
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_strange_among_the_task_files_is_named_and_left_alone() {
    let mut daemon = Daemon::start().await;
    let task = daemon.api().await.start(daemon.script("print mine")).await;
    daemon.api().await.ended(&task.id).await;
    let mine = fs::read(daemon.task_file(&task.id)).unwrap();
    daemon.kill9();
    let note = daemon.path("state/tasks/a/note.txt");
    fs::write(&note, "hello").unwrap();
    let (stranger, empty) = ("shell-aaaaaaaaaa", "shell-bbbbbbbbba");
    fs::write(daemon.task_file(stranger), &mine).unwrap();
    fs::write(daemon.task_file(empty), "").unwrap();
    fs::create_dir(daemon.task_file("shell-cccccccccc")).unwrap();
    daemon.restart().await;
    let line = daemon.logged("not a task's").await;
    assert!(line.contains("note.txt"), "{line}");
    let line = daemon.logged("set aside").await;
    assert!(line.contains(stranger), "{line}");
    let line = daemon.logged("it is not a file").await;
    assert!(line.contains("shell-cccccccccc"), "{line}");
    eventually("an empty file goes", || !daemon.task_file(empty).exists()).await;
    assert_eq!(fs::read_to_string(note).unwrap(), "hello");
    let kept = daemon.path("state/strays").join(stranger);
    assert_eq!(fs::read(kept).unwrap(), mine);
    assert!(!daemon.task_file(stranger).exists());
    let api = daemon.api().await;
    assert_eq!(api.lines(&task.id).await, ["mine"]);
    assert_sound(&daemon, &api).await;
}

/// R5: a whole record that names this boot is believed, and so the test for another boot can fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_record_with_the_right_boot_and_checksum_is_not_another_boots() {
    let mut daemon = Daemon::start().await;
    let fixture = killed_unseen(&mut daemon).await;
    daemon.edit(&fixture.id, |file| {
        assert_eq!(file[24..40], boot_id(), "the boot id, where it stands");
        reseal(file, IDENTITY);
    });
    daemon.restart().await;
    let task = daemon.api().await.task(&fixture.id).await;
    assert!(lost_why(&task).contains("its shim was gone"), "{task:?}");
}

/// What a server says that does not start.
async fn refused(daemon: &Daemon) -> String {
    let mut serve = daemon.command();
    serve
        .arg("serve")
        .arg("--state-dir")
        .arg(daemon.state_dir());
    let serve = tokio::process::Command::from(serve)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output: Output = heeler_tests::within("the server ends", serve)
        .await
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{told}");
    assert!(!told.contains(NEVER), "{told}");
    told
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_lock_that_is_no_file_is_named() {
    let daemon = Daemon::builder().prepare();
    fs::create_dir_all(daemon.path("state/lock")).unwrap();
    let told = refused(&daemon).await;
    assert!(
        told.contains("lock") && told.contains(daemon.state_dir().to_str().unwrap()),
        "{told}"
    );
    assert!(!daemon.path("state/journal.db").exists(), "nothing begins");
}

/// R6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_address_that_is_no_socket_is_named_and_left_alone() {
    let daemon = Daemon::builder().prepare();
    fs::create_dir_all(daemon.socket().parent().unwrap()).unwrap();
    fs::write(daemon.socket(), "mine").unwrap();
    let told = refused(&daemon).await;
    assert!(told.contains(daemon.socket().to_str().unwrap()), "{told}");
    assert_eq!(fs::read_to_string(daemon.socket()).unwrap(), "mine");
    fs::remove_file(daemon.socket()).unwrap();
    fs::create_dir(daemon.socket()).unwrap();
    let told = refused(&daemon).await;
    assert!(told.contains(daemon.socket().to_str().unwrap()), "{told}");
    assert!(daemon.socket().is_dir());
}

/// R6: a crash leaves its socket behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_socket_on_which_nobody_answers_is_replaced() {
    let mut daemon = Daemon::start().await;
    daemon.kill9();
    assert!(daemon.socket().exists());
    daemon.restart().await;
}

/// S10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_state_directory_that_is_open_to_others_is_closed_and_that_is_told() {
    let mut daemon = Daemon::start().await;
    daemon.kill9();
    fs::set_permissions(daemon.state_dir(), PermissionsExt::from_mode(0o755)).unwrap();
    daemon.restart().await;
    let mode = fs::metadata(daemon.state_dir()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    daemon.logged("was open to others").await;
}

/// S10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_state_directory_of_another_user_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        return heeler_tests::skipped("only root can give a directory away");
    }
    let daemon = Daemon::builder().prepare();
    fs::create_dir(daemon.state_dir()).unwrap();
    let nobody = Some(setting::NOBODY);
    std::os::unix::fs::chown(daemon.state_dir(), nobody, nobody).unwrap();
    let told = refused(&daemon).await;
    assert!(told.contains("belongs to uid 65534"), "{told}");
    assert_eq!(fs::read_dir(daemon.state_dir()).unwrap().count(), 0);
}

/// S10, R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_journal_of_another_user_is_refused_and_left_as_it_is() {
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
    give(setting::NOBODY);
    let told = refused(&daemon).await;
    assert!(told.contains(journal.to_str().unwrap()), "{told}");
    assert!(told.contains("it belongs to uid 65534"), "{told}");
    assert!(fs::read(&journal).unwrap() == before, "left as it is");
    give(0);
    daemon.restart().await;
    assert_eq!(daemon.api().await.lines(&task.id).await, ["mine"]);
}

/// R4: for whom permissions count.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_permission_is_named_and_mended_permission_is_enough() {
    let name = concat!(
        module_path!(),
        "::no_permission_is_named_and_mended_permission_is_enough"
    );
    if setting::reruns_as_nobody(name) {
        return;
    }
    let mut daemon = Daemon::start().await;
    let fixture = ended_unseen(&mut daemon, 6).await;
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    let tasks = daemon.path("state/tasks");
    mode(&tasks, 0);
    let told = refused(&daemon).await;
    assert!(told.contains("task directories"), "{told}");
    mode(&tasks, 0o700);
    // One file only: that task waits, the others go on.
    let file = daemon.task_file(&fixture.id);
    mode(&file, 0);
    daemon.restart().await;
    let api = daemon.api().await;
    daemon.logged("its task file cannot be used now").await;
    assert_eq!(listed(&api, &fixture.id).await.state(), TaskState::Running);
    assert_sound(&daemon, &api).await;
    mode(&file, 0o600);
    let task = api.ended(&fixture.id).await;
    assert_eq!(result(&task), &Ended::ExitCode(6));
}
