//! docs/sdk/go.md: its commands generate stubs, and its program prints what the page says.

use std::{env, fs, path::PathBuf, process::Stdio, time::Duration};

use heeler_tests::{Daemon, binary, skipped};
use tokio::process::Command;

/// Time to download and compile gRPC for Go on a loaded machine, the first time.
const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// The only code block of a language on the page.
fn block(page: &str, language: &str) -> String {
    let begin = format!("```{language}\n");
    let (_, rest) = page.split_once(&begin).unwrap();
    rest.split("```").next().unwrap().to_owned()
}

fn is_installed(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("version").output();
    found.is_ok_and(|output| output.status.success())
}

/// Runs a command in the module and returns its stdout.
async fn output(module: &PathBuf, mut command: Command) -> String {
    let bin = module.join("bin");
    let path = env::var("PATH").unwrap_or_default();
    command
        .current_dir(module)
        .env("GOBIN", &bin)
        .env("PATH", format!("{}:{path}", bin.display()))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(BUILD_LIMIT, command.output())
        .await
        .expect("the command ends in time")
        .unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_program_of_the_page_prints_what_the_page_says() {
    if !is_installed("go") || !is_installed("npm") {
        return skipped("the Go page needs go and npm");
    }
    let page = fs::read_to_string(binary::workspace().join("docs/sdk/go.md")).unwrap();
    // Kept below the target directory, so that the next run compiles nothing.
    let module = binary::target_dir().join("tools/go-page");
    fs::create_dir_all(&module).unwrap();
    // Stubs of a contract that has changed since.
    drop(fs::remove_dir_all(module.join("gen")));
    fs::write(module.join("go.mod"), "module example.com/app\n\ngo 1.24\n").unwrap();
    let mut generate = Command::new("sh");
    generate.args(["-euc", &block(&page, "sh")]);
    generate.env("HEELER", binary::workspace());
    output(&module, generate).await;
    fs::write(module.join("main.go"), block(&page, "go")).unwrap();
    let mut build = Command::new("go");
    build.args(["build", "-o", "bin/app", "."]);
    output(&module, build).await;

    let daemon = Daemon::start().await;
    let mut program = Command::new(module.join("bin/app"));
    program.env("HEELER_ADDR", daemon.address());
    assert_eq!(output(&module, program).await, block(&page, "text"));
}
