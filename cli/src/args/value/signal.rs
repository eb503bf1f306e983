//! Signals by name or number.

use nix::sys::signal::Signal;

/// Parses a name, with or without `SIG`, or a number; returns the full name.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let signal = match text.parse::<i32>() {
        Ok(number) => Signal::try_from(number),
        Err(_) => {
            let name = text.to_ascii_uppercase();
            let name = name.strip_prefix("SIG").unwrap_or(&name);
            format!("SIG{name}").parse()
        }
    };
    signal
        .map(|signal| signal.as_str().to_owned())
        .map_err(|_| "unknown signal; use a name such as SIGINT, or a number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_common_spelling_is_accepted() {
        for text in ["SIGINT", "INT", "int", "sigint", "2"] {
            assert_eq!(parse(text).unwrap(), "SIGINT", "{text}");
        }
        for text in ["", "SIG", "99", "-2", "NOPE"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
