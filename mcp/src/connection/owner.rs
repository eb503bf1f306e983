//! The ownership of the session: a watch that lasts as long as the connection. When it is gone, also by a kill, and
//! no other owner is left, the daemon cancels the session's tasks.

use std::time::Duration;

use heeler_client::{
    CancellationToken, Client, Error, Filter, StreamExt, Watch, WatchOptions, v1::TaskEventType,
};
use tokio::{sync::Mutex, task::JoinHandle, time::sleep};

/// The longest wait for a daemon that restarts, before a call says that it is gone.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before a watch that the daemon has ended is begun again.
const PAUSE: Duration = Duration::from_secs(1);

/// The owner that a connection is, from its first call on.
#[derive(Debug, Default)]
pub(super) struct Owner(Mutex<Option<JoinHandle<()>>>);

impl Owner {
    /// Makes the connection an owner of the session, unless it is one. It is when this returns.
    pub(super) async fn ensure(
        &self,
        client: &Client,
        session: &str,
        closed: &CancellationToken,
    ) -> Result<(), Error> {
        let mut owning = self.0.lock().await;
        if owning.as_ref().is_some_and(|owning| !owning.is_finished()) {
            return Ok(());
        }
        let options = WatchOptions::from_now()
            .matching(Filter::all().session(session))
            .event_type(TaskEventType::SessionIdle)
            .own_session(session, None);
        // A daemon that is away fails the call soon; after that the owner comes back whenever the daemon does.
        let mut first = client.watch(options.clone().give_up_after(PATIENCE));
        first.next().await.transpose()?;
        let (client, closed) = (client.clone(), closed.clone());
        *owning = Some(tokio::spawn(async move {
            tokio::select! {
                () = stay(first, &client, options) => {}
                () = closed.cancelled() => {}
            }
        }));
        Ok(())
    }
}

/// Stays an owner, with a watch that takes over from the first one.
async fn stay(first: Watch, client: &Client, options: WatchOptions) {
    let mut before = Some(first);
    loop {
        let mut watch = client.watch(options.clone());
        while let Some(Ok(_)) = watch.next().await {
            drop(before.take());
        }
        sleep(PAUSE).await;
    }
}
