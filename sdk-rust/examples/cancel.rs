use std::time::Duration;

use heeler_client::{CancelOptions, Client, Error, Spawn};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_default().await?;
    let task = client
        .spawn(Spawn::shell("setsid sleep 1000 & sleep 1000"))
        .await?;

    let grace = Duration::from_secs(1);
    let options = CancelOptions::graceful()
        .grace(grace)
        .reason("not needed any more");
    let result = task.cancel(options).await?;

    let (ended, proof) = (
        result.task.unwrap_or_default(),
        result.proof.unwrap_or_default(),
    );
    let reason = ended.stop.as_ref().map_or("", |stop| stop.reason.as_str());
    println!("{:?} because {reason}", ended.state());
    println!("proven by {:?}", proof.method());
    println!("survivors: {}", proof.survivors.len());
    Ok(())
}
