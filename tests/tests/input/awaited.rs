//! Tasks that wait for input.

use heeler_tests::{Daemon, Setting, SpawnRequestExt as _, argv, in_each_setting, millis, v1::*};

in_each_setting! {
    a_silent_task_that_reads_its_stdin_or_terminal_needs_input,
}

/// I1, I5
async fn a_silent_task_that_reads_its_stdin_or_terminal_needs_input(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let silent = argv(["cat"]).with_input_after(millis(50));
    for request in [silent.clone(), silent.with_terminal(80, 24)] {
        let task = api.start(request).await;
        let mut watch = api.watch_after(task.revision).await;
        let event = watch.event().await;
        assert_eq!(event.r#type(), TaskEventType::NeedsInput, "{event:?}");
        api.type_in(&task.id, "here\n").await;
        super::output_with(&api, &task.id, "here").await;
        api.kill(&task.id).await;
    }
}

/// I5: by the flag of the command.
#[tokio::test]
async fn the_command_says_when_a_task_is_looked_at() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = daemon
        .spawned(&["--notify-input-after", "50ms", "--", "cat"])
        .await;
    let mut watch = api.watch_after(0).await;
    watch.until_of(&id, TaskEventType::NeedsInput).await;
    api.kill(&id).await;
}
