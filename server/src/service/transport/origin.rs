//! The origin of a connection over the Unix socket: the task that its process is inside of.
//!
//! The kernel remembers the process that has connected, and the process is pinned when the connection is
//! accepted. Its task is looked up once, beside the handshake, and holds for the whole connection: what the
//! process does later, such as handing the descriptor to another process, changes nothing.

use std::{sync::Arc, time::Duration};

use tokio::{net::UnixStream, sync::OnceCell, time::timeout};

use crate::supervisor::{Caller, PinnedProcess, Supervisor};

/// The longest look: files of a process that hangs can block it.
const LOOK: Duration = Duration::from_secs(5);

/// The process of a connection, and its task once that is known. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Origin(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// None if the kernel does not name the process, or it has ended.
    process: Option<Arc<PinnedProcess>>,
    found: OnceCell<Caller>,
}

impl Origin {
    /// Pins the process that has connected.
    pub(super) fn of(stream: &UnixStream) -> Self {
        let process = PinnedProcess::peer(stream);
        let process =
            process.inspect_err(|error| tracing::debug!(%error, "cannot identify a caller"));
        Self(Arc::new(Inner {
            process: process.ok().map(Arc::new),
            found: OnceCell::new(),
        }))
    }

    /// The task of the process, looked up once.
    pub(super) async fn caller(&self, supervisor: &Supervisor) -> Caller {
        let look = || async {
            let Some(process) = &self.0.process else {
                return Ok(Caller::Unknown);
            };
            timeout(LOOK, supervisor.caller(Arc::clone(process))).await
        };
        // A look that takes too long is repeated by the next call.
        let found = self.0.found.get_or_try_init(look).await;
        found.cloned().unwrap_or(Caller::Unknown)
    }
}
