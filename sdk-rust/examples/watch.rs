use heeler_client::{Client, Error, Filter, StreamExt, WatchItem, WatchOptions, v1::TaskEventType};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_default().await?;
    let options = WatchOptions::after(0)
        .matching(Filter::all().session("nightly"))
        .event_type(TaskEventType::Ended);

    let mut watch = client.watch(options);
    while let Some(item) = watch.next().await {
        // The other items are bookmarks: keep one, and a later watch can resume after it.
        if let WatchItem::Event(event) = item? {
            let task = event.task.unwrap_or_default();
            let name = task.spec.as_ref().map_or("", |spec| &spec.name);
            println!("{name} {:?}", task.state());
            if name == "last" {
                break;
            }
        }
    }
    Ok(())
}
