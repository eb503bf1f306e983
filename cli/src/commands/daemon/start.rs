//! `heeler start`: makes sure that a daemon is running.

use clap::Args;

use crate::{
    context::{ClientArgs, Context},
    exit::Exit,
    failure::Failure,
};

const EXAMPLES: &str = "\
Examples:
  heeler start
  addr=$(heeler start)

Every client command starts the daemon by itself; this one does nothing else. It is for programs \
that reach the daemon in another way, such as the SDKs and grpcurl. It prints the daemon's address \
once the daemon answers calls. With an address it starts nothing and checks that a daemon is there.";

/// Start the daemon if it is not running, and print its address
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Start {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        // A daemon that listens may still be recovering; the client repeats the call until it serves.
        cx.client.queues().await?;
        let address = cx.client.address().to_string();
        match cx.json {
            Some(_) => cx
                .out
                .line(&serde_json::json!({ "address": address }).to_string())?,
            None => cx.out.line(&address)?,
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }
}
