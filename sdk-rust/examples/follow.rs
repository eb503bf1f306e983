use heeler_client::{Client, Error, Spawn, StreamExt};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_default().await?;
    let script = "for n in 1 2 3; do echo step $n; sleep 0.1; done";
    let task = client.spawn(Spawn::shell(script)).await?;

    let mut output = task.output();
    while let Some(chunk) = output.next().await {
        let chunk = chunk?;
        print!(
            "{:?}: {}",
            chunk.stream,
            String::from_utf8_lossy(&chunk.data)
        );
    }
    Ok(())
}
