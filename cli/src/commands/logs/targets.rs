//! The tasks whose output is printed.

use heeler_client::{
    Filter, ListOptions, StreamExt,
    v1::{BackgroundTask, FollowOutputRequest, FollowUntil, OutputCursor},
};

use super::Logs;
use crate::{args::selection, context::Context, failure::Failure, out, task_ref};

/// Tasks per page of the list.
const PAGE: u16 = 1000;

#[derive(Debug)]
pub(super) enum Targets {
    One(String),
    Several(Vec<String>),
    /// The tasks of a session, or all.
    Matching(Box<Filter>),
}

impl Targets {
    pub(super) async fn of(logs: &Logs, cx: &Context) -> Result<Self, Failure> {
        if logs.all || logs.session.is_some() {
            let filter = selection::filter(logs.session.as_deref(), &[]);
            return Ok(Self::Matching(Box::new(filter)));
        }
        let mut ids = match logs.ids.as_slice() {
            [] => vec![latest(cx).await?],
            words => task_ref::resolve(&cx.client, words).await?,
        };
        Ok(match ids.len() {
            1 => Self::One(ids.remove(0)),
            _ => Self::Several(ids),
        })
    }

    /// The ids, in the order of the command line or of creation.
    pub(super) async fn ids(self, cx: &Context) -> Result<Vec<String>, Failure> {
        match self {
            Self::One(id) => Ok(vec![id]),
            Self::Several(ids) => Ok(ids),
            Self::Matching(filter) => {
                let mut tasks = cx.client.list(all(*filter).page_size(PAGE));
                let mut found = Vec::new();
                while let Some(task) = tasks.next().await {
                    found.push(task?);
                }
                check_not_empty(&found)?;
                let created =
                    |task: &BackgroundTask| task.create_time.map(|at| (at.seconds, at.nanos));
                found.sort_by_key(created);
                Ok(found.into_iter().map(|task| task.id).collect())
            }
        }
    }

    /// The stream over these tasks until all are finished. One that no task is in would end at once.
    pub(super) async fn follow(
        self,
        cx: &Context,
        request: FollowOutputRequest,
    ) -> Result<FollowOutputRequest, Failure> {
        let request = FollowOutputRequest {
            until: FollowUntil::Finished.into(),
            ..request
        };
        let ids = match self {
            Self::One(id) => vec![id],
            Self::Several(ids) => ids,
            Self::Matching(filter) => {
                let page = cx
                    .client
                    .list_page(all(Filter::clone(&filter)).page_size(1))
                    .await?;
                check_not_empty(&page.tasks)?;
                return Ok(FollowOutputRequest {
                    filter: Some((*filter).into()),
                    include_finished: true,
                    ..request
                });
            }
        };
        let cursor = |id: &String| OutputCursor {
            task_id: id.clone(),
            offset: None,
        };
        Ok(FollowOutputRequest {
            cursors: ids.iter().map(cursor).collect(),
            filter: Some(Filter::all().tasks(ids).into()),
            ..request
        })
    }
}

fn all(filter: Filter) -> ListOptions {
    ListOptions::all()
        .with_finished_foreground()
        .matching(filter)
}

/// A session that no task was ever in is probably misspelt.
fn check_not_empty(tasks: &[BackgroundTask]) -> Result<(), Failure> {
    match tasks.is_empty() {
        true => Err(Failure::NoSuchTask(
            "no task, live or finished, is selected".to_owned(),
        )),
        false => Ok(()),
    }
}

/// The latest task, named on stderr.
async fn latest(cx: &Context) -> Result<String, Failure> {
    let id = task_ref::latest(&cx.client).await?;
    out::note(&format!("output of {id}, the latest task"));
    Ok(id)
}
