use std::time::Duration;

use heeler_client::{
    Client, Error, Filter, ListOptions, Spawn, StreamExt, WatchItem, WatchOptions,
    v1::{TaskEventType, TaskKind},
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_or_start().await?;
    let session = client.session("demo")?;
    let ours = Filter::all().session(session.id());
    let stale = WatchOptions::from_now().event_type(TaskEventType::Stale);
    let mut events = client.watch(stale.matching(ours.clone()));
    // The first item of a watch is a bookmark: from here on no event is missed.
    events.next().await;

    let agent = Spawn::shell("echo thinking; sleep 600").kind(TaskKind::Agent);
    let agent = agent.stale_after(Duration::from_millis(200));
    session.spawn(agent).await?;
    println!("agents: {}", session.counts().await?.agents);

    while let Some(item) = events.next().await {
        if let WatchItem::Event(_) = item? {
            break;
        }
    }
    let mut silent = client.list(ListOptions::live().matching(ours.stale(true)));
    while let Some(task) = silent.next().await {
        let stopped = client.cancel_background_task(task?.id).await?;
        println!("{:?}", stopped.task.unwrap_or_default().state());
    }
    session.wait_until_idle().await?;
    println!("idle: {}", session.counts().await?.is_idle());
    Ok(())
}
