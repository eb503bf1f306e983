//! Flags with a fixed set of values, and the values of the contract that they stand for.

use clap::ValueEnum;
use heeler_client::v1::{
    DisconnectAction, ExclusiveMode, ForegroundTimeoutAction, OrphanPolicy, OutputLimitAction,
    TaskEventType, TaskKind, TaskRights, TaskState,
};

/// Defines the enum of a flag whose variants have the names of the contract's.
macro_rules! choices {
    ($name:ident => $contract:ident { $($(#[$help:meta])* $variant:ident),* $(,)? }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
        pub(crate) enum $name {
            $($(#[$help])* $variant),*
        }

        impl From<$name> for $contract {
            fn from(choice: $name) -> Self {
                match choice {
                    $($name::$variant => Self::$variant),*
                }
            }
        }
    };
}

choices!(Kind => TaskKind {
    /// A process tree
    Shell,
    /// A process tree that is a subagent
    Agent,
});

choices!(AnyKind => TaskKind {
    /// A process tree
    Shell,
    /// A process tree that is a subagent
    Agent,
    /// Work inside a client
    Hosted,
});

choices!(Orphans => OrphanPolicy {
    /// The task runs until its last process exits
    Track,
    /// Kill them
    Kill,
    /// Finish the task and leave them running
    Abandon,
});

choices!(Rights => TaskRights {
    /// Report on the task, spawn children, see and act on descendants
    Children,
    /// Report on the task
    Report,
    /// No call
    None,
    /// Every call
    All,
});

choices!(OnOutputLimit => OutputLimitAction {
    /// Keep the beginning and the latest output
    Rotate,
    /// Keep the output up to the limit
    Truncate,
    /// Kill the task
    Kill,
});

choices!(OnForegroundTimeout => ForegroundTimeoutAction {
    /// Move the task to the background
    Detach,
    /// Stop the task
    Cancel,
});

choices!(OnDisconnect => DisconnectAction {
    /// Stop the task
    Cancel,
    /// Move the task to the background
    Detach,
    /// Leave it in the foreground until a client attaches
    Keep,
});

choices!(OnHeld => ExclusiveMode {
    /// Do not start; the error names the holder
    Reject,
    /// Stop the holder, prove that it is gone, then start
    Replace,
    /// Wait for the holder to finish, first come, first served
    Queue,
    /// Start nothing if the holder is an equal task: it is the answer
    Ensure,
});

choices!(EventType => TaskEventType {
    /// The task is recorded
    Created,
    /// The task has left its queue
    Admitted,
    /// The leader runs
    Started,
    /// The task has failed and is started again
    Restarting,
    /// The leader of another attempt runs
    Restarted,
    /// The task has moved to the background
    Detached,
    /// The task has been silent for its --stale-after
    Stale,
    /// A task that was stale or needed input has written output, or was given input
    Active,
    /// The task is ready
    Ready,
    /// The task was not ready in time
    NotReady,
    /// The silent task waits for input
    NeedsInput,
    /// The task is being stopped
    Stopping,
    /// The leader has exited and other processes of the tree have not
    LeaderExited,
    /// The tree is still there after the kill deadline
    KillOverdue,
    /// The output has reached its limit
    OutputLimit,
    /// Lines of the output have matched a pattern of the task
    Matched,
    /// The patterns of the task were changed
    Updated,
    /// The task has finished
    Ended,
    /// The task and its output are deleted
    Removed,
    /// The session has no live task left
    SessionIdle,
});

choices!(State => TaskState {
    /// Waiting in a queue or for an exclusive key
    Queued,
    /// Recorded; the leader does not run yet
    Starting,
    /// The leader or another process is alive
    Running,
    /// Being stopped
    Stopping,
    /// Exit code 0
    Completed,
    /// Another exit code, a signal, a failed start or a failed capture
    Failed,
    /// Stopped by a cancel
    Cancelled,
    /// Stopped by a timeout
    TimedOut,
    /// Ended, and the end is not known
    Lost,
});
