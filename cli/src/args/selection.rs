//! Selecting tasks: by id, by session, by labels.

use std::collections::BTreeSet;

use clap::builder::NonEmptyStringValueParser;
use heeler_client::Filter;

use super::key_value::KeyValue;

/// Parses a name that is not empty: an unset variable in a script must not select every session.
pub(crate) fn not_empty() -> NonEmptyStringValueParser {
    NonEmptyStringValueParser::new()
}

/// The filter of `--session` and `--label` together.
pub(crate) fn filter(session: Option<&str>, labels: &[KeyValue]) -> Filter {
    let filter = session
        .into_iter()
        .fold(Filter::all(), |filter, id| filter.session(id));
    labels.iter().fold(filter, |filter, label| {
        filter.label(&label.key, &label.value)
    })
}

/// Each id once, in the order of first mention.
pub(crate) fn distinct(ids: &[String]) -> Vec<String> {
    let mut known = BTreeSet::new();
    ids.iter()
        .filter(|id| known.insert(id.as_str()))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_ids_are_dropped_and_the_order_is_kept() {
        let ids = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(distinct(&ids), ["b", "a"]);
    }
}
