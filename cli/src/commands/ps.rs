//! `heeler ps`: the tasks, as a table that fits the terminal. A pipe gets it uncut.

use clap::Args;
use heeler_client::{
    Client, Error, ListOptions,
    v1::{BackgroundTask, ListRequest, ListResponse, TaskState},
};

use crate::{
    context::{ClientArgs, Context, Printed},
    exit::{Exit, Failure},
    out,
    table::{Column, Fit, Table},
    values::{self, Kind, Pair},
    words,
};

/// The most that a page may have.
const PAGE: i32 = 1000;

const COLUMNS: [Column; 8] = [
    Column {
        title: "ID",
        fit: Fit::Whole,
    },
    Column {
        title: "STATE",
        fit: Fit::Whole,
    },
    Column {
        title: "EXIT",
        fit: Fit::Whole,
    },
    Column {
        title: "AGE",
        fit: Fit::Whole,
    },
    Column {
        title: "NOTE",
        fit: Fit::Between { least: 4, most: 20 },
    },
    Column {
        title: "SESSION",
        fit: Fit::Between { least: 7, most: 20 },
    },
    Column {
        title: "NAME",
        fit: Fit::Between { least: 6, most: 24 },
    },
    Column {
        title: "COMMAND",
        fit: Fit::Between {
            least: 12,
            most: usize::MAX,
        },
    },
];

const EXAMPLES: &str = "\
Examples:
  heeler ps
  heeler ps -a --session s1 --label team=red
  heeler ps --json | jq -r '.tasks[].id'

NOTE says of a live task that it is in the foreground (fg), that it has been silent for longer than its
--stale-after (stale), in which queue it is (q:NAME), and for which key it waits (k:KEY).";

/// List live tasks: running ones first, then those that wait for their turn, each newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ps {
    /// Finished tasks too
    #[arg(short, long)]
    all: bool,

    /// Only of this session
    #[arg(long, value_parser = values::not_empty())]
    session: Option<String>,

    /// Only with this label at this value; may be given again
    #[arg(long = "label", value_name = "K=V", value_parser = values::pair)]
    labels: Vec<Pair>,

    /// Only of this kind
    #[arg(long)]
    kind: Option<Kind>,

    /// At most this many
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
        Ok(Exit::Done)
    }

    /// Every page as one. Its revision is the first page's: watching after it misses nothing.
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
        let filter = values::filter(self.session.as_deref(), &self.labels);
        let filter = self
            .kind
            .into_iter()
            .fold(filter, |filter, kind| filter.kind(kind.into()));
        let options = if self.all {
            ListOptions::all()
        } else {
            ListOptions::live()
        };
        options.matching(filter).into()
    }
}

/// Its place among the others: what runs, what will run, what has run.
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
        words::state(task),
        &words::exit(task),
        &words::age(task.create_time),
        &words::note(task),
        &task.session_id,
        &task.name,
        &words::command(task),
    ]);
}
