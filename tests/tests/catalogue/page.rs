//! The page of the catalogue: behaviours, and the lists of tests below them.
//!
//! ```text
//! - **C4** A sentence, which may go on
//!   in further lines.
//!   - `tests/tests/cancel/stop.rs`: `one_test`, `another_test`
//! ```

use std::{collections::BTreeSet, fmt::Write};

use regex::Regex;

use crate::source::Mention;

const NOT_BUILT: &str = "## Not built yet";
/// The longest line of the page.
const WIDTH: usize = 118;

/// A page, taken apart.
pub(crate) struct Page(Vec<Part>);

enum Part {
    /// Any other line.
    Line(String),
    Behaviour(Behaviour),
}

pub(crate) struct Behaviour {
    pub(crate) number: String,
    pub(crate) status: Status,
    /// The lines of the sentence, as they are.
    text: Vec<String>,
    /// The listed tests: file and name.
    listed: BTreeSet<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Built,
    NotBuilt,
}

impl Page {
    pub(crate) fn parse(page: &str) -> Self {
        let begin = Regex::new(r"^- \*\*([A-Z]\d+)\*\* ").unwrap();
        let (mut parts, mut status) = (Vec::new(), Status::Built);
        // Lines of a list are joined, since names may go on in the next line.
        let mut list = String::new();
        for line in page.lines() {
            if line == NOT_BUILT {
                status = Status::NotBuilt;
            }
            let indented = line.starts_with("  ");
            match (begin.captures(line), parts.last_mut()) {
                (Some(found), _) => {
                    list.clear();
                    parts.push(Part::Behaviour(Behaviour {
                        number: found[1].to_owned(),
                        status,
                        text: vec![line.to_owned()],
                        listed: BTreeSet::new(),
                    }));
                }
                (None, Some(Part::Behaviour(behaviour))) if indented => {
                    if line.starts_with("  - `") {
                        list.clear();
                    }
                    match line.starts_with("  - `") || line.starts_with("    ") {
                        true => {
                            list += line;
                            behaviour.listed.extend(tests_in(&list));
                        }
                        false => behaviour.text.push(line.to_owned()),
                    }
                }
                (None, _) => parts.push(Part::Line(line.to_owned())),
            }
        }
        Self(parts)
    }

    pub(crate) fn behaviours(&self) -> impl Iterator<Item = &Behaviour> {
        self.0.iter().filter_map(|part| match part {
            Part::Behaviour(behaviour) => Some(behaviour),
            Part::Line(_) => None,
        })
    }

    /// The page with the lists of tests made from the sources.
    pub(crate) fn render(&self, mentions: &[Mention]) -> String {
        let mut page = String::new();
        for part in &self.0 {
            match part {
                Part::Line(line) => writeln!(page, "{line}").unwrap(),
                Part::Behaviour(behaviour) => {
                    for line in &behaviour.text {
                        writeln!(page, "{line}").unwrap();
                    }
                    if behaviour.status == Status::Built {
                        page += &list(&behaviour.number, mentions);
                    }
                }
            }
        }
        page
    }

    /// The listed tests that do not exist.
    pub(crate) fn missing_tests(&self, mentions: &[Mention]) -> Vec<String> {
        let mut missing = Vec::new();
        for behaviour in self.behaviours() {
            for (file, test) in &behaviour.listed {
                let number = &behaviour.number;
                let exists = mentions.iter().any(|mention| {
                    (&mention.number, &mention.file, &mention.test) == (number, file, test)
                });
                if !exists {
                    missing.push(format!(
                        "{number} lists {file}: {test}, which does not exist"
                    ));
                }
            }
        }
        missing
    }
}

/// `FILE: TEST, TEST` of the joined lines of one file.
fn tests_in(list: &str) -> Vec<(String, String)> {
    let mut quoted = list.split('`').skip(1).step_by(2).map(str::to_owned);
    let Some(file) = quoted.next() else {
        return Vec::new();
    };
    quoted.map(|test| (file.clone(), test)).collect()
}

fn list(number: &str, mentions: &[Mention]) -> String {
    let mut list = String::new();
    let mut file = "";
    let mut width = 0;
    for mention in mentions.iter().filter(|one| one.number == number) {
        let test = format!("`{}`", mention.test);
        if mention.file != file {
            let head = format!("  - `{}`:", mention.file);
            list += if list.is_empty() { "" } else { "\n" };
            list += &head;
            (file, width) = (&mention.file, head.len());
        } else {
            list.push(',');
            width += 1;
        }
        if width + 1 + test.len() >= WIDTH {
            list += "\n   ";
            width = 3;
        }
        write!(list, " {test}").unwrap();
        width += 1 + test.len();
    }
    if !list.is_empty() {
        list.push('\n');
    }
    list
}
