//! One task whole, as a card for people.

use heeler_client::{
    Chunk, time,
    v1::{BackgroundTask, Containment, InspectResponse, OutputTail, StopRecord},
};
use prost_types::Timestamp;

use crate::{duration, rules, text, tree, words};

/// The lines of the card, fit for a terminal of this width.
pub(crate) fn lines(response: &InspectResponse, terminal: Option<usize>) -> Vec<String> {
    let mut card = Card { lines: Vec::new() };
    if let Some(task) = &response.task {
        card.heading(&format!("{}  {}", task.id, words::state_and_outcome(task)));
        card.identity(task);
        card.times(task);
        for (name, value) in rules::facts(task) {
            card.fact(name, &value);
        }
        if let Some(stop) = &task.stop {
            card.stop(stop);
        }
    }
    card.resources(response);
    if !response.processes.is_empty() {
        card.heading("");
        card.lines
            .extend(tree::table(&response.processes).lines(terminal));
    }
    if let Some(tail) = &response.output_tail {
        card.output(tail);
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

    /// A named fact; an empty one is left out.
    fn fact(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.lines
                .push(format!("  {name:<12} {}", text::visible(value)));
        }
    }

    fn identity(&mut self, task: &BackgroundTask) {
        self.fact("name", &task.name);
        self.fact("command", &words::command(task));
        self.fact("directory", &task.working_directory);
        self.fact("session", &task.session_id);
        self.fact("parent", &task.parent_id);
        let labels: Vec<_> = task
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        self.fact("labels", &labels.join(" "));
        self.fact("environment", &task.env_names.join(" "));
        let containment = match task.containment() {
            Containment::Unspecified => "",
            Containment::Cgroup => "a cgroup of its own",
            Containment::Subreaper => "its shim, as subreaper",
        };
        self.fact("held by", containment);
        if let Some(leader) = &task.leader {
            self.fact("leader", &format!("pid {}", leader.pid));
        }
        self.fact("uid", &task.uid);
        self.fact("revision", &task.revision.to_string());
        self.fact("capture", &task.capture_error);
    }

    fn times(&mut self, task: &BackgroundTask) {
        if let Some(created) = task.create_time {
            let ago = words::age(Some(created));
            self.fact(
                "created",
                &format!("{} ({ago} ago)", words::moment(created)),
            );
        }
        if let Some(started) = task.start_time {
            self.fact("started", &words::moment(started));
        }
        if let Some(ended) = task.end_time {
            let ran = task
                .start_time
                .map(|started| duration::precise(time::since(ended, started)));
            let ran = ran.map(|ran| format!(" (ran {ran})")).unwrap_or_default();
            self.fact("ended", &format!("{}{ran}", words::moment(ended)));
        }
        if words::is_over(task) {
            self.fact("because of", words::reason(task.end_reason()));
        }
        if let Some(timeout) = task.timeout {
            self.fact("timeout", &duration::precise(time::from_proto(timeout)));
        }
        if let Some(policy) = &task.stop_policy {
            let grace = policy.grace.map(time::from_proto).unwrap_or_default();
            let (signal, grace) = (&policy.signal, duration::precise(grace));
            self.fact(
                "stopped by",
                &format!("{signal}, then a kill after {grace}"),
            );
        }
    }

    fn stop(&mut self, stop: &StopRecord) {
        self.heading("stop");
        self.fact("asked by", &words::asked(stop));
        let since = |at: Option<Timestamp>| match (at, stop.request_time) {
            (Some(at), Some(asked)) => format!("+{}", duration::precise(time::since(at, asked))),
            _ => String::new(),
        };
        if let Some(asked) = stop.request_time {
            self.fact("at", &words::moment(asked));
        }
        if let Some(grace) = stop.grace {
            self.fact("grace", &duration::precise(time::from_proto(grace)));
        }
        for signal in &stop.signals {
            let to = match signal.processes {
                0 => "the whole tree".to_owned(),
                1 => "1 process".to_owned(),
                several => format!("{several} processes"),
            };
            self.fact(
                "sent",
                &format!("{} to {to} {}", signal.name, since(signal.send_time)),
            );
        }
        if let Some(proof) = &stop.proof {
            self.fact(
                "result",
                &format!("{} {}", words::proof(proof), since(proof.verify_time)),
            );
        }
    }

    fn resources(&mut self, response: &InspectResponse) {
        let Some(used) = &response.resources else {
            return;
        };
        let cpu = duration::precise(used.cpu_time.map(time::from_proto).unwrap_or_default());
        let memory = words::size(used.memory_bytes);
        self.heading("resources");
        self.fact("cpu", &cpu);
        self.fact("memory", &memory);
        self.fact("processes", &used.process_count.to_string());
    }

    /// Line by line, escapes shown and not obeyed; `logs` has the bytes.
    fn output(&mut self, tail: &OutputTail) {
        let chunks = tail.chunks.iter().cloned().map(Chunk::from);
        let bytes: Vec<u8> = chunks.flat_map(|chunk| chunk.data).collect();
        self.heading(&match (bytes.len() as u64, tail.end_offset) {
            (0, 0) => "output: none".to_owned(),
            (shown, all) if shown == all => format!("output ({all} bytes)"),
            (shown, all) => format!("output (the last {shown} of {all} bytes)"),
        });
        for line in String::from_utf8_lossy(&bytes).lines() {
            self.lines.push(format!("  | {}", text::visible(line)));
        }
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{OutputChunk, Proof, ProofMethod, SentSignal, output_chunk::Content};

    use super::*;

    fn card(response: &InspectResponse) -> String {
        lines(response, Some(80)).join("\n")
    }

    /// C11
    #[test]
    fn a_stop_is_told_with_its_signals_and_its_proof() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        let stop = StopRecord {
            reason: "enough".to_owned(),
            request_time: at(10),
            signals: vec![SentSignal {
                name: "SIGTERM".to_owned(),
                send_time: at(12),
                processes: 3,
                ..SentSignal::default()
            }],
            proof: Some(Proof {
                method: ProofMethod::CgroupEmpty.into(),
                verify_time: at(13),
                survivors: Vec::new(),
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
        assert!(
            card.contains("proven gone") && card.contains("+3s"),
            "{card}"
        );
    }

    /// S10
    #[test]
    fn neither_a_name_nor_the_output_can_draw_on_the_card() {
        let chunk = OutputChunk {
            content: Some(Content::Data(b"one\x1b[2J\ntwo".as_slice().into())),
            ..OutputChunk::default()
        };
        let task = BackgroundTask {
            name: "a\nb".to_owned(),
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
