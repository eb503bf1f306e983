//! Names and numbers of signals.

use nix::sys::signal::Signal;

/// Returns the name of a signal, e.g. `SIGTERM`.
pub(crate) fn signal_name(number: i32) -> String {
    match Signal::try_from(number) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("SIG{number}"),
    }
}

/// Returns the signal with this name, with or without `SIG`, or with this number.
pub(crate) fn signal_number(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return Signal::try_from(number).ok().map(|signal| signal as i32);
    }
    let upper = text.to_ascii_uppercase();
    let full = if upper.starts_with("SIG") {
        upper
    } else {
        format!("SIG{upper}")
    };
    full.parse::<Signal>().ok().map(|signal| signal as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_found_by_name_and_number() {
        for text in ["SIGINT", "INT", "int", "2"] {
            assert_eq!(signal_number(text), Some(2), "{text}");
        }
        for text in ["", "SIG", "SIGNOPE", "0", "-1", "99999", "SIGSIGINT"] {
            assert_eq!(signal_number(text), None, "{text}");
        }
        assert_eq!(signal_name(15), "SIGTERM");
        assert_eq!(signal_name(40), "SIG40");
    }
}
