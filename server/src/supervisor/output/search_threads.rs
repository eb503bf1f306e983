//! The threads on which output is searched.
//!
//! A regular expression may take long, so no other work waits for these threads. They start with the
//! server: at the limit of processes a new one could not be had.

use std::{
    fmt, io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::turns::Turns;
use crate::{supervisor::Supervisor, task::Seq};

/// With two, a search that takes long leaves one to the others.
const THREADS: usize = 2;
/// The time after which a search should make way for others.
pub(super) const TURN: Duration = Duration::from_millis(20);

/// The party that a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SearchKey {
    /// A client, by a number of its own.
    Client(u64),
    /// A task whose patterns are searched for.
    Task(Seq),
}

/// A search that is queued or under way.
#[derive(Debug)]
pub(in crate::supervisor) struct Turn<T>(oneshot::Receiver<T>);

impl<T> Turn<T> {
    /// Waits for its result. Cancel safe.
    pub(in crate::supervisor) async fn done(&mut self) -> io::Result<T> {
        let failed = |_| io::Error::other("the search failed");
        (&mut self.0).await.map_err(failed)
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// The queue of searches; its threads end when it is dropped.
pub(crate) struct SearchThreads {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    turns: Turns<SearchKey, Job>,
    is_closed: bool,
}

impl SearchThreads {
    pub(crate) fn start() -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        for _ in 0..THREADS {
            let queue = Arc::clone(&queue);
            let thread = thread::Builder::new().name("search".to_owned());
            thread.spawn(move || queue.work())?;
        }
        Ok(Self { queue })
    }

    /// Runs a search that ends within about a [`TURN`].
    pub(super) async fn run<T: Send + 'static>(
        &self,
        key: SearchKey,
        search: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        self.begin(key, search).done().await
    }

    /// Queues a search. One whose caller has left when its turn comes is not begun.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        key: SearchKey,
        search: impl FnOnce() -> T + Send + 'static,
    ) -> Turn<T> {
        let (reply, answer) = oneshot::channel();
        let job = move || {
            if !reply.is_closed() {
                // The caller may leave meanwhile.
                let _ = reply.send(search());
            }
        };
        self.queue.lock().turns.add(key, Box::new(job));
        self.queue.changed.notify_one();
        Turn(answer)
    }
}

impl Supervisor {
    /// Runs other work that takes about as long as a turn of a search.
    pub(crate) async fn in_turn<T: Send + 'static>(
        &self,
        key: SearchKey,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        self.shared.search_threads.run(key, work).await
    }
}

impl Queue {
    fn work(&self) {
        let mut state = self.lock();
        while !state.is_closed {
            let Some((key, job)) = state.turns.begin() else {
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let began = Instant::now();
            // A panic is reported by its hook, and to the caller by the reply that is dropped.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            state = self.lock();
            state.turns.end(key, began.elapsed());
            // The next job of this party may be for another thread.
            self.changed.notify_one();
        }
    }

    /// No code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SearchThreads {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_all();
    }
}

impl fmt::Debug for SearchThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchThreads").finish_non_exhaustive()
    }
}
