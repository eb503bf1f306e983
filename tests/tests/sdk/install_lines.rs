//! The README and the pages of the SDKs install the same things by the same commands.

use std::fs;

use heeler_tests::binary;

const PAGES: [&str; 4] = ["dotnet", "typescript", "python", "rust"];

fn read(path: &str) -> String {
    fs::read_to_string(binary::workspace().join(path)).unwrap()
}

/// The commands of the first shell block, without comments.
fn install_lines(page: &str) -> Vec<String> {
    let (_, rest) = page.split_once("```sh\n").unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    let command = |line: &str| line.split(" #").next().unwrap().trim_end().to_owned();
    block.lines().map(command).collect()
}

/// U2
#[test]
fn each_page_installs_the_command_and_the_sdk_as_the_readme_does() {
    let readme = read("README.md");
    for name in PAGES {
        let lines = install_lines(&read(&format!("docs/sdk/{name}.md")));
        assert_eq!(lines[0], "cargo install --path cli", "{name}");
        assert!(lines.len() > 1, "{name}: {lines:?}");
        for line in &lines {
            assert!(readme.contains(line), "{name}: the README lacks {line:?}");
        }
    }
}
