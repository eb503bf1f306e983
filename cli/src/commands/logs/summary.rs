//! The summaries of finished tasks, as the daemon gives them.

use heeler_client::v1::InspectRequest;

use crate::{
    context::{Context, Printed},
    exit::Exit,
    failure::Failure,
    out,
    render::text,
};

pub(super) async fn print(cx: &mut Context, ids: &[String]) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
    let mut is_first = true;
    for id in ids {
        let request = InspectRequest {
            task_id: id.clone(),
            output_tail_bytes: Some(0),
            block_count: Some(0),
            ..InspectRequest::default()
        };
        let response = match cx.client.inspect(request).await {
            Ok(response) => response,
            Err(error) => {
                exit = exit.and(out::report(&error.into()));
                continue;
            }
        };
        if response.summary.is_empty() {
            out::note(&format!("{id} is not finished: it has no summary yet"));
            exit = exit.and(Exit::Failed);
            continue;
        }
        if cx.print_json(&response)? == Printed::No {
            if !std::mem::take(&mut is_first) {
                cx.out.line("")?;
            }
            for line in response.summary.lines() {
                cx.out.line(&text::visible(line))?;
            }
        }
    }
    cx.out.flush()?;
    Ok(exit)
}
