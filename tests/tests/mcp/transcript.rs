//! The transcript in docs/MCP.md is what the Python client has printed. `HEELER_BLESS=1` writes it.

use std::fs;

use heeler_tests::{Daemon, binary};
use regex::{Captures, Regex};

use crate::clients;

const BEGIN: &str = "<!-- transcript: HEELER_BLESS=1 cargo test -p heeler-tests --test mcp transcript -->\n\n```text\n";
const END: &str = "\n```\n";

/// The ids of the transcript, in the order of their appearance.
const IDS: [&str; 5] = [
    "4k2mzq7xda",
    "7rw3hm2pqe",
    "x5c6t2nbya",
    "q3vj6wkm4e",
    "m5q2vd7tka",
];

/// Patterns of what differs from run to run, and their replacements.
const DIFFERENCES: [(&str, &str); 6] = [
    (r"after \d[\d.]*s", "after 0.1s"),
    (r"(?m)^  \d+ ", "  4242 "),
    (r"[\d.]+s CPU, [\d.]+ \w+ memory", "0.0s CPU, 1.9 MB memory"),
    (r"(?m)^cwd .*$", "cwd /srv/app"),
    (
        r"proven gone: its shim has no child and",
        "proven gone: its cgroup is empty and",
    ),
    (r":/tmp/heeler-\w+/home", ":/srv/app"),
];

fn settled(transcript: &str) -> String {
    let mut seen: Vec<String> = Vec::new();
    let number = |found: &Captures<'_>| {
        let id = found[0].to_owned();
        if id == "shell-aaaaaaaaaa" {
            return id;
        }
        let index = seen.iter().position(|one| *one == id).unwrap_or_else(|| {
            seen.push(id);
            seen.len() - 1
        });
        format!("shell-{}", IDS[index])
    };
    let text = Regex::new("shell-[a-z2-7]{10}")
        .unwrap()
        .replace_all(transcript, number);
    DIFFERENCES
        .iter()
        .fold(text.into_owned(), |text, (pattern, instead)| {
            Regex::new(pattern)
                .unwrap()
                .replace_all(&text, *instead)
                .into_owned()
        })
}

/// M1, M3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_transcript_of_the_page_is_what_a_client_sees() {
    let daemon = Daemon::start().await;
    let Some(run) = clients::python(&daemon, "auto").await else {
        return;
    };
    let path = binary::workspace().join("docs/MCP.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a transcript");
    let (shown, after) = rest.split_once(END).expect("the transcript ends");
    let expected = settled(run.stdout.trim_end());
    if std::env::var_os("HEELER_BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
    } else {
        assert_eq!(shown, expected);
    }
}
