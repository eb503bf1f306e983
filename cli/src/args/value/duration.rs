//! Durations on the command line: `500ms`, `5s`, `2m`, `1h`, `1m30s`.

use std::time::Duration;

const EXPECTED: &str = "expected a duration such as 500ms, 5s, 2m, 1h or 1m30s";

/// From large to small, the order in which they may be written.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Parses a duration. Units go from large to small, each at most once; only `0` needs none.
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
        let found = units.iter().position(|(name, _)| *name == unit);
        let index = found.ok_or_else(|| EXPECTED.to_owned())?;
        let millis = number.checked_mul(units[index].1).ok_or_else(too_long)?;
        total = total.checked_add(millis).ok_or_else(too_long)?;
        units = &units[index + 1..];
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
    "the duration is too long".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_forms_are_accepted() {
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
    fn malformed_durations_are_refused() {
        for text in [
            "", "5", "s", "-5s", "+5s", "1.5s", "5 s", "5S", "30s1m", "1s1s", "5x", "٣s", "1e3s",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    /// T3
    #[test]
    fn durations_that_overflow_are_refused() {
        assert!(parse("99999999999999999999s").is_err());
        assert!(parse("18446744073709551615h").is_err());
    }
}
