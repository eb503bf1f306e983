//! The server's end of a shim's wire under arbitrary bytes.

use std::{io::Write, os::unix::net::UnixStream, path::Path};

use heeler_shim::{
    input::{Stdin, TerminalSize},
    wire::{MESSAGE, Order, Report, UnknownMessage},
};
use uuid::Uuid;

use super::{AfterFailure, Launch, ShimLink};
use crate::{
    fuzz::{Description, Input},
    process::launch::EnvBlock,
    task::{OutputPolicy, TaskUid},
};

/// The longest text of a fuzzed description.
const TEXT: usize = 40;

/// A stream of bytes from a shim: every whole message up to one of another version is a report, an
/// unknown kind is skipped, and a message is what its encoding says.
pub fn reports(bytes: &[u8]) {
    let expected: Vec<Report> = expected(bytes);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let received = runtime.block_on(async {
        let (ours, mut shim) = UnixStream::pair().expect("a socket pair");
        ours.set_nonblocking(true).expect("a socket");
        // More would not fit into the socket.
        shim.write_all(&bytes[..bytes.len().min(100 * MESSAGE)])
            .expect("room");
        drop(shim);
        let mut link = ShimLink::to_started(ours, None).expect("a socket");
        let mut received = Vec::new();
        while let Some(report) = link.next().await {
            received.push(report);
        }
        received
    });
    assert_eq!(received, expected);
}

fn expected(bytes: &[u8]) -> Vec<Report> {
    let mut reports = Vec::new();
    for message in bytes.chunks_exact(MESSAGE).take(100) {
        let message = message.try_into().expect("a whole message");
        if let Ok(order) = Order::decode(message) {
            assert_eq!(Order::decode(&order.encode()), Ok(order));
        }
        match Report::decode(message) {
            Ok(report) => {
                assert_eq!(Report::decode(&report.encode()), Ok(report));
                reports.push(report);
            }
            Err(UnknownMessage::Kind(_)) => {}
            Err(UnknownMessage::Version(_)) => break,
        }
    }
    reports
}

/// Describes a task as for a shim; `None` if a text has a NUL, which the edge refuses.
pub(crate) fn describe(input: &mut Input<'_>) -> Option<Description> {
    let uid = TaskUid(Uuid::from_u64_pair(input.u64(), input.u64()));
    let text = |input: &mut Input<'_>| -> Option<String> {
        let len = usize::from(input.byte()) % TEXT;
        let text = String::from_utf8(input.bytes(len).to_vec()).ok()?;
        (!text.contains('\0')).then_some(text)
    };
    let mut paths: [String; 5] = Default::default();
    for path in &mut paths {
        *path = text(input)?;
    }
    let [task_file, memory, cgroup, directory, program] = &paths;
    let optional = |path: &'_ String| (!path.is_empty()).then(|| Path::new(path).to_owned());
    let (memory, cgroup) = (optional(memory), optional(cgroup));
    let mut argv = Vec::new();
    for _ in 0..input.byte() % 6 {
        argv.push(text(input)?);
    }
    let mut variables = Vec::new();
    for number in 0..input.byte() % 6 {
        variables.push((format!("N{number}"), text(input)?));
    }
    let mut env = EnvBlock::default();
    for (name, value) in &variables {
        env.push(name, value);
    }
    let policy = OutputPolicy::with_limit(input.u64());
    let stdin = match input.byte() % 3 {
        0 => Stdin::Empty,
        1 => Stdin::Pipe,
        _ => Stdin::Terminal(TerminalSize {
            columns: input.u64() as u16,
            rows: input.u64() as u16,
        }),
    };
    let launch = Launch {
        after_failure: AfterFailure::End,
        uid,
        output: &policy,
        stdin,
        output_budget: input.u64(),
        task_file: Path::new(task_file),
        memory: memory.as_deref(),
        cgroup: cgroup.as_deref(),
        working_directory: Path::new(directory),
        program: Path::new(program),
        argv: &argv,
        env: &env,
    };
    Some(Description {
        sent: launch.encode(),
        texts: paths.clone().map(String::into_bytes),
        arguments: argv.into_iter().map(String::into_bytes).collect(),
        variables: variables
            .into_iter()
            .map(|(name, value)| format!("{name}={value}").into_bytes())
            .collect(),
    })
}
