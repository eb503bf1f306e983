use heeler_client::{
    CancelOptions, Client, Error, Spawn,
    v1::{ErrorReason, ExclusiveMode},
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect_default().await?;
    let server = |port: &str| {
        let server = Spawn::argv(["sleep", "600"]).env("PORT", port);
        server.exclusive("dev server", ExclusiveMode::Ensure)
    };
    let first = client.spawn(server("8080")).await?;
    let again = client.spawn(server("8080")).await?;
    println!("the same task: {}", first.id() == again.id());

    if let Err(Error::Refused(refusal)) = client.spawn(server("9090")).await
        && refusal.is(ErrorReason::ExclusiveKeyDiffers)
    {
        println!("it differs in {}", refusal.metadata["field"]);
    }
    first.cancel(CancelOptions::graceful()).await?;
    Ok(())
}
