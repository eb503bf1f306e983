use heeler_client::{Address, Client, Error, Spawn, v1::ErrorReason};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_default().await?;

    let nowhere = Spawn::shell("make").working_directory("/no/such/directory");
    match client.spawn(nowhere).await {
        Err(error) if error.is(ErrorReason::WorkingDirectoryUnusable) => println!("{error}"),
        other => println!("unexpected: {other:?}"),
    }
    if let Err(error) = client.spawn(Spawn::shell("")).await {
        println!("{error}");
    }
    if let Err(Error::Refused(refusal)) = client.task("shell-aaaaaaaaaa").wait().await {
        println!("{:?} {}", refusal.code, refusal.metadata["task_id"]);
    }
    let unused: Address = "unix:/no/such.sock".parse()?;
    if let Err(error @ Error::NotRunning { .. }) = Client::connect(unused).await {
        println!("{error}");
    }
    Ok(())
}
