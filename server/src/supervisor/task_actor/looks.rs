//! Looks at the task from outside: whether it is ready, and whether it waits for input. They run beside
//! the actor, which gets their results.

use std::{collections::BTreeMap, time::Duration};

use tokio::task::JoinSet;

use super::TaskActor;
use crate::{
    process::{
        launch::EnvBlock,
        tree::{TreeRoot, input_wait::is_input_awaited},
    },
    supervisor::{
        lifecycle::Probed,
        looks::probe::{Environment, Look, RunningLook},
    },
    task::{Leader, Probe, SpawnRequest, Spec, Started},
};

/// The time that the end of a task waits for the end of a command that looks at it.
const END_WITHIN: Duration = Duration::from_secs(1);

/// The looks of one actor.
#[derive(Debug, Default)]
pub(super) struct Looks {
    ready: Option<RunningLook>,
    /// True for a task that waits for input.
    input: JoinSet<bool>,
    /// The environment of the task, while a command may look at it.
    environment: Option<EnvBlock>,
}

/// The result of a look.
#[derive(Debug, Clone, Copy)]
pub(super) enum Looked {
    Ready(Probed),
    InputAwaited,
}

impl Looks {
    /// Waits for the next result; for ever if there is none to come. Cancel safe.
    pub(super) async fn next(&mut self) -> Looked {
        loop {
            tokio::select! {
                probed = result(&mut self.ready) => {
                    self.ready = None;
                    return Looked::Ready(probed);
                }
                Some(is_awaited) = self.input.join_next() => {
                    if let Ok(true) = is_awaited {
                        return Looked::InputAwaited;
                    }
                }
            }
        }
    }

    /// Ends the look at the readiness, and waits a while for its end.
    async fn end(&mut self) {
        if let Some(look) = self.ready.take() {
            look.end(END_WITHIN).await;
        }
    }
}

async fn result(look: &mut Option<RunningLook>) -> Probed {
    match look {
        Some(look) => look.result().await,
        None => std::future::pending().await,
    }
}

impl TaskActor {
    /// Begins a look at whether the task is ready.
    pub(super) fn begin_look(&mut self) {
        let task = &self.life.task;
        let leader = task.started.as_ref().and_then(Started::leader);
        let (Some(ready), Some(leader)) = (self.life.awaited_readiness(), leader) else {
            return;
        };
        let look = Look {
            task: task.id.clone(),
            ready: ready.clone(),
            root: self.tree_root(),
            directory: task.spec.working_directory.clone(),
            environment: self.probe_environment(leader),
        };
        self.looks.ready = Some(RunningLook::start(&self.shared, look));
    }

    /// Begins a look at whether the task waits for input, unless one is under way.
    pub(super) fn look_for_input(&mut self) {
        if self.looks.input.is_empty() {
            let root = self.tree_root();
            // A process that hangs can block the read of its /proc files.
            self.looks
                .input
                .spawn_blocking(move || is_input_awaited(&root));
        }
    }

    fn tree_root(&self) -> TreeRoot {
        TreeRoot {
            shim: self.shim_process(),
            cgroup: self.cgroup.clone(),
        }
    }

    fn probe_environment(&self, leader: Leader) -> Environment {
        match &self.looks.environment {
            Some(block) => Environment::Known(block.clone()),
            None => Environment::OfLeader {
                pid: leader.pid,
                start_ticks: leader.start_ticks,
                otherwise: self.environment(&SpawnRequest {
                    request_id: None,
                    spec: Spec::clone(&self.life.task.spec),
                    variables: BTreeMap::new(),
                }),
            },
        }
    }

    /// Drops what the task does not need any more: the preparation of a leader that runs, and a look at
    /// a task whose readiness is decided.
    pub(super) fn drop_unneeded(&mut self) {
        let probe = self.life.awaited_readiness().map(|ready| &ready.probe);
        let is_command_awaited = matches!(probe, Some(Probe::Command(_)));
        if self.prepared.is_some() && !self.is_starting() {
            let prepared = self.prepared.take().filter(|_| is_command_awaited);
            self.looks.environment = prepared.map(|prepared| prepared.into_environment());
        }
        if probe.is_none() {
            self.looks.environment = None;
            // Its end is awaited with the task's.
            if let Some(look) = &mut self.looks.ready {
                look.stop();
            }
        }
    }

    /// Ends a look before the task's end is recorded: a command that looks at a task ends with it.
    pub(super) async fn end_look(&mut self) {
        self.looks.end().await;
    }
}
