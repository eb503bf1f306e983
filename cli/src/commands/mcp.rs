//! `heeler mcp`: serves the Model Context Protocol on stdin and stdout.

use std::env;

use clap::{Args, builder::PossibleValuesParser};
use heeler_mcp::{AtTheEnd, Host, Options, Reach};

use crate::{
    args::{
        selection,
        value::key_value::{self, KeyValue, Variable},
    },
    completion,
    context::ClientArgs,
    exit::Exit,
    failure::Failure,
    out::{self, Out},
};

const EXAMPLES: &str = "\
Examples:
  heeler mcp --print-config claude-code > .mcp.json
  heeler mcp --print-config codex >> ~/.codex/config.toml
  heeler mcp --session review --env PATH
  heeler mcp --end-session

A host starts it and gives its model the tools. Tasks belong to a session named after the host and the \
directory, so that the host finds them again. They go on when the host ends, except with --end-session.";

/// Serve the Model Context Protocol on stdin and stdout, for agents
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Mcp {
    /// The session of the tasks [default: the name of the client and the current directory]
    #[arg(long, value_parser = selection::session, add = completion::sessions())]
    session: Option<String>,

    /// Let the tools reach the tasks of every session
    #[arg(long)]
    all: bool,

    /// Cancel the live tasks of the session when the host is gone, and no other connection owns the session
    #[arg(long)]
    end_session: bool,

    /// A variable for every task; K alone passes on the value that it has here; may be repeated
    #[arg(long, value_name = "K[=V]", value_parser = key_value::parse_variable)]
    env: Vec<Variable>,

    /// Print the configuration of a host that starts this server, and the file it belongs into
    #[arg(long, value_name = "HOST", value_parser = PossibleValuesParser::new(Host::ALL.map(Host::name)))]
    print_config: Option<String>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl Mcp {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        if let Some(host) = self.print_config.as_deref().and_then(Host::from_name) {
            return self.print_config(host);
        }
        let directory = env::current_dir();
        let directory =
            directory.map_err(|error| Failure::Other(format!("no current directory: {error}")))?;
        let program = env::current_exe().map_err(Failure::setup)?;
        let variables = self.env.into_iter().map(Variable::resolved);
        let variables = variables.collect::<Result<Vec<_>, _>>();
        let options = Options {
            address: self.client.address()?,
            connect: self.client.options().program(program),
            session: self.session,
            reach: match self.all {
                true => Reach::All,
                false => Reach::Session,
            },
            at_the_end: match self.end_session {
                true => AtTheEnd::CancelTasks,
                false => AtTheEnd::KeepTasks,
            },
            directory,
            env: variables
                .map_err(Failure::Usage)?
                .into_iter()
                .map(|KeyValue { key, value }| (key, value))
                .collect(),
        };
        let served = heeler_mcp::serve(options).await;
        served.map_err(|error| Failure::Other(error.to_string()))?;
        Ok(Exit::Success)
    }

    /// Prints the configuration to stdout and the file to stderr.
    fn print_config(&self, host: Host) -> Result<Exit, Failure> {
        let program = env::current_exe().map_err(Failure::setup)?;
        let mut args = vec!["mcp".to_owned()];
        // A host may not pass on the variables that name the daemon here.
        args.extend(self.client.to_lasting_arguments()?);
        if let Some(session) = &self.session {
            args.extend(["--session".to_owned(), session.clone()]);
        }
        for (is_set, flag) in [(self.all, "--all"), (self.end_session, "--end-session")] {
            if is_set {
                args.push(flag.to_owned());
            }
        }
        for variable in &self.env {
            args.extend(["--env".to_owned(), variable.to_argument()]);
        }
        out::note(&format!("for {}, add to {}:", host.name(), host.file()));
        let mut out = Out::new();
        let config = host.config(&program.to_string_lossy(), &args);
        out.line(config.trim_end())?;
        out.flush()?;
        Ok(Exit::Success)
    }
}
