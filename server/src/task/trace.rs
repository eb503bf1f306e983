//! The place of a task in a distributed trace.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::TaskUid;

/// The identity of a span, in the text form of W3C Trace Context: a `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SpanContext {
    /// Never 0.
    pub trace: u128,
    /// Never 0.
    pub span: u64,
    pub is_sampled: bool,
}

/// The span of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpan {
    pub context: SpanContext,
    /// The span that caused it: the Spawn, or the span of its parent task.
    pub parent: u64,
}

/// The span of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallSpan {
    pub(crate) context: SpanContext,
    /// The span that the caller named.
    pub(crate) parent: Option<u64>,
}

/// The error of parsing a text that is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a traceparent is 00-TRACE-SPAN-FLAGS, in hexadecimal digits")]
pub struct ParseSpanContextError;

/// The bit of the flags that says that the span is recorded.
const SAMPLED: u8 = 1;

impl SpanContext {
    /// A new span below this one. Both numbers come from a task or call that is globally unique.
    pub(crate) fn child(self, span: u64) -> Self {
        Self { span, ..self }
    }
}

impl TaskSpan {
    /// The span of the task with this uid, below another span.
    pub(crate) fn new(uid: TaskUid, parent: SpanContext) -> Self {
        Self {
            context: parent.child(span_number(uid)),
            parent: parent.span,
        }
    }
}

/// The number of a task's span: the last eight bytes of its uid, which are chosen at random and have a bit
/// that is always set.
fn span_number(uid: TaskUid) -> u64 {
    uid.0.as_u64_pair().1
}

impl FromStr for SpanContext {
    type Err = ParseSpanContextError;

    /// Versions after 00 may append fields, which are ignored.
    fn from_str(text: &str) -> Result<Self, ParseSpanContextError> {
        let mut fields = text.split('-');
        let mut field = |digits| fields.next().and_then(|text| hexadecimal(text, digits));
        let version = field(2).filter(|version| *version != 0xff);
        let (trace, span, flags) = (field(32), field(16), field(2));
        let is_complete = version != Some(0) || fields.next().is_none();
        match (version, trace, span, flags) {
            (Some(_), Some(trace @ 1..), Some(span @ 1..), Some(flags)) if is_complete => {
                Ok(Self {
                    trace,
                    span: span as u64,
                    is_sampled: flags as u8 & SAMPLED != 0,
                })
            }
            _ => Err(ParseSpanContextError),
        }
    }
}

/// A number of exactly so many lower-case digits.
fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_number = text.len() == digits && text.bytes().all(is_digit);
    is_number.then(|| u128::from_str_radix(text, 16).ok())?
}

impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled) * SAMPLED;
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span)
    }
}

impl TryFrom<String> for SpanContext {
    type Error = ParseSpanContextError;

    fn try_from(text: String) -> Result<Self, ParseSpanContextError> {
        text.parse()
    }
}

impl From<SpanContext> for String {
    fn from(context: SpanContext) -> Self {
        context.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// H8
    #[test]
    fn a_traceparent_is_read_as_it_is_written() {
        let context: SpanContext = TEXT.parse().expect("a span");
        assert_eq!(context.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(context.span, 0x00f0_67aa_0ba9_02b7);
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), TEXT);
        let later: SpanContext = format!("cc{}-future", &TEXT[2..]).parse().expect("a span");
        assert_eq!(later, context);
        let unsampled: SpanContext = TEXT.replace("-01", "-00").parse().expect("a span");
        assert!(!unsampled.is_sampled);
    }

    /// H8
    #[test]
    fn malformed_traceparents_are_refused() {
        let wrong = [
            String::new(),
            TEXT[..TEXT.len() - 1].to_owned(),
            format!("{TEXT}-more"),
            format!("ff{}", &TEXT[2..]),
            TEXT.to_uppercase(),
            TEXT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            TEXT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            TEXT.replace("00f067", "+0f067"),
        ];
        for text in wrong {
            assert_eq!(text.parse::<SpanContext>(), Err(ParseSpanContextError));
        }
    }

    /// H8
    #[test]
    fn the_span_of_a_task_follows_from_its_uid() {
        let (uid, parent) = (TaskUid::new(), TEXT.parse().expect("a span"));
        let span = TaskSpan::new(uid, parent);
        assert_eq!(span, TaskSpan::new(uid, parent));
        assert_ne!(span.context.span, 0);
        assert_eq!(
            (span.context.trace, span.parent),
            (parent.trace, parent.span)
        );
    }
}
