//! Statistics of measurements, and their formatting.

use std::time::Duration;

/// The quantile of the values; NaN if there are none.
pub(crate) fn percentile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last as f64 * part).round() as usize)
        .copied()
        .unwrap_or(f64::NAN)
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// The median of the ratios of pairs that were measured one right after the other, so that other load
/// on the machine affects both.
pub(crate) fn median_ratio(figures: &[f64], floors: &[f64]) -> f64 {
    let ratios: Vec<f64> = figures.iter().zip(floors).map(|(a, b)| a / b).collect();
    median(&ratios)
}

/// In milliseconds.
pub(crate) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Formats a time in a suitable unit.
pub(crate) fn time(millis: f64) -> String {
    match millis {
        short if short < 1.0 => format!("{:.0} µs", short * 1e3),
        middle if middle < 100.0 => format!("{middle:.2} ms"),
        long => format!("{long:.0} ms"),
    }
}

/// Formats a rate per second.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        few if few < 10_000.0 => format!("{few:.0} /s"),
        many if many < 1e6 => format!("{:.1}k /s", many / 1e3),
        most => format!("{:.2}M /s", most / 1e6),
    }
}

/// Formats a rate in bytes per second.
pub(crate) fn throughput(bytes_per_second: f64) -> String {
    format!("{:.0} MB/s", bytes_per_second / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_slow_end_are_found_in_any_order() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!((median(&values), percentile(&values, 0.99)), (3.0, 5.0));
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_ratio_is_that_of_pairs() {
        assert_eq!(median_ratio(&[2.0, 8.0, 3.0], &[1.0, 2.0, 1.0]), 3.0);
    }
}
