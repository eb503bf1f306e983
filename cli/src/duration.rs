//! Durations as people write them: `500ms`, `5s`, `2m`, `1h`, `1m30s`.

use std::time::Duration;

const EXPECTED: &str = "write a duration such as 500ms, 5s, 2m, 1h or 1m30s";

/// From the largest to the smallest, in the order in which they may be written.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Reads a duration. Units go from large to small, each once; only zero needs none.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut rest, mut units, mut total) = (text, &UNITS[..], 0_u64);
    while !rest.is_empty() {
        let (number, after) = split(rest, |c: char| !c.is_ascii_digit());
        let (unit, after) = split(after, |c: char| !c.is_ascii_alphabetic());
        let number: u64 = match number {
            "" => return Err(EXPECTED.to_owned()),
            digits => digits.parse().map_err(|_| too_long())?,
        };
        let place = units.iter().position(|(name, _)| *name == unit);
        let place = place.ok_or_else(|| EXPECTED.to_owned())?;
        let millis = number.checked_mul(units[place].1).ok_or_else(too_long)?;
        total = total.checked_add(millis).ok_or_else(too_long)?;
        units = &units[place + 1..];
        rest = after;
    }
    match text {
        "" => Err(EXPECTED.to_owned()),
        _ => Ok(Duration::from_millis(total)),
    }
}

fn split(text: &str, end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(end).unwrap_or(text.len()))
}

fn too_long() -> String {
    "this is longer than can be counted".to_owned()
}

/// A span in words as short as precision allows: `250ms`, `1.5s`, `1m30s`, `2h5m`, `3d4h`.
pub(crate) fn precise(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{}ms", span.as_millis()),
        1..60 => format!("{}s", span.as_millis() as f64 / 1000.0),
        60..3600 => two(seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds / 60 % 60, "m"),
        _ => two(seconds / 86_400, "d", seconds / 3600 % 24, "h"),
    }
}

/// A span in its largest unit: `3s`, `5m`, `2h`, `4d`.
pub(crate) fn rough(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_forms_are_read() {
        let millis = |text| parse(text).unwrap().as_millis();
        assert_eq!(millis("500ms"), 500);
        assert_eq!(millis("5s"), 5000);
        assert_eq!(millis("2m"), 120_000);
        assert_eq!(millis("1h"), 3_600_000);
        assert_eq!(millis("1m30s"), 90_000);
        assert_eq!(millis("1h1ms"), 3_600_001);
        assert_eq!((millis("0"), millis("0s")), (0, 0));
    }

    /// S2
    #[test]
    fn nonsense_is_refused() {
        for text in [
            "", "5", "s", "-5s", "+5s", "1.5s", "5 s", "5S", "30s1m", "1s1s", "5x", "٣s", "1e3s",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    /// T3
    #[test]
    fn durations_beyond_counting_are_refused_not_wrapped() {
        assert!(parse("99999999999999999999s").is_err());
        assert!(parse("18446744073709551615h").is_err());
    }

    #[test]
    fn spans_are_shown_at_the_precision_that_matters() {
        assert_eq!(precise(Duration::from_millis(250)), "250ms");
        assert_eq!(precise(Duration::from_millis(1500)), "1.5s");
        assert_eq!(precise(Duration::from_secs(5)), "5s");
        assert_eq!(precise(Duration::from_secs(90)), "1m30s");
        assert_eq!(precise(Duration::from_secs(7200)), "2h");
        assert_eq!(precise(Duration::from_secs(90_000)), "1d1h");
        assert_eq!(rough(Duration::from_secs(59)), "59s");
        assert_eq!(rough(Duration::from_secs(3599)), "59m");
    }
}
