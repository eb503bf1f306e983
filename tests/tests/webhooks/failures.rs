//! Receivers that are down, fail, do not answer or send elsewhere: nothing is lost, nothing else is delayed.

use heeler_tests::{Api, Receiver, receiver::Answer, shell, v1::TaskEventType, within};

use super::{revisions, sending};

async fn end_tasks(api: &Api, count: usize) {
    for _ in 0..count {
        let id = api.start(shell("true")).await.id;
        api.ended(&id).await;
    }
}

/// H7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_receiver_that_was_down_gets_everything_in_order_and_delays_no_other() {
    let (mut down, up) = (Receiver::down(), Receiver::start());
    let mut daemon = sending("ended", &[&down, &up]).start().await;
    end_tasks(&daemon.api().await, 3).await;
    up.has_accepted(3).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    end_tasks(&api, 2).await;
    let mut ends = api.history().await;
    ends.retain(|event| event.r#type() == TaskEventType::Ended);
    let expected: Vec<u64> = ends.iter().map(|event| event.revision).collect();
    heeler_tests::eventually("all at the one that is up", || {
        let mut seen = revisions(&up.accepted());
        // The crash may have come between an answer and its record.
        seen.dedup();
        seen == expected
    })
    .await;
    assert!(down.notices().is_empty());
    down.listen();
    let notices = down.has_accepted(5).await;
    assert_eq!(revisions(&notices), expected);
    assert!(notices.iter().all(|one| one.json().get("missed").is_none()));
}

/// H7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_event_is_repeated_until_it_is_accepted_and_the_next_one_waits() {
    let receiver = Receiver::start();
    receiver.then_fail(3);
    let daemon = sending("ended", &[&receiver]).start().await;
    end_tasks(&daemon.api().await, 2).await;
    let accepted = revisions(&receiver.has_accepted(2).await);
    let notices = receiver.notices();
    let first = &notices[0];
    for repeated in &notices[..4] {
        assert_eq!(
            (&repeated.body, repeated.header("heeler-id")),
            (&first.body, first.header("heeler-id"))
        );
        assert!(repeated.is_signed_by(&daemon));
    }
    assert_eq!(revisions(&notices[3..]), accepted);
    assert!(accepted[0] < accepted[1]);
}

/// H7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_receiver_that_does_not_answer_is_asked_again() {
    let receiver = Receiver::start();
    receiver.then(Answer::Silence);
    let daemon = sending("ended", &[&receiver]).start().await;
    let api = daemon.api().await;
    end_tasks(&api, 1).await;
    let log = daemon.logged("no answer within 10s").await;
    assert!(log.contains("it is repeated"), "{log}");
    within("other calls", end_tasks(&api, 1)).await;
    let notices = receiver.has_accepted(2).await;
    assert_eq!(receiver.notices()[0].body, notices[0].body);
}

/// H7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let (receiver, elsewhere) = (Receiver::start(), Receiver::start());
    receiver.then(Answer::Redirect(elsewhere.url()));
    let daemon = sending("ended", &[&receiver]).start().await;
    end_tasks(&daemon.api().await, 1).await;
    receiver.has_accepted(1).await;
    assert_eq!(receiver.notices().len(), 2);
    assert!(elsewhere.notices().is_empty());
}

/// H7: the receiver is told of events that it did not get and cannot get any more, and so is the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_that_were_pruned_meanwhile_are_told_of_as_missed() {
    let mut receiver = Receiver::down();
    let mut daemon = sending("ended", &[&receiver])
        .arg("--keep-events=20")
        .start()
        .await;
    let api = daemon.api().await;
    end_tasks(&api, 20).await;
    let oldest = api.oldest_kept(30).await;
    daemon.kill9();
    daemon.restart().await;
    receiver.listen();
    let last = daemon.api().await.revision().await;
    heeler_tests::eventually("the last event", || {
        receiver
            .accepted()
            .last()
            .is_some_and(|one| one.revision() == last)
    })
    .await;
    let notices = receiver.accepted();
    let missed = notices[0].json()["missed"].clone();
    assert_eq!(missed["afterRevision"], "0", "{missed}");
    let before: u64 = missed["beforeRevision"].as_str().unwrap().parse().unwrap();
    assert!(
        before >= oldest && notices[0].revision() >= before,
        "{missed}"
    );
    assert_eq!(missed["epoch"], notices[0].json()["epoch"]);
    // Pruning may have gone on meanwhile: a later gap begins behind the event before it.
    for pair in notices.windows(2) {
        if let Some(missed) = pair[1].json().get("missed") {
            let after = pair[0].revision().to_string();
            assert_eq!(missed["afterRevision"], after.as_str(), "{missed}");
        }
    }
    daemon
        .logged("events were pruned before a webhook has delivered them")
        .await;
}
