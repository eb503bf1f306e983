//! A server that dies while it gives input to a task.

use heeler_tests::{SpawnRequestExt as _, argv, client::input::at, v1::*, within};

use crate::{at_each_point, doomed, restart_after};

at_each_point! { a_write_interrupted:
    a_write_that_was_not_given => "input.before-give", ();
    a_write_that_was_given_and_not_answered => "input.given", ();
    a_second_write_that_was_given_and_not_answered => "input.given:2", ();
}

/// I2: the writer repeats the write at its offset.
async fn a_write_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let api = daemon.api().await;
    let id = api.start(argv(["cat"]).with_input()).await.id;
    let write = |offset, data: &str, close| WriteInputRequest {
        writer_id: "w".into(),
        close,
        ..at(&id, offset, data)
    };
    let writes = [write(0, "one ", false), write(4, "two", true)];
    for write in writes.clone() {
        if api.write_input(write).await.is_err() {
            break;
        }
    }
    restart_after(&mut daemon, point).await;
    let api = daemon.api().await;
    for write in writes {
        let end = write.offset() + write.data.len() as u64;
        let (close, answer) = (write.close, api.write_input(write).await);
        match answer {
            Ok(answer) => assert!(answer.offset >= end && answer.closed >= close),
            // It had all of its input, and has ended.
            Err(refused) => assert_eq!(heeler_tests::Refusal::of(&refused).reason, "TASK_FINISHED"),
        }
    }
    within("the end", api.ended(&id)).await;
    assert_eq!(api.output(&id).await, b"one two");
    follower.assert_whole(&api).await;
}
