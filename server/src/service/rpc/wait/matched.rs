//! A wait for a line of output: each task is searched from its first byte, and then as it writes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use heeler_proto::v1::{self, output_chunk::Content};
use tokio::task::JoinSet;

use super::{Tasks, within};
use crate::{
    output::{
        plain::line_text,
        select::{Escapes, LineFilter},
    },
    service::{
        Service,
        rpc::reader::Reader,
        transport::Call,
        wire::{
            output::{self, Selection, View},
            refusal::Refusal,
        },
    },
    supervisor::{Extent, LINE_BYTES, OutputStart, PieceLimits},
    task::TaskId,
};

/// A piece ends with the first line.
const FIRST_LINE: PieceLimits = PieceLimits {
    bytes: 1,
    lines: Some(1),
};

/// Reads the line to wait for.
pub(in crate::service::rpc) fn check(
    search: Option<v1::OutputSearch>,
) -> Result<Arc<LineFilter>, Refusal> {
    let Some(search) = search else {
        return Err(Refusal::field("match", "is required with MATCHED"));
    };
    Ok(Arc::new(LineFilter {
        stream: output::stream("match.stream", search.stream)?,
        include: Some(output::required_pattern("match.regex", &search.regex)?),
        escapes: Escapes::Removed,
        ..LineFilter::default()
    }))
}

/// Waits until this many of the tasks have a line that matches, or cannot have one any more.
pub(super) async fn wait_for_lines(
    service: &Service,
    ids: &[TaskId],
    count: usize,
    filter: &Arc<LineFilter>,
    timeout: Option<Duration>,
    call: &Call,
) -> Result<Tasks, Refusal> {
    let mut searches = JoinSet::new();
    for id in ids {
        service.find(id).await?;
        let (service, id, call) = (service.clone(), id.clone(), call.clone());
        let filter = Arc::clone(filter);
        searches.spawn(async move {
            let line = first_line(&service, &id, filter, &call).await;
            (id, line)
        });
    }
    let mut found = BTreeMap::new();
    let mut failed = Ok(());
    let enough = async {
        while found.len() < count
            && found.len() + searches.len() >= count
            && let Some(searched) = searches.join_next().await
        {
            match searched {
                Ok((id, Ok(Some(line)))) => drop(found.insert(id, line)),
                Ok((_, Ok(None))) | Err(_) => {}
                Ok((_, Err(refusal))) => {
                    failed = Err(refusal);
                    return;
                }
            }
        }
    };
    within(service, timeout, enough).await?;
    failed?;
    let mut tasks = Tasks {
        satisfied: found.len() >= count,
        ..Tasks::default()
    };
    for id in ids {
        let task = service.find(id).await?;
        match found.remove(id) {
            Some(line) => {
                tasks.met.push(task);
                tasks.lines.push(v1::TaskMatch {
                    task_id: id.to_string(),
                    line: Some(line),
                });
            }
            None => tasks.pending.push(task),
        }
    }
    Ok(tasks)
}

/// Waits for the first line that matches; `None` if the task is finished without one.
async fn first_line(
    service: &Service,
    id: &TaskId,
    filter: Arc<LineFilter>,
    call: &Call,
) -> Result<Option<v1::MatchedLine>, Refusal> {
    let selection = Selection::Lines(filter);
    let mut reader = Reader::new(id.clone(), OutputStart::Offset(0), selection, View::Raw);
    loop {
        let handle = service.supervisor.live(id);
        // The end is checked before the output is read: a finished task writes no more.
        let extent = Extent::of(&*service.find(id).await?);
        let Some(shown) = reader.next(service, extent, FIRST_LINE, call).await? else {
            continue;
        };
        if let Some(line) = shown.chunks.iter().find_map(matched_line) {
            return Ok(Some(line));
        }
        if shown.is_caught_up {
            match (extent, handle) {
                (Extent::Complete { .. }, _) => return Ok(None),
                (Extent::Growing, Some(handle)) => {
                    reader.shrink();
                    handle.output_beyond(shown.end_offset).await;
                }
                // The task has just ended: read again.
                (Extent::Growing, None) => {}
            }
        }
    }
}

fn matched_line(chunk: &v1::OutputChunk) -> Option<v1::MatchedLine> {
    match chunk.content.as_ref()? {
        Content::Data(line) => Some(v1::MatchedLine {
            offset: chunk.offset,
            stream: chunk.stream,
            text: Some(line_text(line, LINE_BYTES)),
        }),
        Content::Text(_) | Content::Gap(_) => None,
    }
}
