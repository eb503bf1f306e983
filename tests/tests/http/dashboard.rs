//! `heeler dashboard`, which serves the page of any daemon.

use std::{
    env, fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use heeler_tests::{
    Daemon,
    binary::{self, with_default_signals},
    eventually, eventually_some,
    http1::Http,
    shell,
};
use http::StatusCode;
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, getpgid},
};
use tokio::net::TcpStream;

/// A command that runs until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn dashboard(daemon: &Daemon, args: &[&str]) -> (Running, Http) {
    dashboard_by(Command::new(binary::heeler()), daemon, args).await
}

/// The dashboard of a command that runs `heeler` with its further arguments.
async fn dashboard_by(mut heeler: Command, daemon: &Daemon, args: &[&str]) -> (Running, Http) {
    let printed = daemon.path("dashboard");
    let file = std::fs::File::create(&printed).unwrap();
    let child = heeler
        .arg("dashboard")
        .args(["--addr", &daemon.address()])
        .args(args)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdin(Stdio::null())
        .stdout(file)
        .spawn()
        .unwrap();
    let running = Running(child);
    let url = eventually_some("an address", || {
        let text = std::fs::read_to_string(&printed).ok()?;
        text.ends_with('\n').then(|| text.trim().to_owned())
    })
    .await;
    let (host, token) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once("/#token="))
        .unwrap_or_else(|| panic!("{url}"));
    (running, Http::new(host, token))
}

/// H1, H2: the daemon listens on no HTTP address.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_dashboard_serves_page_and_calls_with_a_token_of_its_own() {
    let daemon = Daemon::start().await;
    let task = daemon.api().await.start(shell("sleep 1000")).await;
    let (_running, http) = dashboard(&daemon, &[]).await;
    let page = http.get("/", &[]).await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    assert_eq!(
        http.call("List", "{}").await["tasks"][0]["id"],
        task.id.as_str()
    );
    let mut events = http
        .stream("WatchEvents", r#"{"initialState": true}"#)
        .await;
    events
        .until(|_, json| json["initial"]["id"] == task.id.as_str())
        .await;
    let mut request = http.request("List", "{}");
    request.headers_mut().remove("authorization");
    assert_eq!(http.send(request).await.status, StatusCode::UNAUTHORIZED);
    let forged = http.get("/", &[("host", "evil.example")]).await;
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
}

/// H2: any user of the machine can connect.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn connections_without_the_token_do_not_keep_the_user_out() {
    let daemon = Daemon::start().await;
    let mut limited = Command::new("prlimit");
    limited.arg("--nofile=320").arg(binary::heeler());
    let (_running, http) = dashboard_by(limited, &daemon, &[]).await;
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(&http.host).await.unwrap());
        if silent.len().is_multiple_of(50) {
            http.call("List", "{}").await;
        }
    }
}

/// H1: the daemon is killed and comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_dashboard_survives_a_restart_of_the_daemon() {
    let mut daemon = Daemon::start().await;
    let (_running, http) = dashboard(&daemon, &["--read-only"]).await;
    http.call("List", "{}").await;
    daemon.kill9();
    let answer = http.send(http.request("List", "{}")).await;
    assert_eq!(
        answer.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "{}",
        answer.json()
    );
    daemon.restart().await;
    http.call("List", "{}").await;
    let answer = http.send(http.request("Shutdown", "{}")).await;
    assert_eq!(answer.error().1, "READ_ONLY");
}

/// The process group of a process.
fn group_of(pid: u32) -> String {
    let group = getpgid(Some(Pid::from_raw(pid as i32))).unwrap();
    group.to_string()
}

/// K4, N4: a command line can be read by every user of the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_browser_gets_the_token_by_a_file_of_this_user_alone() {
    let daemon = Daemon::start().await;
    let (programs, seen, temporary) = (
        daemon.path("programs"),
        daemon.path("seen"),
        daemon.path("temporary"),
    );
    for directory in [&programs, &temporary] {
        fs::create_dir(directory).unwrap();
    }
    let script = format!(
        "#!/bin/sh\nstat -c %a \"$1\" > {seen}.new; echo \"$1\" >> {seen}.new; cat \"$1\" >> {seen}.new; echo >> {seen}.new\n\
         cut -d' ' -f5 /proc/$$/stat >> {seen}.new; mv {seen}.new {seen}\n",
        seen = seen.display(),
    );
    let browser = programs.join("xdg-open");
    binary::make(&browser, script);
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap());
    let child = with_default_signals(binary::heeler())
        .args(["dashboard", "--addr", &daemon.address()])
        .env("PATH", path)
        .env("DISPLAY", ":0")
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let seen = eventually_some("a browser", || fs::read_to_string(&seen).ok()).await;
    let mut lines = seen.lines();
    assert_eq!(lines.next(), Some("600"));
    let argument = PathBuf::from(lines.next().unwrap());
    assert!(argument.starts_with(&temporary), "{argument:?}");
    let page = lines.next().unwrap();
    assert!(
        page.contains("url=http://127.0.0.1:") && page.contains("/#token="),
        "{page}"
    );
    // A terminal sends Ctrl-C to the group of the command, and the browser is the user's.
    let group = lines.last().unwrap().trim();
    assert_ne!(group, group_of(running.0.id()));
    eventually("a browser that is no zombie", || {
        fs::read_to_string(format!("/proc/{group}/stat")).is_err()
    })
    .await;
    kill(Pid::from_raw(running.0.id() as i32), Signal::SIGINT).unwrap();
    assert!(running.0.wait().unwrap().success());
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}
