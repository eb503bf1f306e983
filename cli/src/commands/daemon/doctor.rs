//! `heeler doctor`: the daemon's settings, what is wrong with it, and trees whose daemon is gone.

mod report;

use std::path::{Path, PathBuf};

use clap::{
    Args,
    builder::{NonEmptyStringValueParser, TypedValueParser},
};
use heeler_client::{Error, ListOptions, v1::ServerInfo};

use self::report::Report;
use crate::{
    context::{ClientArgs, Context},
    daemon::orphans::{self, Cause, Orphan, ProcTable},
    daemon::peer::Peer,
    exit::Exit,
    failure::Failure,
    out::{self, Format, Out},
};

const EXAMPLES: &str = "\
Examples:
  heeler doctor
  heeler doctor --json | jq .orphans
  heeler doctor --end-orphans /tmp/deleted-state

It starts no daemon. The exit code is 0 if nothing is wrong, else 1.

An orphaned tree is one whose daemon is gone. If its state directory exists, a daemon that serves it takes the task \
over; if it is deleted, no daemon can. --end-orphans ends the trees of the directories that it names, and no others. \
A process that has lost its shim, or was abandoned \
by its task's --orphans policy, is named and never ended. Trees of a running daemon are never touched.";

/// Check the daemon, and find processes whose daemon is gone
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    /// End the orphaned trees of these state directories
    #[arg(long, value_name = "DIR", num_args = 1.., value_parser = NonEmptyStringValueParser::new().map(PathBuf::from))]
    end_orphans: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

/// The daemon that answers.
struct Found {
    address: String,
    server: Option<ServerInfo>,
    peer: Option<Peer>,
}

impl Doctor {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut report = Report::default();
        report.daemon(&self.daemon().await);
        let orphans = orphans::find(&ProcTable::read());
        report.orphans(&orphans);
        self.print(&report)?;
        let mut exit = match report.problems.is_empty() {
            true => Exit::Success,
            false => Exit::Failed,
        };
        for orphan in &orphans {
            exit = exit.and(match self.ends(orphan) {
                true => end(orphan).await,
                false => Exit::Failed,
            });
        }
        Ok(exit)
    }

    /// The running daemon, or the reason why there is none.
    async fn daemon(&self) -> Result<Found, Failure> {
        let cx = Context::find(&self.client).await?;
        let page = cx
            .client
            .list_page(ListOptions::live().page_size(1))
            .await?;
        Ok(Found {
            address: cx.client.address().to_string(),
            server: page.server,
            peer: Peer::at(cx.client.address()),
        })
    }

    fn print(&self, report: &Report) -> Result<(), Failure> {
        let mut out = Out::new();
        match self.client.format() {
            Format::Json => out.line(&report.json().to_string())?,
            Format::Text => report.lines().iter().try_for_each(|line| out.line(line))?,
        }
        Ok(out.flush()?)
    }

    fn ends(&self, orphan: &Orphan) -> bool {
        match &orphan.cause {
            Cause::Deleted(state) | Cause::NotServed(state) => {
                self.end_orphans.iter().any(|dir| is_same(dir, state))
            }
            Cause::NoShim(_) => false,
        }
    }
}

/// Returns whether two paths name the same directory, which may be deleted.
fn is_same(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    matches!((whole(a), whole(b)), (Ok(a), Ok(b)) if a == b)
}

async fn end(orphan: &Orphan) -> Exit {
    let left = orphans::end(orphan).await;
    let name = report::name(orphan);
    match left.as_slice() {
        [] => {
            out::note(&format!("ended {name}"));
            Exit::Success
        }
        left => {
            let names: Vec<String> = left.iter().map(report::process).collect();
            out::note(&format!("{name} is NOT gone: {}", names.join("; ")));
            Exit::Failed
        }
    }
}

/// Returns whether an error says that no daemon is running, which is no problem by itself.
fn is_absence(failure: &Failure) -> bool {
    matches!(failure, Failure::Client(Error::NotRunning { .. }))
}
