//! A webhook: from the answer of its receiver to the record of it.

use heeler_tests::{Daemon, Receiver, receiver::Notice, shell};

use crate::{at_each_point, restart_after};

at_each_point! { a_webhook_interrupted:
    after_the_first_is_accepted => "webhook.delivered", 1;
    after_the_second_is_accepted => "webhook.delivered:2", 2;
}

/// R3, H7: the event whose acceptance was not recorded is sent again, and none is left out.
async fn a_webhook_interrupted(point: &str, accepted: usize) {
    let receiver = Receiver::start();
    let args = ["--webhook-events", "ended", "--webhook", &receiver.url()];
    let mut daemon = args
        .iter()
        .fold(Daemon::builder(), |builder, arg| builder.arg(arg))
        .prepare();
    daemon.die_at(point);
    daemon.restart().await;
    let mut ids = Vec::new();
    for _ in 0..accepted {
        let api = daemon.api().await;
        ids.push(api.start(shell("true")).await.id);
    }
    restart_after(&mut daemon, point).await;
    let api = daemon.api().await;
    ids.push(api.start(shell("true")).await.id);
    let notices = receiver.has_accepted(accepted + 2).await;
    let id = |notice: &Notice| notice.json()["event"]["task"]["id"].clone();
    let told: Vec<_> = notices.iter().map(id).collect();
    assert_eq!(told[accepted - 1], told[accepted], "the last one again");
    let mut distinct = told.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len());
    for id in &ids {
        assert!(
            told.iter().any(|told| told == id),
            "{id} is missing: {told:?}"
        );
    }
    assert_eq!(
        notices[accepted - 1].header("heeler-id"),
        notices[accepted].header("heeler-id")
    );
}
