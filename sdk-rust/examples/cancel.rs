use std::time::Duration;

use heeler_client::v1::{
    ProofMethod,
    proof::Result::{Proven, Survivors, Unproven},
};
use heeler_client::{CancelOptions, Client, Error, Spawn};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_default().await?;
    let task = client
        .spawn(Spawn::shell("setsid sleep 1000 & sleep 1000"))
        .await?;

    let options = CancelOptions::graceful()
        .grace(Duration::from_secs(1))
        .reason("not needed any more");
    let ended = task.cancel(options).await?.task.unwrap_or_default();

    let state = ended.state();
    let stop = ended.stop.unwrap_or_default();
    println!("{state:?} because {}", stop.reason);
    match stop.proof.and_then(|proof| proof.result) {
        Some(Proven(method)) => {
            let method = ProofMethod::try_from(method).unwrap_or_default();
            println!("proven by {method:?}");
        }
        Some(Survivors(left)) => println!("cannot be killed: {:?}", left.processes),
        Some(Unproven(unproven)) => println!("unknown: {}", unproven.reason),
        None => println!("not stopped"),
    }
    Ok(())
}
