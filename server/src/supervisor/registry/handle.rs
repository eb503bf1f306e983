//! A live task as the rest of the server sees it: its state, waits on it, and messages to its actor.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{
        Notify,
        futures::Notified,
        mpsc::{self, error::TrySendError},
        oneshot, watch,
    },
    task::JoinSet,
};

use crate::supervisor::{
    CancelOutcome, CancelRequest, Cancelled,
    calls::requests::{Answer, Reply},
    calls::work::WorkerLink,
    task_actor::Message,
};
use crate::{
    journal::JournalError,
    process::shim::ShimProcess,
    task::{Placement, Revision, Task},
};

/// The most messages in an actor's inbox; further senders wait.
const INBOX: usize = 32;

/// The pause before a request is sent again to an actor that has failed.
const ASK_AGAIN: Duration = Duration::from_millis(10);

#[derive(Debug, Clone)]
pub(crate) struct Handle {
    inbox: mpsc::Sender<Box<Message>>,
    state: watch::Receiver<Arc<Task>>,
    unrecorded: watch::Receiver<Option<Unrecorded>>,
    signs: Arc<Signs>,
    pub(in crate::supervisor) worker: Arc<WorkerLink>,
}

/// The signs that an actor and the holders of its handle give each other, besides messages and the state.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct Signs {
    /// There is more output.
    pub(in crate::supervisor) output: Notify,
    /// There may be room for input.
    pub(in crate::supervisor) input: Notify,
    /// The number of attached clients has changed, for the actor.
    pub(in crate::supervisor) clients_changed: Notify,
    attached_clients: AtomicUsize,
    shim_process: Mutex<Option<ShimProcess>>,
}

impl Signs {
    /// The process of the shim, if there may be one.
    pub(in crate::supervisor) fn shim_process(&self) -> Option<ShimProcess> {
        *self.process()
    }

    pub(in crate::supervisor) fn set_shim_process(&self, process: Option<ShimProcess>) {
        *self.process() = process;
    }

    pub(in crate::supervisor) fn attached_clients(&self) -> usize {
        self.attached_clients.load(Ordering::SeqCst)
    }

    fn process(&self) -> MutexGuard<'_, Option<ShimProcess>> {
        self.shim_process
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of a task whose latest events the journal has refused.
#[derive(Debug, Clone)]
pub(in crate::supervisor) struct Unrecorded {
    pub(in crate::supervisor) task: Arc<Task>,
    pub(in crate::supervisor) error: Arc<JournalError>,
}

/// The state of a task, and whether all of it is recorded.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) task: Arc<Task>,
    /// The reason why the latest events are not recorded yet.
    pub(crate) unrecorded: Option<Arc<JournalError>>,
}

impl Standing {
    pub(crate) fn recorded(task: Arc<Task>) -> Self {
        Self {
            task,
            unrecorded: None,
        }
    }
}

impl From<Unrecorded> for Standing {
    fn from(Unrecorded { task, error }: Unrecorded) -> Self {
        Self {
            task,
            unrecorded: Some(error),
        }
    }
}

/// The actor's ends of the channels of a [`Handle`].
#[derive(Debug)]
pub(in crate::supervisor) struct ActorChannels {
    pub(in crate::supervisor) inbox: mpsc::Receiver<Box<Message>>,
    pub(in crate::supervisor) state: watch::Sender<Arc<Task>>,
    pub(in crate::supervisor) unrecorded: watch::Sender<Option<Unrecorded>>,
    pub(in crate::supervisor) signs: Arc<Signs>,
    pub(in crate::supervisor) worker: Arc<WorkerLink>,
    /// Fires when the task is admitted; `None` unless it is queued.
    pub(in crate::supervisor) admitted: Option<oneshot::Receiver<()>>,
}

/// One attached client, until it is dropped.
#[derive(Debug)]
pub(crate) struct AttachedClient {
    counted: Option<Arc<Signs>>,
}

impl AttachedClient {
    /// Keeps the client counted: the server shuts down, and the client has not left the task. The
    /// next server decides whether it comes back.
    pub(crate) fn leave_to_next_server(mut self) {
        self.counted = None;
    }
}

impl Drop for AttachedClient {
    fn drop(&mut self) {
        if let Some(signs) = &self.counted {
            signs.attached_clients.fetch_sub(1, Ordering::SeqCst);
            signs.clients_changed.notify_one();
        }
    }
}

impl Handle {
    pub(in crate::supervisor) fn new(
        task: &Arc<Task>,
        admitted: Option<oneshot::Receiver<()>>,
    ) -> (Self, ActorChannels) {
        let (inbox, inbox_end) = mpsc::channel(INBOX);
        let (state_end, state) = watch::channel(Arc::clone(task));
        let (unrecorded_end, unrecorded) = watch::channel(None);
        let signs = Arc::<Signs>::default();
        let worker = Arc::<WorkerLink>::default();
        let handle = Self {
            inbox,
            state,
            unrecorded,
            signs: Arc::clone(&signs),
            worker: Arc::clone(&worker),
        };
        let channels = ActorChannels {
            inbox: inbox_end,
            state: state_end,
            unrecorded: unrecorded_end,
            signs,
            worker,
            admitted,
        };
        (handle, channels)
    }

    /// The task after its latest durable fact.
    pub(crate) fn task(&self) -> Arc<Task> {
        Arc::clone(&self.state.borrow())
    }

    /// The process of the task's shim, if there may be one.
    pub(in crate::supervisor) fn shim_process(&self) -> Option<ShimProcess> {
        self.signs.shim_process()
    }

    /// Waits until the task is finished; `None` if the server shuts down first, or the task was never
    /// recorded. The same `None` ends every wait here.
    pub(crate) async fn finished(&self) -> Option<Arc<Task>> {
        self.wait_until(|task| !task.is_live()).await
    }

    /// Waits until the tree of a task that is being stopped is proven empty, or its survivors are named,
    /// recorded or not.
    pub(crate) async fn stopped(&self) -> Option<Standing> {
        let mut unrecorded = self.unrecorded.clone();
        let is_stopped = |unrecorded: &Option<Unrecorded>| {
            let task = unrecorded.as_ref().map(|unrecorded| &unrecorded.task);
            task.is_some_and(|task| task.has_stopped())
        };
        tokio::select! {
            biased;
            task = self.wait_until(Task::has_stopped) => task.map(Standing::recorded),
            Ok(shown) = unrecorded.wait_for(is_stopped) => shown.clone().map(Standing::from),
        }
    }

    /// True if the tree is proven empty and that is not recorded yet.
    pub(in crate::supervisor) fn is_stopped_unrecorded(&self) -> bool {
        let unrecorded = self.unrecorded.borrow();
        let task = unrecorded.as_ref().map(|unrecorded| &unrecorded.task);
        task.is_some_and(|task| task.has_stopped() && !task.has_survivors())
    }

    /// True once a stop was requested, recorded or not.
    pub(in crate::supervisor) fn is_stopping(&self) -> bool {
        let unrecorded = self.unrecorded.borrow();
        let unrecorded = unrecorded.as_ref().map(|unrecorded| &unrecorded.task);
        unrecorded.unwrap_or(&self.task()).stop.is_some()
    }

    /// The reason why the latest events are not recorded, if there is one.
    pub(in crate::supervisor) fn refusal(&self) -> Option<Arc<JournalError>> {
        let unrecorded = self.unrecorded.borrow();
        let unrecorded = unrecorded.as_ref();
        unrecorded.map(|unrecorded| Arc::clone(&unrecorded.error))
    }

    /// Waits until the task is out of the foreground.
    pub(crate) async fn out_of_foreground(&self) -> Option<Arc<Task>> {
        self.wait_until(Task::is_out_of_foreground).await
    }

    /// Waits until it is known whether the task is ready.
    pub(crate) async fn readiness_decided(&self) -> Option<Arc<Task>> {
        self.wait_until(Task::is_readiness_decided).await
    }

    /// Waits until an Attach that began with this placement is over.
    pub(crate) async fn attach_ended(&self, from: Placement) -> Option<Arc<Task>> {
        self.wait_until(|task| task.attach_end(from).is_some())
            .await
    }

    /// Waits until the task's Spawn is answered: its leader runs, it is finished or, if it may wait, its
    /// creation is recorded.
    pub(in crate::supervisor) async fn answered(&self) -> Option<Arc<Task>> {
        self.wait_until(|task| {
            let is_recorded = task.revision > Revision(0);
            task.started.is_some() || !task.is_live() || (is_recorded && task.is_answered_waiting())
        })
        .await
    }

    async fn wait_until(&self, condition: impl Fn(&Task) -> bool) -> Option<Arc<Task>> {
        let mut state = self.state.clone();
        let task = state.wait_for(|task| condition(task)).await.ok()?;
        Some(Arc::clone(&task))
    }

    /// Waits until the task is in another state than the one that the caller knows; for ever where it has
    /// no actor any more.
    pub(in crate::supervisor) async fn changed_from(&self, known: &Arc<Task>) {
        let other = |task: &Arc<Task>| !Arc::ptr_eq(task, known);
        if self.state.clone().wait_for(other).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits until there may be output beyond `offset`, or the task is finished.
    pub(crate) async fn output_beyond(&self, offset: u64) {
        let more = self.signs.output.notified();
        let follow = Box::new(Message::FollowOutput { beyond: offset });
        let mut sending = JoinSet::new();
        match self.inbox.try_send(follow) {
            Ok(()) => {}
            Err(TrySendError::Closed(_)) => return,
            // In a future of its own: a client can stop reading, and this one is then not polled. It
            // would keep the place in the inbox that it got, and Cancel would find none.
            Err(TrySendError::Full(follow)) => {
                let inbox = self.inbox.clone();
                sending.spawn(async move { inbox.send(follow).await.is_ok() });
            }
        }
        tokio::select! {
            () = more => {}
            _ = self.finished() => {}
        }
    }

    /// The next sign from now on that there may be room for input.
    pub(in crate::supervisor) fn input_change(&self) -> Notified<'_> {
        self.signs.input.notified()
    }

    /// Asks the actor to keep the output within so many bytes. It is asked again if its inbox is full now
    /// and the output goes on growing.
    pub(in crate::supervisor) fn limit_output(&self, bytes: u64) {
        let _ = self
            .inbox
            .try_send(Box::new(Message::LimitOutput { bytes }));
    }

    /// Counts a client as attached until the guard is dropped.
    pub(crate) fn attach(&self) -> AttachedClient {
        self.signs.attached_clients.fetch_add(1, Ordering::SeqCst);
        self.signs.clients_changed.notify_one();
        AttachedClient {
            counted: Some(Arc::clone(&self.signs)),
        }
    }

    /// Asks the actor to stop the task; `None` as in [`Self::ask`].
    pub(in crate::supervisor) async fn cancel(
        &self,
        request: CancelRequest,
    ) -> Option<Result<Cancelled, Arc<JournalError>>> {
        let message = |reply: Reply<CancelOutcome>| Message::Cancel {
            request: request.clone(),
            reply,
        };
        self.ask(message).await
    }

    /// Sends a request to the actor and waits for the answer; `None` if there is no actor any more. A
    /// request that an actor's failure has interrupted is sent again, to the actor that takes its place.
    pub(in crate::supervisor) async fn ask<O>(
        &self,
        message: impl Fn(Reply<O>) -> Message,
    ) -> Option<Result<Answer<O>, Arc<JournalError>>> {
        self.ask_for(message).await
    }

    /// As [`Self::ask`], for an answer of any type.
    pub(in crate::supervisor) async fn ask_for<T>(
        &self,
        message: impl Fn(oneshot::Sender<T>) -> Message,
    ) -> Option<T> {
        loop {
            let (reply, answer) = oneshot::channel();
            self.send(message(reply)).await;
            match answer.await {
                Ok(answer) => return Some(answer),
                Err(_) if self.inbox.is_closed() => return None,
                Err(_) => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
    }

    /// Sends a message to the actor, if there still is one.
    pub(in crate::supervisor) async fn send(&self, message: Message) {
        // A dropped message drops its reply, which the receiver sees.
        let _ = self.inbox.send(Box::new(message)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;
    use crate::task::{Command, IdKey, Seq, Spec, Timestamp};

    /// O10, N3: the stream of a client that stops reading is polled no more.
    #[tokio::test]
    async fn followers_that_are_never_polled_again_keep_no_place_in_the_inbox() {
        let spec = Spec::new(Command::Argv(vec!["/bin/true".into()]));
        let id = IdKey(1).task_id(spec.kind, Seq(1));
        let task = Arc::new(Task::new(Seq(1), id, spec, Timestamp(1)));
        let (handle, mut channels) = Handle::new(&task, None);
        for beyond in 0..INBOX as u64 {
            handle.send(Message::FollowOutput { beyond }).await;
        }
        let mut context = Context::from_waker(Waker::noop());
        let mut unpolled: Vec<_> = (0..2 * INBOX)
            .map(|_| Box::pin(handle.output_beyond(0)))
            .collect();
        for follower in &mut unpolled {
            assert!(follower.as_mut().poll(&mut context).is_pending());
        }
        let drained = async {
            // Those of the inbox, those of the followers, and the last one.
            for _ in 0..3 * INBOX + 1 {
                channels.inbox.recv().await;
            }
        };
        let sent = handle.send(Message::FollowOutput { beyond: 7 });
        let both = async { tokio::join!(sent, drained) };
        let limit = std::time::Duration::from_secs(30);
        let done = tokio::time::timeout(limit, both).await;
        assert!(done.is_ok(), "a follower keeps a place");
    }
}
