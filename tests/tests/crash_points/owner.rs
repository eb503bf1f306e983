//! Deaths between the record of a session's owner and its end.

use heeler_tests::{SpawnRequestExt as _, argv, millis, request::wait_for_session, v1::*};

use super::{at_each_point, doomed, restart_after};

at_each_point! { the_end_of_a_session_interrupted:
    after_its_owner_is_recorded => "owner.recorded", ();
    after_its_tasks_are_cancelled => "owner.tasks-cancelled", ();
}

/// E10, R3: the session ends once, whether its owner was told that it is one or not.
async fn the_end_of_a_session_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let api = daemon.api().await;
    let sleeper = || argv(["sleep", "3600"]).with_session("s");
    let task = api.start(sleeper()).await;
    let request = WatchEventsRequest {
        own_session: Some(SessionOwnership {
            session_id: "s".into(),
            reattach_window: Some(millis(200)),
        }),
        ..WatchEventsRequest::default()
    };
    drop(api.watch(request).await);
    restart_after(&mut daemon, point).await;
    let api = daemon.api().await;
    api.wait(wait_for_session("s")).await.unwrap();
    let task = api.task(&task.id).await;
    assert_eq!(task.end_reason(), EndReason::ClientDisconnected);
    // The row is gone in the end: the session has no owner then.
    loop {
        let last = api.start(sleeper()).await;
        let request = ListSessionsRequest::default();
        let listed = api.list_sessions(request).await.unwrap().sessions;
        api.kill(&last.id).await;
        if listed
            .first()
            .is_some_and(|session| session.owners.is_none())
        {
            break;
        }
    }
    follower.assert_whole(&api).await;
    daemon.no_processes().await;
}
