//! The Heeler daemon as a library: [`run`] is `heeler serve` without its command line.
//!
//! The modules, in the order of a request's path:
//!
//! | module | contents |
//! | --- | --- |
//! | `service` | the gRPC edge: listeners, checks, answers |
//! | `supervisor` | decides what happens to tasks; one actor per live task |
//! | `process` | the operating system: starts, watches and kills trees |
//! | `journal` | the durable, ordered record, and the only source of watchers |
//! | `outbound` | connections to other programs |
//! | `output` | the rules for lines and text of output: pure |
//! | `task` | the vocabulary of all of them |
//! | `serve`, `config` | the daemon from start to end |
//!
//! `service → supervisor → {process, journal}`; the service also reads the journal. No module uses one
//! above it, and other crates use only the names below.

mod config;
mod crash;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod journal;
mod outbound;
mod output;
mod process;
mod serve;
mod service;
mod strays;
mod supervisor;
mod task;
mod wall_clock;

pub use config::{
    AllowedHosts, Config, Http, HttpAccess, Limits, Listen, OnExit, Retention, TlsFiles, Webhooks,
};
pub use journal::Durability;
pub use process::containment::ContainmentSetting;
pub use serve::{Ready, RunError, run};
pub use service::{Dashboard, DashboardError, TraceError, WebhookError};

/// The inner parts that the tests and the benchmarks of this workspace drive without a server.
#[doc(hidden)]
pub mod internal {
    pub use crate::{
        journal::{Boot, Entry, Journal, Past},
        process::{
            launch::EnvBlock,
            shim::{
                AfterFailure, AfterTask, Launch, RecordSync, ShimLink, ShimOrder, ShimPool,
                ShimReport, Stdin,
            },
            task_file::{Exit, LastOutput, MemoryDir, Reading, Records, Start, TaskDir, TreeEnd},
        },
        task::{
            Command, Containment, DEFAULT_GRACE, EndReason, EndState, Ended, EventKind, Gap,
            GapCause, IdKey, Item, Kind, Leader, LeaderEnd, Moment, Monotonic, OnOutputLimit,
            Outcome, OutputPolicy, Seq, Signal, Spec, Started, StartedBy, StopPolicy, Task, TaskId,
            TaskUid, Timestamp,
        },
    };
}
