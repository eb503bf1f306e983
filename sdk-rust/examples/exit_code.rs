use heeler_client::{Client, Error, Spawn, v1::outcome::Result::ExitCode};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_default().await?;
    let spawn = Spawn::shell("echo testing; exit 3").session("demo");
    let task = client.spawn(spawn.name("tests")).await?;

    let ended = task.wait().await?;
    match ended.outcome.and_then(|outcome| outcome.result) {
        Some(ExitCode(code)) => println!("exit code {code}"),
        other => println!("no exit code: {other:?}"),
    }
    Ok(())
}
