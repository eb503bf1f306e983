//! The log of `heeler serve`: plain text in a file, colours only on a terminal.

use heeler_tests::Daemon;
use nix::sys::signal::Signal;

const ESCAPE: char = '\u{1b}';

/// Programs read a redirected log.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_redirected_log_has_no_escape_codes() {
    let daemon = Daemon::builder().env("HEELER_LOG", "trace").start().await;
    daemon.logged("TRACE").await;
    let log = daemon.log();
    assert!(!log.contains(ESCAPE), "{log}");
}

/// People read a log on a terminal.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_log_on_a_terminal_has_colours_unless_no_color_is_set() {
    for (no_color, has_colours) in [("", true), ("1", false)] {
        let daemon = Daemon::builder()
            .env("HEELER_LOG", "trace")
            .env("NO_COLOR", no_color)
            .prepare();
        let state = daemon.file("state");
        let mut serve = daemon.at_terminal(["serve", "--state-dir", &state], None);
        serve.shows("listening").await;
        serve.process().signal(Signal::SIGTERM);
        assert_eq!(serve.exit().await, Some(0));
        // The server logs its shutdown.
        serve.shows("TRACE").await;
        let shown = serve.shown();
        assert_eq!(shown.contains(ESCAPE), has_colours, "{shown}");
    }
}
