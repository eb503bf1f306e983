//! The threads that read many rows, and the queue of their work.
//!
//! A read belongs to its thread from beginning to end. The future that waits for the result owns no
//! part of that: a client can stop reading at any moment, its future is then not polled, and whatever it
//! held would be lost to all others. The threads start with the journal, so that a read needs no new one.

use std::{
    collections::VecDeque,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::sync::oneshot;

/// Long reads at once. Each costs a thread and a connection.
const READERS: usize = 2;

type Read = Box<dyn FnOnce() + Send>;

/// The kinds of long reads. Each has a queue of its own, and the readers take from them in turn: a
/// thousand watchers that replay the journal delay a list by one batch of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::journal) enum Lane {
    /// A batch of old events for a watcher.
    Replay,
    /// Everything else: pages of lists, counts, retention.
    Query,
}

/// The readers; they end when this is dropped.
#[derive(Debug)]
pub(super) struct Readers(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    wanted: Condvar,
}

#[derive(Default)]
struct Waiting {
    replays: VecDeque<Read>,
    queries: VecDeque<Read>,
    /// The lane that the next reader looks into first.
    replays_first: bool,
    closed: bool,
}

impl Readers {
    pub(super) fn start() -> io::Result<Self> {
        let readers = Self(Arc::default());
        for _ in 0..READERS {
            let queue = Arc::clone(&readers.0);
            let thread = thread::Builder::new().name("journal-reader".into());
            thread.spawn(move || queue.run())?;
        }
        Ok(readers)
    }

    /// Runs `read` on a reader; `None` if it panics. A read whose result is no longer wanted when its
    /// turn comes is left out.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, result) = oneshot::channel();
        self.0.push(
            lane,
            Box::new(move || {
                if !reply.is_closed() {
                    // The caller may have left meanwhile.
                    let _ = reply.send(read());
                }
            }),
        );
        result.await.ok()
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.0.waiting().closed = true;
        self.0.wanted.notify_all();
    }
}

impl Queue {
    fn push(&self, lane: Lane, read: Read) {
        let mut waiting = self.waiting();
        match lane {
            Lane::Replay => waiting.replays.push_back(read),
            Lane::Query => waiting.queries.push_back(read),
        }
        drop(waiting);
        self.wanted.notify_one();
    }

    fn run(&self) {
        while let Some(read) = self.next() {
            // A read that panics has failed; the reader goes on. The caller sees the dropped reply.
            let _ = catch_unwind(AssertUnwindSafe(read));
        }
    }

    /// Waits for the next read; `None` once the readers are dropped.
    fn next(&self) -> Option<Read> {
        let mut waiting = self.waiting();
        loop {
            if let Some(read) = waiting.next() {
                return Some(read);
            }
            if waiting.closed {
                return None;
            }
            let woken = self.wanted.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No code that can panic runs under the lock.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn next(&mut self) -> Option<Read> {
        let replays_first = self.replays_first;
        self.replays_first = !replays_first;
        let (first, second) = match replays_first {
            true => (&mut self.replays, &mut self.queries),
            false => (&mut self.queries, &mut self.replays),
        };
        first.pop_front().or_else(|| second.pop_front())
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting")
            .field("replays", &self.replays.len())
            .field("queries", &self.queries.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::{
        future::Future,
        sync::mpsc,
        task::{Context, Waker},
        time::Duration,
    };

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    /// Occupies every reader until the sender is dropped.
    fn occupy(readers: &Readers) -> mpsc::Sender<()> {
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let (busy, is_busy) = mpsc::channel();
        for _ in 0..READERS {
            let (released, busy) = (Arc::clone(&released), busy.clone());
            let block = move || {
                busy.send(()).unwrap();
                let _ = released.lock().unwrap().recv();
            };
            readers.0.push(Lane::Query, Box::new(block));
        }
        for _ in 0..READERS {
            is_busy.recv_timeout(LIMIT).unwrap();
        }
        release
    }

    /// E7
    #[test]
    fn futures_that_are_never_polled_again_block_no_reader() {
        let readers = Readers::start().unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut unpolled = Vec::new();
        for lane in [Lane::Replay, Lane::Query].repeat(4 * READERS) {
            let mut read = Box::pin(readers.run(lane, || ()));
            let _ = read.as_mut().poll(&mut context);
            unpolled.push(read);
        }
        let (done, is_done) = mpsc::channel();
        for lane in [Lane::Replay, Lane::Query] {
            let done = done.clone();
            readers
                .0
                .push(lane, Box::new(move || done.send(()).unwrap()));
            is_done.recv_timeout(LIMIT).unwrap();
        }
        drop(unpolled);
    }

    /// E7
    #[test]
    fn a_query_waits_for_one_replay_however_many_there_are() {
        let readers = Readers::start().unwrap();
        let release = occupy(&readers);
        let (log, order) = mpsc::channel();
        for _ in 0..100 {
            let log = log.clone();
            let read = move || log.send(Lane::Replay).unwrap();
            readers.0.push(Lane::Replay, Box::new(read));
        }
        let read = move || log.send(Lane::Query).unwrap();
        readers.0.push(Lane::Query, Box::new(read));
        drop(release);
        let order: Vec<_> = order.iter().collect();
        let before = order.iter().position(|lane| *lane == Lane::Query).unwrap();
        assert!(before <= 2 * READERS, "after {before} replays");
    }

    #[test]
    fn a_read_that_panics_ends_no_reader() {
        let readers = Readers::start().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        for _ in 0..2 * READERS {
            let failed = runtime.block_on(readers.run::<()>(Lane::Query, || panic!("on purpose")));
            assert!(failed.is_none());
        }
        assert_eq!(runtime.block_on(readers.run(Lane::Query, || 7)), Some(7));
    }

    #[test]
    fn a_read_that_no_caller_waits_for_is_left_out() {
        let readers = Readers::start().unwrap();
        let release = occupy(&readers);
        let (log, reads) = mpsc::channel();
        let mut context = Context::from_waker(Waker::noop());
        {
            let log = log.clone();
            let mut left = Box::pin(readers.run(Lane::Query, move || log.send("left").unwrap()));
            let _ = left.as_mut().poll(&mut context);
        }
        let last = Box::new(move || log.send("last").unwrap());
        readers.0.push(Lane::Query, last);
        drop(release);
        assert_eq!(reads.recv_timeout(LIMIT).unwrap(), "last");
    }
}
