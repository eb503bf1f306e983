//! `heeler dashboard`: serves the page of the daemon from this process.

mod redirect;

use std::{env, io, net::SocketAddr, process::Stdio};

use clap::Args;
use heeler_server::{Dashboard as Server, HttpAccess};
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
};

use self::redirect::Redirect;
use crate::{
    args::value::listen_address,
    context::{ClientArgs, Context},
    exit::Exit,
    failure::Failure,
    out,
};

const EXAMPLES: &str = "\
Examples:
  heeler dashboard
  heeler dashboard --read-only --no-open
  heeler dashboard --http 127.0.0.1:8080 --addr tls:build.example.com:7117 --token-file token

The page and its calls are served by this command, on an address of this machine, until Ctrl-C. It \
works with any daemon, also with one that was started without --http, and has your rights. The \
printed address contains a token that is valid as long as the command runs: give it to no one.";

/// Show the tasks in a browser
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Dashboard {
    /// The loopback address to listen on; port 0 chooses a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0",
          value_parser = listen_address::http)]
    http: SocketAddr,

    /// Refuse calls that change something
    #[arg(long)]
    read_only: bool,

    /// Print the address and start no browser
    #[arg(long)]
    no_open: bool,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Dashboard {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut cx = Context::open(&self.client).await?;
        let access = match self.read_only {
            true => HttpAccess::ReadOnly,
            false => HttpAccess::All,
        };
        let server = Server::bind(self.http, access).await;
        let server = server.map_err(|error| Failure::Other(error.to_string()))?;
        let url = server.url();
        match cx.json {
            Some(_) => cx
                .out
                .line(&serde_json::json!({ "url": url }).to_string())?,
            None => cx.out.line(&url)?,
        }
        cx.out.flush()?;
        // Before the file for the browser is there, which a Ctrl-C must not leave behind.
        let interrupts = signal(SignalKind::interrupt());
        let _redirect = match self.no_open {
            true => None,
            false => open(&url),
        };
        let interrupted = async {
            match interrupts {
                Ok(mut interrupts) => interrupts.recv().await,
                // Without the handler, Ctrl-C ends the process by itself.
                Err(_) => std::future::pending().await,
            };
        };
        server.serve(cx.client.connection(), interrupted).await;
        Ok(Exit::Success)
    }
}

/// Starts the browser of a graphical session, if there is one. The browser reads the returned file.
fn open(url: &str) -> Option<Redirect> {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !has_screen {
        return None;
    }
    let started = Redirect::to(url).and_then(|redirect| {
        start_browser(&redirect)?;
        Ok(redirect)
    });
    match started {
        Ok(redirect) => Some(redirect),
        Err(error) => {
            out::note(&format!("cannot start a browser with xdg-open: {error}"));
            None
        }
    }
}

fn start_browser(redirect: &Redirect) -> io::Result<()> {
    let mut browser = Command::new("xdg-open")
        .arg(redirect.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // The Ctrl-C for this command is not for a browser that may have been started by it.
        .process_group(0)
        .spawn()?;
    // Until it has ended, it is no zombie.
    tokio::spawn(async move { browser.wait().await });
    Ok(())
}
