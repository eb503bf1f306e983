use heeler_client::{Client, Error, Filter, StreamExt, WatchItem, WatchOptions, v1::TaskEventType};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_default().await?;
    let options = WatchOptions::after(0)
        .matching(Filter::all().session("nightly"))
        .event_type(TaskEventType::Ended);

    let mut watch = client.watch(options);
    while let Some(item) = watch.next().await {
        // What else comes is bookmarks: keep one, and a later watch can go on after it.
        if let WatchItem::Event(event) = item? {
            let task = event.task.unwrap_or_default();
            println!("{} {:?}", task.name, task.state());
            if task.name == "last" {
                break;
            }
        }
    }
    Ok(())
}
