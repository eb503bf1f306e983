//! Behaviour numbers in the test sources of the repository.

use std::{fmt, fs, path::Path};

use heeler_tests::disk::files_below;
use regex::Regex;

/// A behaviour number on a test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mention {
    pub(crate) number: String,
    /// The path from the root of the repository.
    pub(crate) file: String,
    pub(crate) test: String,
}

impl fmt::Display for Mention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.file, self.test, self.number)
    }
}

/// The folders with tests, from the root of the repository.
const FOLDERS: [&str; 10] = [
    "bench",
    "cli/src",
    "examples",
    "sdk-dotnet/tests",
    "sdk-python/tests",
    "sdk-rust",
    "sdk-typescript/test",
    "server/src",
    "shim",
    "ui/test",
];
/// The folder of this crate's tests.
const OWN: &str = "tests/tests";

/// `C4` or `C4, C7`.
const NUMBERS: &str = r"([A-Z]\d+(?:, [A-Z]\d+)*)";

/// Where a language has the numbers, and the name of the test.
struct Syntax {
    extension: &'static str,
    /// A line with numbers; the first group.
    numbers: Regex,
    /// A line with the name of a test; the first group.
    name: Regex,
    order: Order,
}

/// The order of numbers and name.
#[derive(Clone, Copy)]
enum Order {
    /// A comment before the test.
    NumbersFirst,
    /// A docstring in the test.
    NameFirst,
}

fn syntaxes() -> [Syntax; 5] {
    let regex = |pattern: &str| Regex::new(&pattern.replace("NUMBERS", NUMBERS)).unwrap();
    let script = |extension| Syntax {
        extension,
        numbers: regex(r"^\s*/\*\* NUMBERS(?::.*)? \*/$"),
        name: regex(r#"^\s*(?:void )?(?:test|it)\(\s*["`](.+?)["`]"#),
        order: Order::NumbersFirst,
    };
    [
        Syntax {
            extension: "rs",
            numbers: regex(r"^\s*/// NUMBERS(?::.*)?$"),
            name: regex(r"^\s*(?:pub(?:\(\w+\))? )?(?:async )?fn (\w+)"),
            order: Order::NumbersFirst,
        },
        script("ts"),
        script("js"),
        Syntax {
            extension: "cs",
            numbers: regex(r"^\s*/// <summary>NUMBERS(?::.*)?</summary>$"),
            name: regex(r"^\s*public (?:async )?(?:\w+ )+(\w+)\("),
            order: Order::NumbersFirst,
        },
        Syntax {
            extension: "py",
            numbers: regex(r#"^\s*"""NUMBERS(?:: .*|\.)"""$"#),
            name: regex(r"^\s*(?:async )?def (test_\w+)\("),
            order: Order::NameFirst,
        },
    ]
}

/// Every behaviour number in the test sources, sorted, and numbers that belong to no test.
pub(crate) fn mentions(root: &Path) -> (Vec<Mention>, Vec<String>) {
    let (mut mentions, mut faults) = (Vec::new(), Vec::new());
    let syntaxes = syntaxes();
    for folder in FOLDERS.iter().chain([&OWN]) {
        for path in files_below(&root.join(folder)) {
            let relative = path.strip_prefix(root).unwrap().to_str().unwrap();
            let extension = path.extension().and_then(|extension| extension.to_str());
            let is_built = |part: &str| {
                // The server has sources in a folder of that name.
                let is_compiled = part == "build" && extension == Some("js");
                is_compiled || ["node_modules", "bin", "obj", "target"].contains(&part)
            };
            let of = |syntax: &&Syntax| Some(syntax.extension) == extension;
            let Some(syntax) = syntaxes.iter().find(of) else {
                continue;
            };
            if !relative.split('/').any(is_built) {
                let text = fs::read_to_string(&path).unwrap();
                syntax.read(relative, &text, &mut mentions, &mut faults);
            }
        }
    }
    mentions.sort();
    mentions.dedup();
    (mentions, faults)
}

impl Syntax {
    fn read(&self, file: &str, text: &str, found: &mut Vec<Mention>, faults: &mut Vec<String>) {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(numbers) = self.numbers.captures(line) else {
                continue;
            };
            let name = |line: &&str| Some(self.name.captures(line)?[1].to_owned());
            let test = match self.order {
                Order::NumbersFirst => lines[at + 1..].iter().take(8).find_map(name),
                Order::NameFirst => lines[..at].iter().rev().take(12).find_map(name),
            };
            let Some(test) = test else {
                faults.push(format!("{file}:{}: numbers without a test", at + 1));
                continue;
            };
            for number in numbers[1].split(", ") {
                found.push(Mention {
                    number: number.to_owned(),
                    file: file.to_owned(),
                    test: test.clone(),
                });
            }
        }
    }
}
