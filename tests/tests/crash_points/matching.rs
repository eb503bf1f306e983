//! A match, and a line that makes a task ready: from the line that was found to its record.

use heeler_tests::{
    SpawnRequestExt as _, millis,
    process::Gate,
    v1::{ready_policy::Probe, *},
    watch::{is_of, types},
};

use crate::{at_each_point, doomed, restart_after};

/// The number of lines whose event was recorded at the death.
type Recorded = usize;

at_each_point! { a_match_interrupted:
    before_the_first_record => "match.found", 0;
    before_the_second_record => "match.found:2", 1;
    before_the_first_is_committed => "journal.before-commit:3", 0;
    after_the_first_is_committed => "journal.committed:3", 1;
    after_the_first_record => "match.recorded", 1;
    after_the_second_record => "match.recorded:2", 2;
}

/// R3, O16
async fn a_match_interrupted(point: &str, recorded: Recorded) {
    let (mut daemon, follower) = doomed(point).await;
    let [first, second] = ["first", "second"].map(|name| daemon.gate(name));
    let script = format!(
        "gate {} bytes 5000 print hit-1 gate {} print hit-2 exit 7",
        daemon.file("first"),
        daemon.file("second")
    );
    let mut request = daemon.script(&script);
    let pattern = OutputPattern {
        name: "hit".into(),
        regex: "^hit-".into(),
        cooldown: Some(millis(0)),
        ..OutputPattern::default()
    };
    request.spec.as_mut().unwrap().output = Some(OutputPolicy {
        patterns: vec![pattern],
        ..OutputPolicy::default()
    });
    let id = daemon.api().await.start(request).await.id;
    first.open();
    let mut second = Some(second);
    if point.ends_with(":2") {
        let is_told = |event: &TaskEvent| event.r#type() == TaskEventType::Matched;
        let mut watch = daemon.api().await.watch_after(0).await;
        watch.until(is_told).await;
        second.take().into_iter().for_each(Gate::open);
    }
    restart_after(&mut daemon, point).await;
    let api = daemon.api().await;
    let known = api.history_of(&id).await;
    let is_match = |event: &&TaskEvent| event.r#type() == TaskEventType::Matched;
    assert!(known.iter().filter(is_match).count() >= recorded);
    second.into_iter().for_each(Gate::open);
    api.ended(&id).await;

    let received = follower.up_to(api.revision().await).await;
    assert_eq!(received.faults, Vec::<String>::new());
    assert!(received.events.iter().all(|event| is_of(event, &id)));
    let matches = received
        .events
        .iter()
        .filter_map(|event| event.r#match.as_ref());
    let lines: Vec<_> = matches
        .flat_map(|of| &of.lines)
        .map(|line| line.offset)
        .collect();
    assert_eq!(lines, [5000, 5006], "each line once, in order");
    let types = types(&received.events);
    assert_eq!(types.first(), Some(&TaskEventType::Created));
    assert_eq!(types.last(), Some(&TaskEventType::Ended));
}

at_each_point! { a_line_of_readiness_interrupted:
    before_ready_is_recorded => "ready.found", 0;
    before_ready_is_committed => "journal.before-commit:3", 0;
    after_ready_is_committed => "journal.committed:3", 1;
}

/// R3, Y1
async fn a_line_of_readiness_interrupted(point: &str, recorded: Recorded) {
    let (mut daemon, follower) = doomed(point).await;
    let gate = daemon.gate("up");
    let script = format!("gate {} print up forever", daemon.file("up"));
    let probe = Probe::Pattern("^up$".to_owned());
    let request = daemon.script(&script).with_ready(probe);
    let id = daemon.api().await.start(request).await.id;
    gate.open();
    restart_after(&mut daemon, point).await;
    let api = daemon.api().await;
    let is_ready = |event: &&TaskEvent| event.r#type() == TaskEventType::Ready;
    let known = api.history_of(&id).await;
    assert!(known.iter().filter(is_ready).count() >= recorded);
    let is_told = |event: &TaskEvent| event.r#type() == TaskEventType::Ready;
    api.watch_after(0).await.until(is_told).await;
    api.kill(&id).await;
    let received = follower.up_to(api.revision().await).await;
    assert_eq!(received.faults, Vec::<String>::new());
    assert_eq!(
        received.events.iter().filter(is_ready).count(),
        1,
        "told once"
    );
}
