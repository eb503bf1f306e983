//! The state of the screen: the live tasks, the selected one and its output. It calls nothing.

use std::collections::BTreeMap;

use heeler_client::{
    Chunk, WatchItem, time,
    v1::{BackgroundTask, InspectResponse, TaskEventType},
};

use super::{
    pane::Pane,
    tree::{self, Row, Sort},
};
use crate::render::{progress, spec, status, units};

/// The use of the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Select,
    /// Keys are typed into the filter.
    Filter,
    /// The cancel of this task waits for a yes.
    Confirm(String),
    Help,
}

/// The daemon as far as the latest call shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Daemon {
    Answers,
    Unavailable,
}

#[derive(Debug)]
pub(super) struct Model {
    tasks: BTreeMap<String, BackgroundTask>,
    pub(super) sort: Sort,
    pub(super) filter: String,
    pub(super) mode: Mode,
    pub(super) daemon: Daemon,
    selected: Option<String>,
    /// None while the output is hidden.
    pub(super) pane: Option<Pane>,
    /// The processes, memory and ports of the selected task.
    pub(super) resources: String,
    /// The result of the latest call, until the next key.
    pub(super) message: String,
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            tasks: BTreeMap::new(),
            sort: Sort::Session,
            filter: String::new(),
            mode: Mode::Select,
            daemon: Daemon::Answers,
            selected: None,
            pane: Some(Pane::default()),
            resources: String::new(),
            message: String::new(),
        }
    }

    /// Forgets all tasks before another initial state; the selection stays.
    pub(super) fn reset(&mut self) {
        self.tasks.clear();
    }

    pub(super) fn apply(&mut self, item: WatchItem) {
        self.daemon = Daemon::Answers;
        match item {
            WatchItem::Initial(task) => drop(self.tasks.insert(task.id.clone(), task)),
            // It follows the initial state.
            WatchItem::Bookmark(_) => self.select_any(),
            WatchItem::Event(event) => match (event.r#type(), event.task) {
                (TaskEventType::Removed, Some(task)) => self.remove(&task.id),
                (_, Some(task)) => self.put(task),
                (_, None) => {}
            },
        }
    }

    /// Keeps a task: a finished one only if it is selected. The selection leaves one that the filter hides from now on.
    fn put(&mut self, task: BackgroundTask) {
        let is_selected = self.selected.as_deref() == Some(&task.id);
        if is_selected && !matches(&task, &self.filter.to_lowercase()) {
            let at = self.position();
            self.tasks.insert(task.id.clone(), task);
            self.select(at);
        } else if is_selected || !status::is_finished(&task) {
            self.tasks.insert(task.id.clone(), task);
            self.select_any();
        } else {
            self.tasks.remove(&task.id);
        }
    }

    fn remove(&mut self, id: &str) {
        let is_selected = self.selected.as_deref() == Some(id);
        let at = is_selected.then(|| self.position());
        self.tasks.remove(id);
        if let Some(at) = at {
            self.select(at);
        }
    }

    /// Selects the first row if no task is selected.
    fn select_any(&mut self) {
        if self.selected().is_none() {
            self.select(0);
        }
    }

    /// The rows that match the filter, in their order.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let wanted = self.filter.to_lowercase();
        let tasks = self.tasks.values();
        tree::arrange(
            tasks.filter(|task| matches(task, &wanted)).collect(),
            self.sort,
        )
    }

    /// The live tasks, shown or not.
    pub(super) fn live(&self) -> impl Iterator<Item = &BackgroundTask> {
        let tasks = self.tasks.values();
        tasks.filter(|task| !status::is_finished(task))
    }

    pub(super) fn selected(&self) -> Option<&BackgroundTask> {
        self.tasks.get(self.selected.as_deref()?)
    }

    /// The row of the selected task; the first one if there is none.
    pub(super) fn position(&self) -> usize {
        self.position_of_selected().unwrap_or(0)
    }

    fn position_of_selected(&self) -> Option<usize> {
        let selected = self.selected.as_deref()?;
        self.rows().iter().position(|row| row.task.id == selected)
    }

    /// Selects a row, or the last one if there are not so many.
    pub(super) fn select(&mut self, at: usize) {
        let rows = self.rows();
        let row = rows.get(at).or(rows.last());
        let id = row.map(|row| row.task.id.clone());
        if id != self.selected {
            self.selected = id;
            self.resources.clear();
            self.clear_output();
            let selected = self.selected.as_deref();
            self.tasks
                .retain(|id, task| selected == Some(id) || !status::is_finished(task));
        }
    }

    /// Moves the selection by this many rows, up with a negative number.
    pub(super) fn step(&mut self, rows: isize) {
        self.select(self.position().saturating_add_signed(rows));
    }

    /// Changes the filter. The selection stays if the filter does not hide it.
    pub(super) fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        if self.position_of_selected().is_none() {
            self.select(0);
        }
    }

    pub(super) fn toggle_output(&mut self) {
        self.pane = match self.pane {
            Some(_) => None,
            None => Some(Pane::default()),
        };
    }

    pub(super) fn clear_output(&mut self) {
        if let Some(pane) = &mut self.pane {
            *pane = Pane::default();
        }
    }

    /// Adds output of a task, if it is the selected one.
    pub(super) fn output(&mut self, id: &str, chunk: &Chunk) {
        if let Some(pane) = &mut self.pane
            && self.selected.as_deref() == Some(id)
        {
            pane.push(chunk);
        }
    }

    pub(super) fn inspected(&mut self, response: &InspectResponse) {
        let id = response.task.as_ref().map(|task| task.id.as_str());
        if id == self.selected.as_deref() {
            self.resources = resources(response);
        }
    }
}

/// Returns whether a column of the task contains the text, which is in lower case.
fn matches(task: &BackgroundTask, wanted: &str) -> bool {
    let has = |cell: &str| cell.to_lowercase().contains(wanted);
    wanted.is_empty()
        || has(&task.id)
        || has(status::state(task))
        || has(&status::note(task))
        || has(spec::session(task))
        || has(spec::name(task))
        || has(progress::intent(task))
        || has(&spec::command(task))
}

/// The resources and ports of a live task, such as `2 processes, CPU 1.5s, 12.0 MiB, :3000`.
fn resources(response: &InspectResponse) -> String {
    let Some(used) = response.resources.filter(|used| used.process_count > 0) else {
        return String::new();
    };
    let mut facts = match used.process_count {
        1 => vec!["1 process".to_owned()],
        count => vec![format!("{count} processes")],
    };
    let cpu = used.cpu_time.map(time::from_proto).unwrap_or_default();
    facts.push(format!("CPU {}", units::duration(cpu)));
    facts.push(units::size(used.memory_bytes));
    let mut ports: Vec<u32> = response.ports.iter().map(|port| port.port).collect();
    ports.sort_unstable();
    ports.dedup();
    facts.extend(ports.iter().map(|port| format!(":{port}")));
    facts.join(", ")
}
