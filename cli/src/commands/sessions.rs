//! `heeler sessions`: lists the sessions that have live tasks.

use clap::Args;
use heeler_client::v1::{ListSessionsRequest, ListSessionsResponse, SessionInfo};

use crate::{
    completion,
    context::{ClientArgs, Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::{
        table::{Column, Table},
        units,
    },
};

const COLUMNS: [Column; 7] = [
    Column::between("SESSION", 7, usize::MAX),
    Column::whole("AGENTS"),
    Column::whole("SHELLS"),
    Column::whole("HOSTED"),
    Column::whole("SINCE"),
    Column::whole("ACTIVE"),
    Column::whole("NOTE"),
];

const EXAMPLES: &str = "\
Examples:
  heeler sessions
  heeler sessions --json | jq -r '.sessions[].activity.sessionId'
  heeler ps --session s1

SINCE is the age of the oldest live task, ACTIVE the time since the last output, event or message of \
a worker. A session whose live tasks are all stale has the note `only stale`; one whose tasks end with \
its owners, see `heeler events --end-session`, has the number of owners.";

/// List the sessions that have live tasks
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sessions {
    /// This session alone
    #[arg(add = completion::sessions())]
    session: Option<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Sessions {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let response = self.ask(&cx).await?;
        match cx.print_json(&response)? {
            Printed::Yes => {}
            Printed::No => {
                for line in lines(&response.sessions) {
                    cx.out.line(&line)?;
                }
            }
        }
        cx.out.flush()?;
        Ok(Exit::Success)
    }

    /// All pages as one answer, with the revision of the last.
    async fn ask(&self, cx: &Context) -> Result<ListSessionsResponse, Failure> {
        let mut request = ListSessionsRequest {
            session_id: self.session.clone().unwrap_or_default(),
            ..ListSessionsRequest::default()
        };
        let mut sessions = Vec::new();
        loop {
            let mut page = cx.client.list_sessions(request.clone()).await?;
            sessions.append(&mut page.sessions);
            request.page_token = std::mem::take(&mut page.next_page_token);
            if request.page_token.is_empty() {
                return Ok(ListSessionsResponse { sessions, ..page });
            }
        }
    }
}

/// No sessions, no header: a script reads empty output.
fn lines(sessions: &[SessionInfo]) -> Vec<String> {
    if sessions.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&COLUMNS);
    for session in sessions {
        let activity = session.activity.clone().unwrap_or_default();
        let counts = [activity.agents, activity.shells, activity.hosted];
        let [agents, shells, hosted] = counts.map(|count| count.to_string());
        let stale = match (session.only_stale, activity.stale) {
            (true, _) => Some("only stale".to_owned()),
            (false, 0) => None,
            (false, stale) => Some(format!("{stale} stale")),
        };
        let owners = session.owners.map(|owners| match owners {
            0 => "its owner is gone".to_owned(),
            1 => "1 owner".to_owned(),
            owners => format!("{owners} owners"),
        });
        let note = stale.into_iter().chain(owners).collect::<Vec<_>>();
        let note = note.join(", ");
        table.row([
            &*activity.session_id,
            &agents,
            &shells,
            &hosted,
            &units::age(session.since_time),
            &units::age(session.activity_time),
            &note,
        ]);
    }
    table.lines(out::width())
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::SessionActivity;

    use super::*;

    /// L8
    #[test]
    fn a_session_that_waits_for_stale_tasks_only_says_so() {
        let session = |stale, only_stale| SessionInfo {
            activity: Some(SessionActivity {
                session_id: "s1".into(),
                shells: 2,
                stale,
                ..SessionActivity::default()
            }),
            only_stale,
            ..SessionInfo::default()
        };
        let lines = lines(&[session(0, false), session(1, false), session(2, true)]);
        let ends: Vec<_> = lines[1..].iter().map(|line| line.trim_end()).collect();
        assert!(ends[0].ends_with(" -"), "no note: {lines:?}");
        assert!(ends[1].ends_with("1 stale"), "{lines:?}");
        assert!(ends[2].ends_with("only stale"), "{lines:?}");
    }

    /// E10
    #[test]
    fn a_session_says_how_many_owners_it_has() {
        let session = |stale, owners| SessionInfo {
            activity: Some(SessionActivity {
                session_id: "s1".into(),
                shells: 2,
                stale,
                ..SessionActivity::default()
            }),
            owners: Some(owners),
            ..SessionInfo::default()
        };
        let lines = lines(&[session(0, 0), session(0, 1), session(1, 2)]);
        let ends: Vec<_> = lines[1..].iter().map(|line| line.trim_end()).collect();
        assert!(ends[0].ends_with(" its owner is gone"), "{lines:?}");
        assert!(ends[1].ends_with(" 1 owner"), "{lines:?}");
        assert!(ends[2].ends_with(" 1 stale, 2 owners"), "{lines:?}");
    }
}
