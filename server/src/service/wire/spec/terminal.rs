//! The terminal of a task, in and out.

use heeler_proto::v1;

use crate::{
    service::wire::{check, refusal::Refusal},
    task::{DEFAULT_TERM, Terminal, TerminalSize},
};

/// Maximum length of the type of a terminal.
const TERM: usize = 64;

pub(super) fn read(policy: v1::TerminalPolicy) -> Result<Terminal, Refusal> {
    let default = TerminalSize::default();
    let or = |value, default: u16| match value {
        0 => u32::from(default),
        value => value,
    };
    let term = check::os_text("spec.terminal.term", policy.term, TERM)?;
    Ok(Terminal {
        size: size(
            ("spec.terminal.columns", or(policy.columns, default.columns)),
            ("spec.terminal.rows", or(policy.rows, default.rows)),
        )?,
        term: match term.is_empty() {
            true => DEFAULT_TERM.to_owned(),
            false => term,
        },
    })
}

pub(super) fn show(terminal: &Terminal) -> v1::TerminalPolicy {
    v1::TerminalPolicy {
        columns: terminal.size.columns.into(),
        rows: terminal.size.rows.into(),
        term: terminal.term.clone(),
    }
}

/// A size whose columns and rows are both given, each with the name of its field.
pub(crate) fn size(columns: (&str, u32), rows: (&str, u32)) -> Result<TerminalSize, Refusal> {
    Ok(TerminalSize {
        columns: extent(columns)?,
        rows: extent(rows)?,
    })
}

fn extent((field, value): (&str, u32)) -> Result<u16, Refusal> {
    let most = TerminalSize::MOST;
    let known = u16::try_from(value).ok();
    known
        .filter(|value| (1..=most).contains(value))
        .ok_or_else(|| Refusal::field(field, format_args!("is not from 1 to {most}")))
}
