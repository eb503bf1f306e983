//! The sources of the metrics, read when they are asked for.

use std::{collections::BTreeMap, fmt};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, registry::Unit};

use super::{
    MOST_QUEUES,
    families::{Families, Family, Labels},
};
use crate::{
    journal::Journal,
    process::{self, tree},
    service::{
        WebhookMeters,
        transport::CallMeters,
        wire::{convert, task},
    },
    supervisor::{QueueState, Supervisor},
    task::{EndReason, EndState, Filter, Kind, QueueSettings, State},
};

const KINDS: [Kind; 3] = [Kind::Shell, Kind::Agent, Kind::Hosted];
/// The ways to be LOST. They are exposed before they happen: the first one of a series that begins with it is no
/// increase, and alerts would miss it.
const LOSSES: [(Kind, EndReason); 3] = [
    (Kind::Shell, EndReason::SupervisionLost),
    (Kind::Agent, EndReason::SupervisionLost),
    (Kind::Hosted, EndReason::WorkerLost),
];
const LIVE_STATES: [State; 4] = [
    State::Queued,
    State::Starting,
    State::Running,
    State::Stopping,
];

#[derive(Debug)]
pub(super) struct Sources {
    pub(super) supervisor: Supervisor,
    pub(super) journal: Journal,
    pub(super) calls: CallMeters,
    pub(super) webhooks: WebhookMeters,
}

impl Collector for Sources {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families::new(encoder);
        self.tasks(&mut families)?;
        self.ends(&mut families)?;
        self.output(&mut families)?;
        self.journal(&mut families)?;
        self.calls(&mut families)?;
        self.queues(&mut families)?;
        self.server(&mut families)?;
        own_process(&mut families)
    }
}

impl Sources {
    fn tasks(&self, to: &mut Families<'_>) -> fmt::Result {
        let (tasks, _) = self.journal.snapshot(&Filter::default());
        let labels = |kind, state| [("kind", kind), ("state", state)];
        let all = KINDS.iter().flat_map(|kind| {
            let state = |state: &State| (task::kind_name(*kind), task::name_of_state(*state));
            LIVE_STATES.iter().map(state)
        });
        let mut counts: BTreeMap<_, usize> = all.map(|labels| (labels, 0)).collect();
        for live in &tasks {
            let labels = (task::kind_name(live.spec.kind), task::state_name(live));
            *counts.entry(labels).or_default() += 1;
        }
        let counts = counts
            .into_iter()
            .map(|((kind, state), count)| (labels(kind, state), count as f64));
        to.gauges(&Family("heeler_tasks", "Live tasks.", None), counts)?;
        let stale = tasks.iter().filter(|task| task.stale.is_some()).count();
        let family = Family("heeler_tasks_stale", "Live tasks that are stale.", None);
        to.gauge(&family, stale as f64)?;
        let needy = tasks.iter().filter(|task| task.needs_input.is_some());
        let family = Family(
            "heeler_tasks_needing_input",
            "Live tasks that wait for input.",
            None,
        );
        to.gauge(&family, needy.count() as f64)?;
        let family = Family("heeler_tasks_limit", "The most live tasks.", None);
        to.gauge(&family, self.supervisor.limits().tasks as f64)?;
        let finished = self.journal.finished_totals().tasks;
        let family = Family("heeler_tasks_kept", "Finished tasks that are kept.", None);
        to.gauge(&family, finished as f64)
    }

    fn ends(&self, to: &mut Families<'_>) -> fmt::Result {
        let meters = self.journal.meters();
        let mut ended = meters.counts().ended;
        for (kind, reason) in LOSSES {
            ended.entry((kind, EndState::Lost, reason)).or_default();
        }
        let mut ended: Vec<([&str; 3], u64)> = (ended.into_iter())
            .map(|((kind, state, reason), count)| {
                let state = task::name_of_state(State::Ended(state));
                let labels = [task::kind_name(kind), state, task::end_reason_name(reason)];
                (labels, count)
            })
            .collect();
        ended.sort_unstable();
        let ended = ended.into_iter().map(|([kind, state, reason], count)| {
            let labels: Labels<'_, 3> = [("kind", kind), ("state", state), ("reason", reason)];
            (labels, count)
        });
        to.counters(
            &Family("heeler_tasks_ended", "Tasks that have ended.", None),
            ended,
        )?;
        to.kept(
            &Family(
                "heeler_spawn_duration",
                "Time from a Spawn to its leader that runs, of tasks that did not wait.",
                Some(Unit::Seconds),
            ),
            &self.supervisor.meters().spawns,
        )?;
        to.kept(
            &Family(
                "heeler_stop_duration",
                "Time from the request to stop a task to the record that its tree is proven empty.",
                Some(Unit::Seconds),
            ),
            &meters.stops,
        )
    }

    fn output(&self, to: &mut Families<'_>) -> fmt::Result {
        let bytes = |name, help| Family(name, help, Some(Unit::Bytes));
        let family = bytes("heeler_output", "Output of the tasks that have ended.");
        let written = self.journal.meters().counts().output_bytes;
        to.counter(&family, written as f64)?;
        let stored = self.supervisor.stored_output();
        let family = bytes("heeler_output_stored", "Disk that output takes.");
        to.gauges(
            &family,
            [
                ([("tasks", "live")], stored.live as f64),
                ([("tasks", "finished")], stored.finished as f64),
            ],
        )?;
        let family = bytes("heeler_output_limit", "The most disk that output may take.");
        to.gauge(&family, stored.max as f64)
    }

    fn journal(&self, to: &mut Families<'_>) -> fmt::Result {
        let meters = self.journal.meters();
        let mut events: BTreeMap<&str, u64> = convert::type_names().map(|name| (name, 0)).collect();
        let counts = meters.counts().facts.into_iter();
        events.extend(counts.map(|(kind, count)| (convert::type_name(kind), count)));
        let family = Family("heeler_events", "Events that were recorded.", None);
        let events = (events.into_iter()).map(|(name, count)| ([("type", name)], count));
        to.counters(&family, events)?;
        let family = Family("heeler_revision", "The revision of the newest event.", None);
        to.gauge(&family, self.journal.head().0 as f64)?;
        let family = Family(
            "heeler_oldest_revision",
            "The revision of the oldest event that can be read.",
            None,
        );
        to.gauge(&family, self.journal.oldest().0 as f64)?;
        let family = Family(
            "heeler_journal_commit_duration",
            "Time that transactions of the journal take.",
            Some(Unit::Seconds),
        );
        to.kept(&family, &meters.commits)?;
        let family = Family(
            "heeler_journal_size",
            "Disk that the journal takes.",
            Some(Unit::Bytes),
        );
        let size = self.journal.size().ok();
        let files = size.map(|size| [("main", size.main), ("wal", size.wal)]);
        let files = files.into_iter().flatten();
        to.gauges(
            &family,
            files.map(|(file, bytes)| ([("file", file)], bytes as f64)),
        )
    }

    fn calls(&self, to: &mut Families<'_>) -> fmt::Result {
        let family = Family("heeler_calls", "Calls that have ended.", None);
        to.kept(&family, &self.calls.ended)?;
        let family = Family(
            "heeler_calls_open",
            "Calls in progress, streams included.",
            None,
        );
        to.kept(&family, &self.calls.open)?;
        let family = Family(
            "heeler_webhook_requests",
            "Requests to the receivers of webhooks.",
            None,
        );
        let WebhookMeters { delivered, failed } = &self.webhooks;
        to.counters(
            &family,
            [
                ([("result", "accepted")], delivered.get()),
                ([("result", "failed")], failed.get()),
            ],
        )
    }

    fn queues(&self, to: &mut Families<'_>) -> fmt::Result {
        let queues = self.supervisor.queues();
        let family = Family("heeler_queues", "Queues with tasks or settings.", None);
        to.gauge(&family, queues.len() as f64)?;
        let configured = |queue: &&QueueState| queue.settings != QueueSettings::default();
        let queues: Vec<_> = (queues.iter().filter(configured))
            .take(MOST_QUEUES)
            .collect();
        let family = Family("heeler_queue_tasks", "Tasks of a queue.", None);
        let tasks = queues.iter().flat_map(|queue| {
            let labels = |place| -> Labels<'_, 2> { [("queue", &queue.name), ("place", place)] };
            [
                (labels("running"), queue.running as f64),
                (labels("waiting"), queue.waiting as f64),
            ]
        });
        to.gauges(&family, tasks)?;
        let each = |value: fn(&QueueSettings) -> f64| {
            let queues = queues.iter();
            queues.map(move |queue| {
                let labels: Labels<'_, 1> = [("queue", &queue.name)];
                (labels, value(&queue.settings))
            })
        };
        let family = Family("heeler_queue_slots", "Slots of a queue.", None);
        to.gauges(&family, each(|settings| f64::from(settings.slots)))?;
        let family = Family(
            "heeler_queue_paused",
            "1 if a queue is paused, else 0.",
            None,
        );
        to.gauges(&family, each(|settings| f64::from(settings.paused)))
    }

    fn server(&self, to: &mut Families<'_>) -> fmt::Result {
        let family = Family("heeler_build", "The version of the server.", None);
        to.info(&family, &[("version", env!("CARGO_PKG_VERSION"))])?;
        let family = Family(
            "heeler_recovery_duration",
            "Time that the recovery took; 0 until it is done.",
            Some(Unit::Seconds),
        );
        let recovery = self.supervisor.meters().recovery.get();
        to.gauge(&family, recovery.map_or(0.0, |took| took.as_secs_f64()))
    }
}

/// The metrics that Prometheus knows of every process.
fn own_process(to: &mut Families<'_>) -> fmt::Result {
    let count = |name, help| Family(name, help, None);
    if let Ok(own) = tree::own() {
        let family = Family(
            "process_start_time",
            "Start of the server, in seconds since 1970.",
            Some(Unit::Seconds),
        );
        to.gauge(&family, own.started.0 as f64 / 1e6)?;
        let family = Family(
            "process_cpu",
            "CPU time of the server.",
            Some(Unit::Seconds),
        );
        to.counter(&family, own.cpu.as_secs_f64())?;
        let family = Family(
            "process_resident_memory",
            "Resident memory of the server.",
            Some(Unit::Bytes),
        );
        to.gauge(&family, own.memory as f64)?;
    }
    if let Ok(open) = process::open_descriptors() {
        to.gauge(
            &count("process_open_fds", "Open descriptors of the server."),
            open as f64,
        )?;
    }
    if let Some(most) = process::descriptor_limit() {
        to.gauge(
            &count("process_max_fds", "The most descriptors of the server."),
            most as f64,
        )?;
    }
    Ok(())
}
