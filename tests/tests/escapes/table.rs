//! The table in docs/RELIABILITY.md, made from the reports of the runs.

use std::{collections::BTreeMap, fmt::Write, fs, path::PathBuf};

use heeler_tests::binary;
use serde_json::{Value, json};

use crate::{
    attempt::Shim,
    trick::{self, Trick},
};

const BEGIN: &str = "<!-- escapes: written by the tests -->\n";
const END: &str = "<!-- escapes: end -->\n";
/// The prefix of a report in the output of a test that another user has run.
const MARK: &str = "escapes-report: ";

/// A containment and a user: two columns of the table, with the shim alive and killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    CgroupRoot,
    CgroupUser,
    SubreaperRoot,
    SubreaperUser,
}

const COLUMNS: [Column; 4] = [
    Column::CgroupRoot,
    Column::CgroupUser,
    Column::SubreaperRoot,
    Column::SubreaperUser,
];

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::CgroupRoot => "cgroup, root",
            Self::CgroupUser => "cgroup, user",
            Self::SubreaperRoot => "subreaper, root",
            Self::SubreaperUser => "subreaper, user",
        }
    }

    fn report(self) -> PathBuf {
        let name = self.title().replace(", ", "-");
        binary::target_dir().join(format!("escapes/{name}.json"))
    }
}

pub(crate) fn key(trick: &Trick, shim: Shim) -> String {
    format!("{}, shim {shim:?}", trick.name)
}

/// Writes the report of a column, or prints it in a test that another user runs.
pub(crate) fn write_report(column: Column, results: &BTreeMap<String, String>) {
    match heeler_tests::containment::is_rerun() {
        true => println!("{MARK}{}", json!(results)),
        false => save(column, &json!(results)),
    }
}

/// Takes the report from the output of a test that another user has run.
pub(crate) fn take_report(column: Column, output: &str) {
    let report = output.lines().find_map(|line| line.split_once(MARK));
    let (_, report) = report.expect("a report");
    save(column, &serde_json::from_str(report).unwrap());
}

fn save(column: Column, results: &Value) {
    let path = column.report();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{results:#}\n")).unwrap();
}

fn reports() -> Vec<Option<Value>> {
    let report = |column: &Column| {
        let text = fs::read_to_string(column.report()).ok()?;
        Some(serde_json::from_str(&text).unwrap())
    };
    COLUMNS.iter().map(report).collect()
}

fn render(reports: &[Option<Value>]) -> String {
    let mut table = String::from("| trick | shim |");
    for column in COLUMNS {
        write!(table, " {} |", column.title()).unwrap();
    }
    table += "\n| --- | --- |";
    table += &" --- |".repeat(COLUMNS.len());
    for (trick, shim) in rows() {
        write!(table, "\n| {} | {} |", trick.name, shim_title(shim)).unwrap();
        for report in reports {
            let result = report.as_ref().map(|report| &report[&key(&trick, shim)]);
            let text = result.and_then(Value::as_str).unwrap_or_default();
            write!(table, " {text} |").unwrap();
        }
    }
    table + "\n"
}

fn rows() -> Vec<(Trick, Shim)> {
    let both = |trick: Trick| [Shim::Alive, Shim::Killed].map(|shim| (trick.clone(), shim));
    trick::all().into_iter().flat_map(both).collect()
}

fn shim_title(shim: Shim) -> &'static str {
    match shim {
        Shim::Alive => "alive",
        Shim::Killed => "killed",
    }
}

/// The page has a row for every trick and no false claim, and agrees with the reports that exist.
#[test]
fn the_table_agrees_with_the_reports() {
    let path = binary::workspace().join("docs/RELIABILITY.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the table's beginning");
    let (table, after) = rest.split_once(END).expect("the table's end");
    let reports = reports();
    if std::env::var_os("HEELER_BLESS").is_some() {
        let table = render(&reports);
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    let written: Vec<Vec<&str>> = table
        .lines()
        .skip(2)
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let rows = rows();
    assert_eq!(written.len(), rows.len(), "a row for every trick");
    for ((trick, shim), cells) in rows.iter().zip(written) {
        assert_eq!((cells[1], cells[2]), (trick.name, shim_title(*shim)));
        for ((column, report), cell) in COLUMNS.iter().zip(&reports).zip(&cells[3..]) {
            let what = format!("{}: {}", key(trick, *shim), column.title());
            assert!(!cell.is_empty() && *cell != "FALSE", "{what}: {cell}");
            if let Some(report) = report {
                assert_eq!(report[&key(trick, *shim)], *cell, "{what}");
            }
        }
    }
}
