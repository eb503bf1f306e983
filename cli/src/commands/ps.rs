//! `heeler ps`: lists tasks.

use clap::Args;
use heeler_client::{
    Client, Error, ListOptions,
    v1::{BackgroundTask, ListRequest, ListResponse, TaskState},
};

use crate::{
    args::{
        choices::Kind,
        key_value::{self, KeyValue},
        selection,
    },
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::{
        outcome, spec, status,
        table::{Column, Table},
        units,
    },
};

/// The largest page that the daemon accepts.
const PAGE: i32 = 1000;

const COLUMNS: [Column; 8] = [
    Column::whole("ID"),
    Column::whole("STATE"),
    Column::whole("EXIT"),
    Column::whole("AGE"),
    Column::between("NOTE", 4, 20),
    Column::between("SESSION", 7, 20),
    Column::between("NAME", 6, 24),
    Column::between("COMMAND", 12, usize::MAX),
];

const EXAMPLES: &str = "\
Examples:
  heeler ps
  heeler ps -a --session s1 --label team=red
  heeler ps --json | jq -r '.tasks[].id'

NOTE of a live task: fg, it is in the foreground; stale, it has been silent for its --stale-after;
q:NAME, its queue; k:KEY, the key that it is waiting for.";

/// List live tasks: running ones first, then queued ones, each newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ps {
    /// List finished tasks too
    #[arg(short, long)]
    all: bool,

    /// Only tasks of this session
    #[arg(long, value_parser = selection::not_empty())]
    session: Option<String>,

    /// Only tasks with this label; may be repeated
    #[arg(long = "label", value_name = "K=V", value_parser = key_value::parse)]
    labels: Vec<KeyValue>,

    /// Only tasks of this kind
    #[arg(long)]
    kind: Option<Kind>,

    /// List at most N tasks
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    #[command(flatten)]
    client: ClientArgs,
}

impl Ps {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let listed = self.list(&cx.client).await?;
        if cx.print_json(&listed)? == Printed::No {
            let mut table = Table::new(&COLUMNS);
            for task in &listed.tasks {
                add(&mut table, task);
            }
            for line in table.lines(out::width()) {
                cx.out.line(&line)?;
            }
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }

    /// All pages as one response, with the revision of the first: a watch after it misses no event.
    async fn list(&self, client: &Client) -> Result<ListResponse, Error> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let mut request = self.request();
        request.page_size = i32::try_from(limit).unwrap_or(PAGE).clamp(1, PAGE);
        let mut listed = client.list_page(request.clone()).await?;
        while !listed.next_page_token.is_empty() && listed.tasks.len() < limit {
            request.page_token = std::mem::take(&mut listed.next_page_token);
            let page = client.list_page(request.clone()).await?;
            listed.tasks.extend(page.tasks);
            listed.next_page_token = page.next_page_token;
        }
        listed.tasks.sort_by_key(rank);
        listed.tasks.truncate(limit);
        listed.next_page_token.clear();
        Ok(listed)
    }

    fn request(&self) -> ListRequest {
        let filter = selection::filter(self.session.as_deref(), &self.labels);
        let filter = self
            .kind
            .into_iter()
            .fold(filter, |filter, kind| filter.kind(kind.into()));
        let options = if self.all {
            ListOptions::all().with_finished_foreground()
        } else {
            ListOptions::live()
        };
        options.matching(filter).into()
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

fn add(table: &mut Table, task: &BackgroundTask) {
    table.row([
        &task.id,
        status::state(task),
        &outcome::word(task),
        &units::age(task.create_time),
        &status::note(task),
        spec::session(task),
        spec::name(task),
        &spec::command(task),
    ]);
}
