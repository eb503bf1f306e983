//! The catalogue of behaviours: docs/BEHAVIOURS.md and the numbers in the tests agree.
//!
//! ```text
//! sources (*.rs, *.ts, *.js, *.cs, *.py) -> source: (number, file, test)
//! docs/BEHAVIOURS.md                     -> page: behaviours, built or not, with their lists of tests
//! both                                   -> faults, and the page with its lists rewritten
//! ```

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod page;
mod source;

use std::{collections::BTreeSet, fs};

use heeler_tests::binary;
use page::{Page, Status};

/// Every number in a test is in the catalogue, every built behaviour has a test, none that is not built
/// has one, and the lists of tests are up to date.
#[test]
fn the_catalogue_and_the_tests_agree() {
    let path = binary::workspace().join("docs/BEHAVIOURS.md");
    let page = Page::parse(&fs::read_to_string(&path).unwrap());
    let (mentions, mut faults) = source::mentions(&binary::workspace());
    let known: BTreeSet<&str> = page.behaviours().map(|one| &*one.number).collect();
    for mention in &mentions {
        if !known.contains(&*mention.number) {
            faults.push(format!("{mention} is not in the catalogue"));
        }
    }
    for behaviour in page.behaviours() {
        let number = &behaviour.number;
        let shown_by = mentions.iter().find(|mention| mention.number == *number);
        match (behaviour.status, shown_by) {
            (Status::Built, None) => faults.push(format!("{number} has no test")),
            (Status::NotBuilt, Some(test)) => {
                faults.push(format!(
                    "{test}: {number} must move up from \"Not built yet\""
                ));
            }
            (Status::Built, Some(_)) | (Status::NotBuilt, None) => {}
        }
    }
    let blessed = page.render(&mentions);
    if std::env::var_os("HEELER_BLESS").is_some() {
        fs::write(&path, &blessed).unwrap();
    } else if fs::read_to_string(&path).unwrap() != blessed {
        faults.push("the lists of tests are out of date".to_owned());
        faults.extend(page.missing_tests(&mentions));
        let bless = "HEELER_BLESS=1 cargo test -p heeler-tests --test catalogue";
        faults.push(format!("`{bless}` writes the lists"));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
