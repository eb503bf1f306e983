//! The text form of OpenMetrics, read strictly: a text that breaks a rule of the format, or of Prometheus's
//! linter, is an error.

use std::collections::{BTreeMap, BTreeSet};

/// A whole exposition.
#[derive(Debug)]
pub struct Exposition {
    pub families: BTreeMap<String, Family>,
}

/// A family of metrics.
#[derive(Debug, Default)]
pub struct Family {
    pub kind: String,
    pub help: String,
    pub unit: String,
    pub samples: Vec<Sample>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Sample {
    fn has(&self, labels: &[(&str, &str)]) -> bool {
        let own = |name| self.labels.get(name).map(String::as_str);
        labels.iter().all(|(name, value)| own(*name) == Some(value))
    }
}

impl Exposition {
    /// Reads a text, and checks it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let body = text
            .strip_suffix("# EOF\n")
            .ok_or("no EOF at the end, or something behind it")?;
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        let mut latest = String::new();
        for line in body.lines() {
            let read = match line.strip_prefix("# ") {
                Some(meta) => read_meta(&mut families, &mut latest, meta),
                None => read_sample(&mut families, &latest, line),
            };
            read.map_err(|problem| format!("{problem}: {line}"))?;
        }
        for (name, family) in &families {
            let checked = family.check(name);
            checked.map_err(|problem| format!("{name}: {problem}"))?;
        }
        Ok(Self { families })
    }

    /// The sum of the samples with this name and these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.samples();
        let found = samples.filter(|one| one.name == name && one.has(labels));
        found.map(|one| one.value).sum()
    }

    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.families.values().flat_map(|family| &family.samples)
    }
}

/// Reads `HELP name text`, `TYPE name kind` or `UNIT name unit`.
fn read_meta(
    families: &mut BTreeMap<String, Family>,
    latest: &mut String,
    meta: &str,
) -> Result<(), String> {
    let mut words = meta.splitn(3, ' ');
    let mut word = || words.next().ok_or("a part is missing");
    let (key, name, text) = (word()?, word()?, word()?);
    if name != latest {
        if families.contains_key(name) {
            return Err("a family is not in one piece".to_owned());
        }
        *latest = name.to_owned();
    }
    let family = families.entry(name.to_owned()).or_default();
    let field = match key {
        "HELP" => &mut family.help,
        "TYPE" => &mut family.kind,
        "UNIT" => &mut family.unit,
        _ => return Err("neither HELP nor TYPE nor UNIT".to_owned()),
    };
    match field.is_empty() && family.samples.is_empty() {
        true => *field = text.to_owned(),
        false => return Err("twice, or behind a sample".to_owned()),
    }
    Ok(())
}

fn read_sample(
    families: &mut BTreeMap<String, Family>,
    latest: &str,
    line: &str,
) -> Result<(), String> {
    let name_end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, rest) = line.split_at(name_end);
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => read_labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = value.strip_prefix(' ').ok_or("no space before the value")?;
    let family = families.get_mut(latest).ok_or("a sample of no family")?;
    if !name.starts_with(latest) {
        return Err(format!("a sample of another family than {latest}"));
    }
    family.samples.push(Sample {
        name: name.to_owned(),
        labels,
        value: value.parse().map_err(|_| "not a number")?,
    });
    Ok(())
}

/// Reads `a="b",c="d"} ` and returns the rest behind the brace.
fn read_labels(mut rest: &str) -> Result<(BTreeMap<String, String>, &str), String> {
    let mut labels = BTreeMap::new();
    while !rest.starts_with('}') {
        let (name, after) = rest.split_once("=\"").ok_or("a label without a value")?;
        let is_valid = |c: char| c.is_ascii_lowercase() || c == '_';
        if name.is_empty() || !name.chars().all(is_valid) {
            return Err(format!("not a name of a label: {name}"));
        }
        let (mut value, mut chars) = (String::new(), after.char_indices());
        let end = loop {
            match chars.next().ok_or("a value without an end")? {
                (at, '"') => break at + 1,
                (_, '\\') => value.push(match chars.next() {
                    Some((_, 'n')) => '\n',
                    Some((_, c @ ('"' | '\\'))) => c,
                    _ => return Err("an unknown escape".to_owned()),
                }),
                (_, c) => value.push(c),
            }
        };
        if labels.insert(name.to_owned(), value).is_some() {
            return Err(format!("the label {name} twice"));
        }
        rest = &after[end..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Ok((labels, &rest[1..]))
}

impl Family {
    fn check(&self, name: &str) -> Result<(), String> {
        let is_valid = |c: char| c.is_ascii_lowercase() || c == '_';
        if !name.chars().all(is_valid) || name.contains("__") {
            return Err("not a name of a metric".to_owned());
        }
        if !self.help.ends_with('.') {
            return Err("the help is no sentence".to_owned());
        }
        if !self.unit.is_empty() && !name.ends_with(&format!("_{}", self.unit)) {
            return Err("the name does not end in the unit".to_owned());
        }
        for unit in ["seconds", "bytes"] {
            if name.ends_with(unit) && self.unit != unit {
                return Err(format!("the unit {unit} is not declared"));
            }
        }
        let reserved = ["total", "count", "sum", "bucket", "info", "created"];
        let other_units = ["ms", "s", "milliseconds", "minutes", "kb", "mib", "percent"];
        let last = name.rsplit('_').next().unwrap_or_default();
        if reserved.contains(&last) || other_units.contains(&last) {
            return Err(format!("a name must not end in {last}"));
        }
        self.check_samples(name)
    }

    fn check_samples(&self, name: &str) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for sample in &self.samples {
            let suffix = &sample.name[name.len()..];
            let fits = match &*self.kind {
                "gauge" => suffix.is_empty(),
                "counter" => suffix == "_total" && sample.value >= 0.0,
                "info" => suffix == "_info" && sample.value == 1.0,
                "histogram" => ["_bucket", "_count", "_sum"].contains(&suffix),
                _ => return Err(format!("unknown kind {}", self.kind)),
            };
            let is_bucket = suffix == "_bucket";
            if !fits || is_bucket != sample.labels.contains_key("le") {
                return Err(format!("{sample:?} does not fit a {}", self.kind));
            }
            if !seen.insert(format!("{} {:?}", sample.name, sample.labels)) {
                return Err(format!("{sample:?} twice"));
            }
        }
        match &*self.kind {
            "histogram" => self.check_buckets(),
            _ => Ok(()),
        }
    }

    /// Checks the buckets of a histogram without labels.
    fn check_buckets(&self) -> Result<(), String> {
        let buckets: Vec<(f64, f64)> = (self.samples.iter())
            .filter_map(|one| Some((one.labels.get("le")?.parse().ok()?, one.value)))
            .collect();
        let grows = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        let count = self
            .samples
            .iter()
            .find(|one| one.name.ends_with("_count"))
            .ok_or("no count")?;
        match buckets.last() {
            Some((f64::INFINITY, all)) if *all == count.value => {}
            _ => return Err("the last bucket does not have all".to_owned()),
        }
        match buckets.windows(2).all(grows) {
            true => Ok(()),
            false => Err("the buckets do not grow".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# HELP a_seconds Time.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n\
        a_seconds_sum 1.5\na_seconds_count 2\na_seconds_bucket{le=\"1.0\"} 1\n\
        a_seconds_bucket{le=\"+Inf\"} 2\n# HELP b Calls.\n# TYPE b counter\n\
        b_total{x=\"1\\n\\\"\",y=\"\"} 7\n# EOF\n";

    /// H5
    #[test]
    fn texts_that_break_a_rule_of_the_format_are_refused() {
        let good = Exposition::parse(GOOD).unwrap();
        assert_eq!(good.sum("b_total", &[("x", "1\n\"")]), 7.0);
        for (right, wrong) in [
            ("# EOF\n", ""),
            ("# EOF\n", "# EOF\nb_total 1\n"),
            ("b_total{x", "b{x"),
            ("# TYPE b counter", "# TYPE b gauge"),
            ("Calls.", "Calls"),
            ("# UNIT a_seconds seconds\n", ""),
            ("le=\"+Inf\"} 2", "le=\"+Inf\"} 3"),
            ("le=\"1.0\"} 1", "le=\"1.0\"} 3"),
            ("a_seconds_count 2\n", ""),
            ("x=\"1", "x=\"\",x=\"1"),
            ("7\n", "seven\n"),
            ("7\n", "7\nb_total{x=\"1\\n\\\"\",y=\"\"} 8\n"),
            ("7\n", "7\na_seconds_sum 1\n"),
            ("7\n", "7\n# HELP a_seconds Again.\n"),
        ] {
            assert!(GOOD.contains(right), "{right}");
            let broken = GOOD.replace(right, wrong);
            assert!(Exposition::parse(&broken).is_err(), "{right} -> {wrong}");
        }
    }
}
