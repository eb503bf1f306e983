//! Words and units of the answers.

use std::time::Duration;

/// The name of an enum value without its prefix, in lower case: `TASK_STATE_TIMED_OUT` is `timed_out`.
pub(crate) fn word(name: &str, prefix: &str) -> String {
    name.trim_start_matches(prefix).to_ascii_lowercase()
}

/// A duration in one or two units, such as `0.4s`, `12s` or `3m 20s`.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1}s", duration.as_secs_f64()),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// A number of bytes, such as `120 bytes` or `1.4 MB`.
pub(crate) fn bytes(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is rounded to one digit")]
    let scaled = |unit: u64| count as f64 / unit as f64;
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..1_000_000 => format!("{:.0} kB", scaled(1_000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", scaled(1_000_000)),
        _ => format!("{:.1} GB", scaled(1_000_000_000)),
    }
}

/// The beginning of a text, on one line.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let line = text.trim().replace(['\n', '\r', '\t'], " ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The daemon's summary of an end, with the tool in place of the command that shows all output.
pub(crate) fn summary(text: &str, id: &str) -> String {
    let text = text.trim_end();
    match text.strip_suffix(&format!("all output: heeler logs {id}")) {
        Some(text) => format!("{text}all output: heeler_output {{\"id\": \"{id}\"}}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_short() {
        assert_eq!(span(Duration::from_millis(400)), "0.4s");
        assert_eq!(span(Duration::from_secs(200)), "3m 20s");
        assert_eq!(span(Duration::from_secs(7260)), "2h 1m");
        assert_eq!(bytes(9_999), "9999 bytes");
        assert_eq!(bytes(1_400_000), "1.4 MB");
    }

    /// M3
    #[test]
    fn a_summary_names_the_tool_that_reads_all_output() {
        let text = summary(
            "shell-a FAILED\n\nall output: heeler logs shell-a\n",
            "shell-a",
        );
        assert_eq!(
            text,
            "shell-a FAILED\n\nall output: heeler_output {\"id\": \"shell-a\"}"
        );
        assert_eq!(summary("shell-a COMPLETED", "shell-a"), "shell-a COMPLETED");
    }

    /// M3
    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(cut("ab\ncd", 10), "ab cd");
        assert_eq!(cut("äöü", 2), "äö…");
    }
}
