//! The table of results, made from the reports that exist.

use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf};

use heeler_tests::binary;
use serde_json::Value;

use crate::case::Case;

/// File name and title of each client, in the order of the columns.
const CLIENTS: [(&str, &str); 5] = [
    ("rust", "Rust"),
    ("dotnet", ".NET"),
    ("typescript", "TypeScript"),
    ("python", "Python"),
    ("grpcurl", "grpcurl"),
];

const HEAD: &str = "# Conformance results

The runs of [the conformance cases](../../tests/conformance/README.md) write this table: after its tests, each client has a
report in `target/conformance`, and `HEELER_BLESS=1 cargo test -p heeler-tests --test conformance the_table` makes this page
from the reports. ✓: passed; ✗: failed; –: the client has no way to do it.

";

fn page() -> PathBuf {
    binary::workspace().join("docs/sdk/conformance.md")
}

fn reports() -> BTreeMap<&'static str, Value> {
    let report = |(client, _): &(&'static str, &str)| {
        let path = binary::target_dir().join(format!("conformance/{client}.json"));
        let text = fs::read_to_string(path).ok()?;
        let report: Value = serde_json::from_str(&text).expect("a report");
        Some((*client, report["results"].clone()))
    };
    CLIENTS.iter().filter_map(report).collect()
}

fn mark(result: &Value) -> &'static str {
    match result.as_str() {
        Some("passed") => "✓",
        Some(text) if text.starts_with("cannot") => "–",
        Some(_) => "✗",
        None => "",
    }
}

fn render(reports: &BTreeMap<&str, Value>) -> String {
    let mut page = HEAD.to_owned();
    page += "| case |";
    for (_, name) in CLIENTS {
        write!(page, " {name} |").expect("a string grows");
    }
    page += "\n| --- |";
    page += &" :-: |".repeat(CLIENTS.len());
    for case in Case::all() {
        write!(page, "\n| {} |", case.name).expect("a string grows");
        for (client, _) in CLIENTS {
            let result = reports.get(client).map_or(&Value::Null, |r| &r[&case.name]);
            write!(page, " {} |", mark(result)).expect("a string grows");
        }
    }
    page + "\n"
}

/// The page has a row for every case and no failure, and agrees with the reports. For a client that has
/// not run here, the page is not checked.
#[test]
fn the_table_agrees_with_the_reports() {
    let reports = reports();
    if std::env::var_os("HEELER_BLESS").is_some() {
        fs::write(page(), render(&reports)).expect("a writable page");
    }
    let page = fs::read_to_string(page()).expect("the page");
    let cells = |line: &str| -> Vec<String> {
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: BTreeMap<String, Vec<String>> = page
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(cells)
        .map(|cells| (cells[1].clone(), cells[2..].to_vec()))
        .collect();
    for case in Case::all() {
        let row = rows.get(&case.name);
        let row = row.unwrap_or_else(|| panic!("no row for {}", case.name));
        for ((client, name), cell) in CLIENTS.iter().zip(row) {
            assert_ne!(cell, "✗", "{}: {name} failed", case.name);
            if let Some(result) = reports.get(client).map(|report| &report[&case.name]) {
                assert_eq!(cell, mark(result), "{}: {name}: {result}", case.name);
            } else {
                assert!(!cell.is_empty(), "{}: {name} has not run it", case.name);
            }
        }
    }
}
