//! A restart on failure: from the end of an attempt to the start of the next one.

use heeler_tests::{millis, shell, v1::*, watch::types};

use crate::{at_each_point, doomed, restart_after};

at_each_point! { a_restart_interrupted:
    before_the_failure_is_recorded => "end.seen", ();
    before_the_intent_is_committed => "journal.before-commit:3", ();
    after_the_intent_is_recorded => "restart.recorded", ();
    before_the_order => "restart.before-order", ();
    after_the_order => "restart.ordered", ();
    before_the_second_intent => "end.seen:2", ();
    before_the_second_order => "restart.before-order:2", ();
}

/// R3
async fn a_restart_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    // The server must not die before it has answered.
    let (file, answered) = (daemon.file("count"), daemon.path("answered"));
    let script = format!(
        "until test -e {}; do sleep 0.01; done
        echo >> {file}; n=$(wc -l < {file}); echo attempt $n; test $n = 3 || exit 1",
        answered.display()
    );
    let mut request = shell(script);
    request.spec.as_mut().unwrap().restart = Some(RestartPolicy {
        delay: Some(millis(50)),
        ..RestartPolicy::default()
    });
    let id = daemon.api().await.start(request).await.id;
    std::fs::write(answered, "").unwrap();
    restart_after(&mut daemon, point).await;
    let api = daemon.api().await;
    let ended = api.ended(&id).await;
    assert_eq!(ended.state(), TaskState::Completed, "{ended:?}");
    assert_eq!(
        daemon.line_count("count"),
        3,
        "no attempt twice, none forgotten"
    );
    assert_eq!(api.output(&id).await, b"attempt 1\nattempt 2\nattempt 3\n");
    let received = follower.up_to(api.revision().await).await;
    assert_eq!(received.faults, Vec::<String>::new());
    use TaskEventType::{Created, Ended, Restarted, Restarting, Started};
    let expected = [
        Created, Started, Restarting, Restarted, Restarting, Restarted, Ended,
    ];
    assert_eq!(types(&received.events), expected);
    daemon.no_processes().await;
}
