//! `heeler_inspect`: everything about one task.

use heeler_client::{
    Client,
    v1::{Actor, InspectRequest, OutputView, ReadOutputRequest, read_output_request::Start},
};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Effect, Tool};
use crate::{
    connection::Call,
    problem::Problem,
    view::{TaskView, cut, proof, summary, text_of, word},
};

/// The most processes and the longest texts of an answer.
const MOST_PROCESSES: usize = 20;
const LONGEST_TEXT: usize = 300;
const TAIL: u32 = 2048;

pub(crate) struct Inspect;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct InspectArgs {
    /// The id of the task, or its name.
    id: String,
    /// Bytes of its latest output to return. Default: 2048.
    #[serde(default)]
    #[schemars(range(min = 0, max = 16384))]
    tail_bytes: Option<u32>,
}

/// One task whole.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(crate) struct Inspected {
    id: String,
    task: TaskView,
    /// The directory that it was started in.
    cwd: String,
    /// Its processes, each as `pid command`. At most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<String>,
    /// The number of its processes.
    process_count: u32,
    cpu_seconds: f64,
    memory_bytes: u64,
    /// The latest pieces of a worker's progress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<String>,
    /// The stop: who asked for it, why, and the proof that nothing is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<String>,
    /// The end in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    summary: String,
    /// The end of its output.
    output_tail: String,
}

impl Tool for Inspect {
    const NAME: &'static str = "heeler_inspect";
    const TITLE: &'static str = "Inspect a task";
    const DESCRIPTION: &'static str = "Returns everything about one task: state, exit code, processes, ports, \
CPU and memory, the latest steps of a subagent, who stopped it and the proof that nothing is left, and the end of \
its output. Use it when a task behaves unexpectedly: it hangs, is stale, waits for input or failed. Do not use it \
to wait (heeler_wait) or to read all output (heeler_output).";
    const EFFECT: Effect = Effect::Reads;
    type Input = InspectArgs;
    type Output = Inspected;

    async fn call(input: InspectArgs, call: &Call<'_>) -> Result<Inspected, Problem> {
        let task_id = call.task(&input.id).await?.id;
        let tail = tail(&call.client, &task_id, input.tail_bytes.unwrap_or(TAIL)).await?;
        let request = InspectRequest {
            task_id,
            output_tail_bytes: Some(0),
            ..InspectRequest::default()
        };
        let answer = call.client.inspect(request).await?;
        let task = answer.task.unwrap_or_default();
        let resources = answer.resources.unwrap_or_default();
        let cpu = resources
            .cpu_time
            .map(heeler_client::time::from_proto)
            .unwrap_or_default();
        let ports = answer.ports.iter().map(|port| port.port).collect();
        let processes = answer.processes.iter().take(MOST_PROCESSES);
        let processes =
            processes.map(|one| format!("{} {}", one.pid, cut(&one.command, LONGEST_TEXT)));
        let blocks = answer.blocks.iter().map(|block| {
            let kind = word(block.kind().as_str_name(), "BLOCK_KIND_");
            format!("{kind}: {} {}", block.name, cut(&block.text, LONGEST_TEXT))
                .replace(":  ", ": ")
        });
        Ok(Inspected {
            task: TaskView::of(&task).with_ports(ports),
            cwd: task
                .spec
                .as_ref()
                .map(|spec| spec.working_directory.clone())
                .unwrap_or_default(),
            processes: processes.collect(),
            process_count: resources.process_count,
            cpu_seconds: cpu.as_secs_f64(),
            memory_bytes: resources.memory_bytes,
            blocks: blocks.collect(),
            stop: stop(&task),
            summary: summary(&answer.summary, &task.id),
            output_tail: tail,
            id: task.id,
        })
    }
}

/// The end of the output, without terminal escape sequences.
async fn tail(client: &Client, id: &str, bytes: u32) -> Result<String, Problem> {
    let request = ReadOutputRequest {
        task_id: id.to_owned(),
        start: Some(Start::TailBytes(bytes.into())),
        max_bytes: bytes.max(4),
        view: OutputView::Plain.into(),
        ..ReadOutputRequest::default()
    };
    match bytes {
        0 => Ok(String::new()),
        _ => Ok(text_of(&client.read_output(request).await?.chunks)),
    }
}

fn stop(task: &heeler_client::v1::BackgroundTask) -> Option<String> {
    let stop = task.stop.as_ref()?;
    let name = |actor: &Actor| cut(&actor.name, 80);
    let actor = stop
        .actor
        .as_ref()
        .map(name)
        .filter(|name| !name.is_empty());
    let actor = actor.unwrap_or_else(|| "a client without a name".to_owned());
    let signals: Vec<_> = stop
        .signals
        .iter()
        .map(|signal| signal.name.clone())
        .collect();
    let reason = match stop.reason.is_empty() {
        true => String::new(),
        false => format!(" because \"{}\"", cut(&stop.reason, LONGEST_TEXT)),
    };
    let proof = proof(task).unwrap_or_else(|| "not yet proven gone".to_owned());
    Some(format!(
        "stopped by {actor}{reason}; sent {}; {proof}",
        signals.join(", ")
    ))
}

impl Answer for Inspected {
    fn text(&self) -> String {
        let mut lines = vec![self.task.to_string(), format!("cwd {}", self.cwd)];
        if !self.processes.is_empty() {
            let memory = crate::view::bytes(self.memory_bytes);
            let (count, cpu) = (self.process_count, self.cpu_seconds);
            let unit = if count == 1 { "process" } else { "processes" };
            lines.push(format!("{count} {unit}, {cpu:.1}s CPU, {memory} memory:"));
            lines.extend(self.processes.iter().map(|process| format!("  {process}")));
        }
        lines.extend(self.blocks.iter().map(|block| format!("- {block}")));
        lines.extend(self.stop.clone());
        match self.summary.is_empty() {
            false => lines.push(self.summary.clone()),
            true if self.output_tail.trim().is_empty() => lines.push("(no output)".to_owned()),
            true => lines.push(format!(
                "--- end of output\n{}",
                self.output_tail.trim_end()
            )),
        }
        lines.join("\n")
    }
}
