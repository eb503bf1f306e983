use std::time::Duration;

use heeler_client::{
    CancelOptions, Client, Error, Filter, Spawn, StreamExt, WatchItem, WatchOptions,
    v1::{TaskEventType, TaskKind},
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_or_start().await?;
    let session = client.session("demo");
    // The first item of a watch is a bookmark: from here on no event is missed.
    let mut events = client.watch(WatchOptions::from_now().event_type(TaskEventType::Stale));
    events.next().await;

    let agent = Spawn::shell("echo thinking; sleep 600").kind(TaskKind::Agent);
    session
        .spawn(agent.stale_after(Duration::from_millis(200)))
        .await?;
    println!("agents: {}", session.counts().await?.agents);

    while let Some(item) = events.next().await {
        if let WatchItem::Event(_) = item? {
            break;
        }
    }
    let silent = Filter::all().session(session.id()).stale(true);
    let reason = CancelOptions::graceful().reason("silent for too long");
    for stopped in client.cancel_matching(silent, reason).await? {
        let task = stopped.task.unwrap_or_default();
        println!(
            "{:?}: {}",
            task.state(),
            task.stop.unwrap_or_default().reason
        );
    }
    session.wait_until_idle().await?;
    println!("idle: {}", session.counts().await?.is_idle());
    Ok(())
}
