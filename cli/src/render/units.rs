//! Durations, times and sizes as people read them.

use std::time::{Duration, SystemTime};

use heeler_client::time;
use prost_types::Timestamp;

/// A duration in its two largest units: `250ms`, `1.5s`, `1m30s`, `2h5m`, `3d4h`.
pub(crate) fn duration(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{}ms", span.as_millis()),
        1..60 => format!("{}s", span.as_millis() as f64 / 1000.0),
        60..3600 => two_units(seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => two_units(seconds / 3600, "h", seconds / 60 % 60, "m"),
        _ => two_units(seconds / 86_400, "d", seconds / 3600 % 24, "h"),
    }
}

fn two_units(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

/// The time since then in its largest unit: `3s`, `5m`, `2h`, `4d`.
pub(crate) fn age(at: Option<Timestamp>) -> String {
    match at {
        Some(at) => one_unit(time::since(SystemTime::now().into(), at)),
        None => String::new(),
    }
}

fn one_unit(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A time in UTC, to the millisecond.
pub(crate) fn timestamp(at: Timestamp) -> String {
    let millis = at.nanos.div_euclid(1_000_000);
    let whole = Timestamp { nanos: 0, ..at }.to_string();
    format!("{}.{millis:03}Z", whole.trim_end_matches('Z'))
}

/// A size in binary units.
pub(crate) fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            return match unit {
                "B" => format!("{bytes} B"),
                unit => format!("{size:.1} {unit}"),
            };
        }
        size /= 1024.0;
    }
    format!("{size:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        assert_eq!(duration(Duration::from_millis(250)), "250ms");
        assert_eq!(duration(Duration::from_millis(1500)), "1.5s");
        assert_eq!(duration(Duration::from_secs(5)), "5s");
        assert_eq!(duration(Duration::from_secs(90)), "1m30s");
        assert_eq!(duration(Duration::from_secs(7200)), "2h");
        assert_eq!(duration(Duration::from_secs(90_000)), "1d1h");
        assert_eq!(one_unit(Duration::from_secs(59)), "59s");
        assert_eq!(one_unit(Duration::from_secs(3599)), "59m");
    }

    #[test]
    fn timestamps_have_milliseconds_and_sizes_a_unit() {
        let at = Timestamp {
            seconds: 1_700_000_000,
            nanos: 7_654_321,
        };
        assert_eq!(timestamp(at), "2023-11-14T22:13:20.007Z");
        let sizes = (size(5), size(1536));
        assert_eq!(sizes, ("5 B".to_owned(), "1.5 KiB".to_owned()));
    }
}
