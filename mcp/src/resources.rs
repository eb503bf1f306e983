//! Resources: the task list, and the output of each task, with updates for clients that subscribe.

mod subscriptions;

use std::time::Duration;

use heeler_client::{
    Client, Filter, ListOptions, StreamExt, Watch, WatchOptions, time,
    v1::{BackgroundTask, ReadOutputRequest, read_output_request::Start},
};
use rmcp::{
    ErrorData,
    model::{
        ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
        SubscriptionFilter,
    },
};

use tokio::time::sleep;

use crate::{
    connection::{Call, is_not_found},
    problem::Problem,
    view::{Excerpt, Limit, Part, TaskView},
};

pub(crate) use subscriptions::{Subscriptions, listen};

const TASKS: &str = "heeler://tasks";
const OUTPUT_TEMPLATE: &str = "heeler://tasks/{id}/output";
/// The most tasks in a page of a list.
const PAGE: u16 = 100;
/// The longest single wait for output.
const POLL: Duration = Duration::from_secs(60);
/// The pause before a read that has failed is repeated.
const PAUSE: Duration = Duration::from_secs(1);

/// The address of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Uri {
    Tasks,
    /// The output of the task with this id.
    Output(String),
}

impl Uri {
    pub(crate) fn parse(text: &str) -> Result<Self, ErrorData> {
        let unknown = || {
            let text: String = text.chars().take(200).collect();
            let message = format!("no resource {text:?}: there are {TASKS} and {OUTPUT_TEMPLATE}");
            ErrorData::resource_not_found(message, None)
        };
        let rest = text.strip_prefix(TASKS).ok_or_else(unknown)?;
        match rest
            .strip_prefix('/')
            .and_then(|rest| rest.strip_suffix("/output"))
        {
            None if rest.is_empty() => Ok(Self::Tasks),
            Some(id) if !id.is_empty() => Ok(Self::Output(id.to_owned())),
            Some(_) | None => Err(unknown()),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Tasks => TASKS.to_owned(),
            Self::Output(id) => OUTPUT_TEMPLATE.replace("{id}", id),
        }
    }

    /// The changes of the resource from now on.
    pub(crate) async fn source(&self, call: &Call<'_>) -> Result<Source, Problem> {
        let uri = self.text();
        let changes = match self {
            Self::Tasks => {
                let filter = call.reachable();
                Changes::Tasks(Box::new(watch(&call.client, filter).await?))
            }
            Self::Output(id) => {
                let id = call.task(id).await?.id;
                let end = Excerpt::read(&call.client, &id, Part::Since(0), Limit::SMALL)
                    .await?
                    .end;
                Changes::Output { id, end }
            }
        };
        Ok(Source {
            uri,
            client: call.client.clone(),
            changes,
        })
    }
}

/// A watch that is open: from here on no event is missed.
async fn watch(client: &Client, filter: Filter) -> Result<Watch, Problem> {
    let mut watch = client.watch(WatchOptions::from_now().matching(filter));
    match watch.next().await {
        Some(Err(error)) => Err(error.into()),
        Some(Ok(_)) | None => Ok(watch),
    }
}

/// The changes of one resource.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) uri: String,
    client: Client,
    changes: Changes,
}

#[derive(Debug)]
enum Changes {
    Tasks(Box<Watch>),
    Output { id: String, end: u64 },
}

impl Source {
    /// Completes at the next change. `None`: there will be none. A daemon that is away is waited for.
    pub(crate) async fn changed(&mut self) -> Option<()> {
        match &mut self.changes {
            Changes::Tasks(watch) => loop {
                match watch.next().await?.ok()? {
                    heeler_client::WatchItem::Event(_) => return Some(()),
                    heeler_client::WatchItem::Initial(_)
                    | heeler_client::WatchItem::Bookmark(_) => {}
                }
            },
            Changes::Output { id, end } => loop {
                let request = ReadOutputRequest {
                    task_id: id.clone(),
                    start: Some(Start::Offset(*end)),
                    max_bytes: 1,
                    wait: Some(time::to_proto(POLL)),
                    ..ReadOutputRequest::default()
                };
                let answer = match self.client.read_output(request).await {
                    Ok(answer) => answer,
                    Err(error) if error.refusal().is_some_and(is_not_found) => return None,
                    Err(_) => {
                        sleep(PAUSE).await;
                        continue;
                    }
                };
                if answer.end_offset > *end {
                    *end = answer.end_offset;
                    return Some(());
                }
                if answer.complete {
                    return None;
                }
            },
        }
    }
}

/// The task list, and the outputs of the tasks.
pub(crate) async fn list(
    cursor: Option<String>,
    call: &Call<'_>,
) -> Result<ListResourcesResult, Problem> {
    let all = Resource::new(TASKS, "tasks")
        .with_description("The tasks of this session, one a line: live ones first")
        .with_mime_type("text/plain");
    // On the first page.
    let all = cursor.is_none().then_some(all);
    let options = ListOptions::all()
        .matching(call.reachable())
        .page_size(PAGE)
        .page_token(cursor.unwrap_or_default());
    let page = call.client.list_page(options).await?;
    let outputs = page.tasks.iter().map(output);
    let mut result = ListResourcesResult::with_all_items(all.into_iter().chain(outputs).collect());
    result.next_cursor = Some(page.next_page_token).filter(|token| !token.is_empty());
    Ok(result)
}

fn output(task: &BackgroundTask) -> Resource {
    let view = TaskView::of(task);
    let resource = Resource::new(
        Uri::Output(view.id.clone()).text(),
        format!("output of {}", view.id),
    );
    let resource = resource
        .with_description(view.to_string())
        .with_mime_type("text/plain");
    // The daemon counts the output of a running task when it is read.
    match view.is_finished() {
        true => resource.with_size(task.output_bytes),
        false => resource,
    }
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(OUTPUT_TEMPLATE, "output")
            .with_description("The output of a task: if it is long, its beginning and its end")
            .with_mime_type("text/plain"),
    ]
}

pub(crate) async fn read(uri: &Uri, call: &Call<'_>) -> Result<ReadResourceResult, Problem> {
    let text = match uri {
        Uri::Tasks => {
            let options = ListOptions::all()
                .matching(call.reachable())
                .page_size(PAGE);
            let page = call.client.list_page(options).await?;
            let mut lines: Vec<_> = page
                .tasks
                .iter()
                .map(|task| TaskView::of(task).to_string())
                .collect();
            if !page.next_page_token.is_empty() {
                lines.push("There are more: see heeler_list".to_owned());
            }
            lines.join("\n")
        }
        Uri::Output(id) => {
            let id = call.task(id).await?.id;
            Excerpt::read(&call.client, &id, Part::Since(0), Limit::of(Some(65_536)))
                .await?
                .text
        }
    };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(
        text,
        uri.text(),
    )]))
}

/// The part of a subscription that is possible.
pub(crate) fn accepted(asked: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = asked.resource_subscriptions.iter().flatten();
    let known = uris.filter(|uri| Uri::parse(uri).is_ok());
    SubscriptionFilter::builder()
        .resource_subscriptions(known.cloned())
        .build()
}

pub(crate) async fn sources(
    accepted: &SubscriptionFilter,
    call: &Call<'_>,
) -> Result<Vec<Source>, Problem> {
    let mut sources = Vec::new();
    for uri in accepted.resource_subscriptions.iter().flatten() {
        if let Ok(uri) = Uri::parse(uri) {
            sources.push(uri.source(call).await?);
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M5
    #[test]
    fn a_uri_is_the_list_an_output_or_refused_with_those_there_are() {
        assert_eq!(Uri::parse("heeler://tasks").unwrap(), Uri::Tasks);
        let output = Uri::parse("heeler://tasks/shell-a/output").unwrap();
        assert_eq!(output, Uri::Output("shell-a".to_owned()));
        for bad in [
            "",
            "heeler://tasks/",
            "heeler://tasks//output",
            "file:///etc/passwd",
        ] {
            let refused = Uri::parse(bad).unwrap_err();
            assert!(
                refused.message.contains("there are heeler://tasks"),
                "{bad}"
            );
        }
    }
}
