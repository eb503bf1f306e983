//! `heeler ps`: lists tasks, once or whenever they change.

mod watch;

use std::io;

use clap::Args;
use heeler_client::{
    Client, Error, Filter, ListOptions,
    v1::{BackgroundTask, ListRequest, ListResponse, TaskPorts, TaskState},
};

use crate::{
    args::{
        selection,
        task_filter::{self, Condition},
        value::choices::{AnyKind, State},
        value::key_value::{self, KeyValue},
    },
    completion,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::{
        colour, outcome, progress, spec, status,
        table::{Column, Table},
        task_format::{self, TaskFormat},
        units,
    },
};

/// The largest page that the daemon accepts.
const PAGE: i32 = 1000;

const COLUMNS: [Column; 9] = [
    Column::whole("ID"),
    Column::whole("STATE"),
    Column::whole("EXIT"),
    Column::whole("AGE"),
    Column::between("NOTE", 4, 20),
    Column::between("SESSION", 7, 20),
    Column::between("NAME", 6, 24),
    Column::between("INTENT", 6, 40),
    Column::between("COMMAND", 12, usize::MAX),
];
/// The column that is left out where no task has an intent.
const INTENT: usize = 7;

const EXAMPLES: &str = "\
Examples:
  heeler ps
  heeler ps -a --session s1 --label team=red
  heeler ps --watch
  heeler ps -q --filter label=team=red
  heeler ps --state failed --state lost
  heeler ps --port 3000
  heeler ps -a --format '{id} {state} {name}'
  heeler ps --json | jq -r '.tasks[].id'

NOTE: fg, the task is in the foreground; stale, it has been silent for its --stale-after; needs input, \
it waits for it; pending, ready and not ready, by its --ready flags; 40%, its worker has said how much is done; q:NAME, its queue; \
k:KEY, the key that it is waiting for; :PORT, it listens on this port; output missing, its output could not be \
captured.

Fields of --format: id, uid, state, exit, age, note, session, name, intent, command, pid, queue, parent, labels, \
dir, revision.

Keys of --filter: session, name, label, state, kind, queue, parent, dir, stale, placement, port. All filters \
must match; of several states or kinds, one.";

/// List live tasks: running ones first, then queued ones, each newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ps {
    /// List finished tasks too
    #[arg(short, long)]
    all: bool,

    /// Only tasks of this session
    #[arg(long, value_parser = selection::not_empty(), add = completion::sessions())]
    session: Option<String>,

    /// Only tasks with this label; may be repeated
    #[arg(long = "label", value_name = "K=V", value_parser = key_value::parse)]
    labels: Vec<KeyValue>,

    /// Only tasks of this kind
    #[arg(long)]
    kind: Option<AnyKind>,

    /// Only tasks in this state, finished ones included; may be repeated
    #[arg(long = "state", value_name = "STATE")]
    states: Vec<State>,

    /// Only tasks with a process that listens on this TCP port
    #[arg(long, value_name = "N", value_parser = task_filter::port)]
    port: Option<u16>,

    /// Only tasks that match, e.g. name=dev; may be repeated
    #[arg(long = "filter", value_name = "KEY=VALUE", value_parser = task_filter::parse)]
    conditions: Vec<Condition>,

    /// List at most N tasks
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,

    /// Print ids alone
    #[arg(short, long, conflicts_with_all = ["json", "format"])]
    quiet: bool,

    /// Print each task in this form, e.g. '{id} {state}'
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "json", value_parser = task_format::parse)]
    format: Option<TaskFormat>,

    /// Print the list again whenever it changes, until Ctrl-C
    #[arg(short, long)]
    watch: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Ps {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let listed = self.list(&cx.client).await?;
        if self.watch {
            return self.watch(cx, listed).await;
        }
        if cx.print_json(&listed)? == Printed::No {
            self.print(&mut cx, &listed)?;
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }

    fn print(&self, cx: &mut Context, listed: &ListResponse) -> Result<(), Failure> {
        for line in self.lines(listed) {
            cx.out.line(&line)?;
        }
        Ok(())
    }

    fn lines(&self, listed: &ListResponse) -> Vec<String> {
        let tasks = &listed.tasks;
        if self.quiet {
            return tasks.iter().map(|task| task.id.clone()).collect();
        }
        if let Some(format) = &self.format {
            return tasks.iter().map(|task| format.text(task)).collect();
        }
        let mut table = Table::new(&COLUMNS);
        for task in tasks {
            add(&mut table, task, &listed.ports);
        }
        if tasks.iter().all(|task| progress::intent(task).is_empty()) {
            table.leave_out(INTENT);
        }
        let mut lines = table.lines(out::width());
        if colour::is_wanted_on(&io::stdout()) {
            let column = lines[0].find("STATE").unwrap_or(usize::MAX);
            for (line, task) in lines[1..].iter_mut().zip(tasks) {
                *line = colour::state(line, column, task);
            }
        }
        lines
    }

    /// All pages as one response, with the revision of the first: a watch after it misses no event.
    async fn list(&self, client: &Client) -> Result<ListResponse, Error> {
        let mut request = self.request();
        let limit = self.limit.unwrap_or(usize::MAX);
        request.page_size = i32::try_from(limit).unwrap_or(PAGE).clamp(1, PAGE);
        let mut listed = client.list_page(request.clone()).await?;
        while !listed.next_page_token.is_empty() && listed.tasks.len() < limit {
            request.page_token = std::mem::take(&mut listed.next_page_token);
            let page = client.list_page(request.clone()).await?;
            listed.tasks.extend(page.tasks);
            listed.ports.extend(page.ports);
            listed.next_page_token = page.next_page_token;
        }
        self.arrange(&mut listed.tasks);
        let is_listed = |id: &str| listed.tasks.iter().any(|task| task.id == id);
        listed.ports.retain(|own| is_listed(&own.task_id));
        listed.next_page_token.clear();
        Ok(listed)
    }

    /// Sorts the tasks and cuts them to the limit.
    fn arrange(&self, tasks: &mut Vec<BackgroundTask>) {
        tasks.sort_by_key(rank);
        tasks.truncate(self.limit.unwrap_or(usize::MAX));
    }

    fn request(&self) -> ListRequest {
        let states = self.states.iter().map(|state| (*state).into());
        let filter = states.fold(self.filter(), Filter::state);
        let options = match self.all {
            true => ListOptions::all(),
            false => ListOptions::live(),
        };
        let options = options.with_finished_foreground().matching(filter);
        match self.quiet || self.format.is_some() {
            true => options.into(),
            false => options.with_ports().into(),
        }
    }

    fn filter(&self) -> Filter {
        let filter = selection::filter(self.session.as_deref(), &self.labels);
        let kinds = self.kind.into_iter();
        let filter = kinds.fold(filter, |filter, kind| filter.kind(kind.into()));
        let filter = self.port.into_iter().fold(filter, Filter::port);
        self.conditions
            .iter()
            .fold(filter, |filter, condition| condition.add_to(filter))
    }
}

/// The sort key: running, queued, finished.
fn rank(task: &BackgroundTask) -> u8 {
    match task.state() {
        TaskState::Unspecified | TaskState::Starting | TaskState::Running | TaskState::Stopping => {
            0
        }
        TaskState::Queued => 1,
        TaskState::Completed
        | TaskState::Failed
        | TaskState::Cancelled
        | TaskState::TimedOut
        | TaskState::Lost => 2,
    }
}

fn add(table: &mut Table, task: &BackgroundTask, ports: &[TaskPorts]) {
    let mut note = status::note(task);
    let own = ports.iter().filter(|own| own.task_id == task.id);
    for port in own.flat_map(|own| &own.ports) {
        let word = format!(":{}", port.port);
        // One for each address.
        if !note.split(' ').any(|other| other == word) {
            note = [note, word].join(" ").trim_start().to_owned();
        }
    }
    table.row([
        &task.id,
        status::state(task),
        &outcome::word(task),
        &units::age(task.create_time),
        &note,
        spec::session(task),
        spec::name(task),
        progress::intent(task),
        &spec::command(task),
    ]);
}
