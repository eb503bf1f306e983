//! The table of who has passed what, made from the reports that are there.

use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf};

use heeler_tests::binary;
use serde_json::Value;

use crate::case::Case;

/// In the order of the columns.
const CLIENTS: [(&str, &str); 5] = [
    ("rust", "Rust"),
    ("dotnet", ".NET"),
    ("typescript", "TypeScript"),
    ("python", "Python"),
    ("grpcurl", "grpcurl"),
];

const HEAD: &str = "# Who has passed what

Made by the runs of [the conformance set](../../tests/conformance/README.md), not by hand: `target/conformance` has the report of
each client after its tests, and `HEELER_BLESS=1 cargo test -p heeler-tests --test conformance the_table` writes this page from
them. ✓: passed; ✗: failed; –: the client has no way to do it.

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
        write!(page, " {name} |").expect("room");
    }
    page += "\n| --- |";
    page += &" :-: |".repeat(CLIENTS.len());
    for case in Case::all() {
        write!(page, "\n| {} |", case.name).expect("room");
        for (client, _) in CLIENTS {
            let result = reports.get(client).map_or(&Value::Null, |r| &r[&case.name]);
            write!(page, " {} |", mark(result)).expect("room");
        }
    }
    page + "\n"
}

/// The page has a row for every case, and no failure; what a report says, the page says. A client that
/// has not run here is taken at the page's word.
#[test]
fn the_table_is_what_the_runs_have_made() {
    let reports = reports();
    if std::env::var_os("HEELER_BLESS").is_some() {
        fs::write(page(), render(&reports)).expect("room");
    }
    let page = fs::read_to_string(page()).expect("the page is there");
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
            assert_ne!(cell, "✗", "{}: {name} has failed", case.name);
            if let Some(result) = reports.get(client).map(|report| &report[&case.name]) {
                assert_eq!(cell, mark(result), "{}: {name}: {result}", case.name);
            } else {
                assert!(!cell.is_empty(), "{}: {name} has not run it", case.name);
            }
        }
    }
}
