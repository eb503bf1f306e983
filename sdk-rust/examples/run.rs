use std::time::Duration;

use heeler_client::{Client, Error, Spawn, v1::AttachEndReason};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_default().await?;
    for script in ["echo quick; exit 3", "echo slow; sleep 1000"] {
        let spawn = Spawn::shell(script).foreground_timeout(Duration::from_secs(1));

        let mut run = client.run(spawn).await?;
        let show = |chunk: heeler_client::Chunk| print!("{}", String::from_utf8_lossy(&chunk.data));
        let ended = run.ended(show).await?;

        if ended.reason == AttachEndReason::Detached {
            println!("continues in the background");
        } else {
            println!("{:?}", ended.task.state());
        }
    }
    Ok(())
}
