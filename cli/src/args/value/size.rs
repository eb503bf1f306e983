//! Sizes on the command line: `4096`, `64KiB`, `500MB`, `10GiB`.

const EXPECTED: &str = "expected a size such as 4096, 64KiB, 500MB or 10GiB";

const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Parses a size in bytes: a whole number, with a unit unless it counts bytes.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| EXPECTED.to_owned())?;
    if number.is_empty() {
        return Err(EXPECTED.to_owned());
    }
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(*factor))
        .ok_or_else(|| "the size is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_forms_are_accepted() {
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("64KiB"), Ok(65_536));
        assert_eq!(parse("500MB"), Ok(500_000_000));
        assert_eq!(parse("10GiB"), Ok(10 << 30));
    }

    /// S2
    #[test]
    fn malformed_sizes_are_refused() {
        for text in [
            "", "GiB", "-1", "1.5GiB", "1 GiB", "1gib", "1G", "٣", "1GiB2MiB",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(parse("99999999999999999999").is_err());
        assert!(parse("18446744073709551615KiB").is_err());
    }
}
