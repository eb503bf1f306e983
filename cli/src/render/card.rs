//! The card of `heeler inspect`: everything about one task.

use heeler_client::{
    Chunk, time,
    v1::{
        BackgroundTask, Containment, InspectResponse, ListeningPort, OutputInfo, OutputTail,
        StopRecord,
    },
};
use prost_types::Timestamp;

use super::{causes, gap, policies, process_tree, progress, proof, spec, status, text, units};

/// The lines of the card; tables are cut to the terminal's width.
pub(crate) fn lines(response: &InspectResponse, terminal: Option<usize>) -> Vec<String> {
    let mut card = Card { lines: Vec::new() };
    if let Some(task) = &response.task {
        card.heading(&format!("{}  {}", task.id, status::state_and_outcome(task)));
        card.identity(task);
        card.times(task);
        for (name, value) in policies::facts(task) {
            card.fact(name, &value);
        }
        if let Some(stop) = &task.stop {
            card.stop(stop);
        }
        card.progress(task, response);
    }
    card.resources(response);
    if !response.processes.is_empty() {
        card.heading("");
        let tree = process_tree::table(&response.processes);
        card.lines.extend(tree.lines(terminal));
    }
    if let Some(output) = &response.output {
        card.stored(output);
    }
    if !response.ports.is_empty() {
        card.ports(&response.ports);
    }
    match (&response.output_tail, response.summary.as_str()) {
        (Some(tail), "") => card.output(tail),
        (None, "") => {}
        // It has the end of the output.
        (_, summary) => card.summary(summary),
    }
    card.lines
}

struct Card {
    lines: Vec<String>,
}

impl Card {
    fn heading(&mut self, heading: &str) {
        self.lines.push(text::visible(heading).into_owned());
    }

    /// Adds a named fact, unless its value is empty.
    fn fact(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            let value = text::visible(value);
            self.lines.push(format!("  {name:<12} {value}"));
        }
    }

    fn identity(&mut self, task: &BackgroundTask) {
        self.fact("name", spec::name(task));
        self.fact("command", &spec::command(task));
        self.fact("directory", spec::working_directory(task));
        self.fact("session", spec::session(task));
        self.fact("parent", spec::parent(task));
        self.fact("labels", &spec::labels(task));
        self.fact("environment", &spec::environment(task));
        let containment = match task.containment() {
            Containment::Unspecified => "",
            Containment::Cgroup => "cgroup",
            Containment::Subreaper => "subreaper",
        };
        self.fact("containment", containment);
        if let Some(leader) = &task.leader {
            self.fact("leader", &format!("pid {}", leader.pid));
        }
        self.fact("uid", &task.uid);
        self.fact("revision", &task.revision.to_string());
        self.fact("capture", &task.capture_error);
    }

    fn times(&mut self, task: &BackgroundTask) {
        if let Some(created) = task.create_time {
            let (at, age) = (units::timestamp(created), units::age(Some(created)));
            self.fact("created", &format!("{at} ({age} ago)"));
        }
        if let Some(started) = task.start_time {
            self.fact("started", &units::timestamp(started));
        }
        if let Some(ended) = task.end_time {
            let ran = task.start_time.map(|started| time::since(ended, started));
            let ran = ran.map(|ran| format!(" (ran {})", units::duration(ran)));
            let ran = ran.unwrap_or_default();
            self.fact("ended", &format!("{}{ran}", units::timestamp(ended)));
        }
        if status::is_finished(task) {
            self.fact("end reason", causes::end_reason(task.end_reason()));
        }
        if let Some(timeout) = spec::timeout(task) {
            self.fact("timeout", &units::duration(timeout));
        }
        if let Some((signal, grace)) = spec::stop_signal_and_grace(task) {
            let grace = units::duration(grace);
            self.fact(
                "stop policy",
                &match signal {
                    "" => format!("a request, then ended without its worker after {grace}"),
                    signal => format!("{signal}, then kill after {grace}"),
                },
            );
        }
    }

    /// Adds the worker, its progress with the latest blocks, and its result.
    fn progress(&mut self, task: &BackgroundTask, response: &InspectResponse) {
        let lease = task.worker.as_ref().and_then(|terms| terms.lease);
        if let Some(lease) = lease {
            let lease = units::duration(time::from_proto(lease));
            let worker = response.worker.as_ref();
            let state = match worker.map(|worker| worker.connected) {
                Some(true) => "connected, ",
                Some(false) => "not connected, ",
                None => "",
            };
            self.fact("worker", &format!("{state}lease {lease}"));
        }
        if let Some(progress) = &task.progress {
            self.heading("progress");
            self.fact("now", &progress::clause(progress));
            self.fact("counts", &progress::counts(progress));
            let blocks = response.blocks.iter();
            self.lines.extend(blocks.flat_map(progress::block_lines));
        }
        if let Some(result) = &task.result {
            self.lines.extend(progress::result_lines(result));
        }
    }

    fn stop(&mut self, stop: &StopRecord) {
        self.heading("stop");
        self.fact("cause", &causes::stop(stop));
        let since = |at: Option<Timestamp>| match (at, stop.request_time) {
            (Some(at), Some(asked)) => format!("+{}", units::duration(time::since(at, asked))),
            _ => String::new(),
        };
        if let Some(asked) = stop.request_time {
            self.fact("requested", &units::timestamp(asked));
        }
        if let Some(soft) = &stop.soft {
            let grace = soft.grace.map(time::from_proto).unwrap_or_default();
            let over = match soft.end_time {
                Some(_) => format!(", over {}", since(soft.end_time)),
                None => String::new(),
            };
            self.fact("soft phase", &format!("{}{over}", units::duration(grace)));
        }
        if let Some(grace) = stop.grace {
            self.fact("grace", &units::duration(time::from_proto(grace)));
        }
        if stop.forced {
            self.fact("forced", "its worker did not react in time");
        }
        for signal in &stop.signals {
            let to = match signal.processes {
                None => "the whole tree".to_owned(),
                Some(1) => "1 process".to_owned(),
                Some(several) => format!("{several} processes"),
            };
            let at = since(signal.send_time);
            self.fact("sent", &format!("{} to {to} {at}", signal.name));
        }
        if let Some(found) = &stop.proof {
            let at = since(found.check_time);
            self.fact("result", &format!("{} {at}", proof::clause(found)));
        }
    }

    fn resources(&mut self, response: &InspectResponse) {
        let Some(used) = &response.resources else {
            return;
        };
        let cpu = used.cpu_time.map(time::from_proto).unwrap_or_default();
        self.heading("resources");
        self.fact("cpu", &units::duration(cpu));
        self.fact("memory", &units::size(used.memory_bytes));
        self.fact("processes", &used.process_count.to_string());
    }

    fn stored(&mut self, output: &OutputInfo) {
        self.fact("on disk", &units::size(output.stored_bytes));
        for chunk in &output.gaps {
            if let Some(missing) = gap::of(chunk) {
                self.fact("missing", &gap::clause(chunk.offset, &missing));
            }
        }
    }

    fn ports(&mut self, ports: &[ListeningPort]) {
        self.heading("listens on");
        for port in ports {
            let address = match port.address.contains(':') {
                true => format!("[{}]:{}", port.address, port.port),
                false => format!("{}:{}", port.address, port.port),
            };
            let process = format!("pid {} ({})", port.pid, port.command);
            self.heading(&format!("  {address:<21} {process}"));
        }
    }

    fn summary(&mut self, summary: &str) {
        self.heading("summary");
        self.quote(summary);
    }

    /// Adds the output line by line, with escapes made visible; `heeler logs` prints the bytes.
    fn output(&mut self, tail: &OutputTail) {
        let chunks = tail.chunks.iter().cloned().map(Chunk::from);
        let bytes: Vec<u8> = chunks.flat_map(|chunk| chunk.data).collect();
        self.heading(&match (bytes.len() as u64, tail.end_offset) {
            (0, 0) => "output: none".to_owned(),
            (shown, all) if shown == all => format!("output ({all} bytes)"),
            (shown, all) => format!("output (the last {shown} of {all} bytes)"),
        });
        self.quote(&String::from_utf8_lossy(&bytes));
    }

    fn quote(&mut self, text: &str) {
        for line in text.lines() {
            self.lines.push(format!("  | {}", text::visible(line)));
        }
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{
        OutputChunk, Proof, ProofMethod, SentSignal, TaskSpec, output_chunk::Content,
        proof::Result as Found,
    };

    use super::*;

    fn card(response: &InspectResponse) -> String {
        lines(response, Some(80)).join("\n")
    }

    /// C11
    #[test]
    fn a_stop_shows_its_signals_and_its_proof() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        let stop = StopRecord {
            reason: "enough".to_owned(),
            request_time: at(10),
            signals: vec![
                SentSignal {
                    name: "SIGTERM".to_owned(),
                    send_time: at(12),
                    processes: Some(3),
                    ..SentSignal::default()
                },
                SentSignal {
                    name: "SIGKILL".to_owned(),
                    send_time: at(13),
                    ..SentSignal::default()
                },
            ],
            proof: Some(Proof {
                check_time: at(13),
                result: Some(Found::Proven(ProofMethod::CgroupEmpty.into())),
            }),
            ..StopRecord::default()
        };
        let task = BackgroundTask {
            stop: Some(stop),
            ..BackgroundTask::default()
        };
        let card = card(&InspectResponse {
            task: Some(task),
            ..InspectResponse::default()
        });
        assert!(card.contains("enough"), "{card}");
        assert!(card.contains("SIGTERM to 3 processes +2s"), "{card}");
        assert!(card.contains("SIGKILL to the whole tree +3s"), "{card}");
        assert!(
            card.contains("proven gone") && card.contains("+3s"),
            "{card}"
        );
    }

    /// S10
    #[test]
    fn escape_codes_in_names_and_output_are_made_visible() {
        let chunk = OutputChunk {
            content: Some(Content::Data(b"one\x1b[2J\ntwo".as_slice().into())),
            ..OutputChunk::default()
        };
        let task = BackgroundTask {
            spec: Some(TaskSpec {
                name: "a\nb".to_owned(),
                ..TaskSpec::default()
            }),
            ..BackgroundTask::default()
        };
        let tail = OutputTail {
            chunks: vec![chunk],
            end_offset: 99,
        };
        let card = card(&InspectResponse {
            task: Some(task),
            output_tail: Some(tail),
            ..InspectResponse::default()
        });
        assert!(card.contains("a\\nb"), "{card}");
        assert!(card.contains("the last 11 of 99 bytes"), "{card}");
        assert!(card.contains("  | one\\u{1b}[2J\n  | two"), "{card}");
    }
}
