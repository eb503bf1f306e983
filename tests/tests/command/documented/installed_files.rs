//! The files that the command prints for other programs: manual pages, and the unit for systemd.

use std::process::Command;

use heeler_tests::{Daemon, cli::CommandResult, not_installed};

fn is_installed(program: &'static str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        not_installed(program);
    }
    is_there
}

/// The names of all commands, as the help lists them.
async fn commands(daemon: &Daemon) -> Vec<String> {
    let help = daemon.heeler(["--help"]).await.ok().stdout;
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    // A description that is wrapped is indented further.
    let rows = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = rows.filter(|row| !row.starts_with(' '));
    let names = names.map(|row| row.split(' ').next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_manual_page_is_printed_for_each_command() {
    let daemon = Daemon::start().await;
    let own = daemon.heeler(["man"]).await.ok().stdout;
    assert!(own.contains(".TH heeler 1"), "{own}");
    let run = daemon.heeler(["man", "run"]).await.ok().stdout;
    assert!(run.contains(".TH heeler-run 1"), "{run}");
    assert!(run.contains("foreground\\-timeout"), "{run}");
    let unknown = daemon.heeler(["man", "no-such"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

/// U4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn man_shows_every_page_without_a_warning() {
    if !is_installed("man") || !is_installed("groff") {
        return;
    }
    let daemon = Daemon::start().await;
    let commands = commands(&daemon).await;
    assert!(commands.len() > 15, "{commands:?}");
    for name in commands {
        let page = daemon.heeler(["man", &name]).await.ok().stdout;
        let file = daemon.path(&format!("heeler-{name}.1"));
        std::fs::write(&file, page).unwrap();
        let mut man = daemon.wrapper("man");
        man.env("MANWIDTH", "80").env("LC_ALL", "C.UTF-8");
        man.arg("--warnings=w").arg("-l").arg(&file);
        let shown = CommandResult::of(man).await.ok();
        assert_eq!(shown.stderr, "", "{name}");
        let title = format!("heeler-{name}(1)");
        let first = shown.stdout.lines().next().unwrap_or_default();
        assert!(
            first.starts_with(&title) && first.contains("Heeler"),
            "{first}"
        );
        let version = concat!("heeler ", env!("CARGO_PKG_VERSION"));
        let last = shown.stdout.trim_end().lines().last().unwrap_or_default();
        assert!(last.starts_with(version), "{last}");
    }
}

/// U3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn systemd_accepts_the_printed_unit() {
    if !is_installed("systemd-analyze") {
        return;
    }
    let daemon = Daemon::start().await;
    let plain: &[&str] = &[];
    let quoted = &["--state-dir", "/a b/%h/$x", "--listen", "tcp:127.0.0.1:0"];
    for args in [plain, quoted] {
        let args = [&["serve", "--print-unit"], args].concat();
        let unit = daemon.heeler(&args).await.ok().stdout;
        let file = daemon.path("heeler.service");
        std::fs::write(&file, unit).unwrap();
        let mut analyze = daemon.wrapper("systemd-analyze");
        analyze.env("XDG_RUNTIME_DIR", daemon.path("run"));
        analyze.arg("verify").arg("--user").arg(&file);
        let verified = CommandResult::of(analyze).await.ok();
        assert_eq!(verified.stderr, "", "{args:?}");
    }
}
