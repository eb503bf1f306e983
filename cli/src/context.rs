//! The context of a client command: the connection to the daemon, the output format and the output.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

use clap::Args;
use heeler_client::{Address, Client, ConnectOptions, Error};

use crate::{
    daemon::start,
    failure::Failure,
    out::{Format, Out},
    render::json::{Json, Named},
};

/// Time limit for a daemon that went away to come back, for commands that survive its restart.
pub(crate) const RECONNECT_LIMIT: Duration = Duration::from_secs(30);

/// The variable with the span that a command runs in.
const TRACE_PARENT: &str = "TRACEPARENT";

/// The flags of every client command.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClientArgs {
    /// The daemon's address, e.g. unix:/run/x.sock, tcp:127.0.0.1:7117 or tls:build.example.com:7117
    /// [env: HEELER_ADDR] [default: this user's own daemon, started if it is not running]
    #[arg(long, value_name = "ADDRESS")]
    addr: Option<Address>,

    /// The file with the token for TCP [env: HEELER_TOKEN_FILE] [default: inside of a task, for its own
    /// daemon, the task's token in HEELER_TOKEN; else, on loopback, the token of this user's own daemon]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// The PEM certificate of the authority to trust for TLS [env: HEELER_TLS_CA] [default: the
    /// system's authorities]
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,

    /// Print the response as JSON (protobuf's mapping), one object per line for streams; errors too, on stderr
    #[arg(long)]
    json: bool,
}

impl ClientArgs {
    /// The form of messages.
    pub(crate) fn format(&self) -> Format {
        match self.json {
            true => Format::Json,
            false => Format::Text,
        }
    }

    /// The address that was given by flag or environment.
    pub(crate) fn address(&self) -> Result<Option<Address>, Failure> {
        match &self.addr {
            Some(address) => Ok(Some(address.clone())),
            None => Ok(Address::from_env().map_err(Error::from)?),
        }
    }

    /// The flags that another command needs to reach the same daemon.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let flags = [
            (
                "--addr",
                self.addr.as_ref().map(|addr| addr.to_string().into()),
            ),
            ("--token-file", self.token_file.as_ref().map(OsString::from)),
            ("--tls-ca", self.tls_ca.as_ref().map(OsString::from)),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(flag, value)| Some((flag, value?)));
        given
            .flat_map(|(flag, value)| [flag.into(), value])
            .collect()
    }

    /// The flags that reach the same daemon from another directory and another environment.
    pub(crate) fn to_lasting_arguments(&self) -> Result<Vec<String>, Failure> {
        let address = self.address()?.map(|address| address.to_string());
        let mut arguments: Vec<String> = address
            .into_iter()
            .flat_map(|address| ["--addr".to_owned(), address])
            .collect();
        for (flag, variable, given) in [
            (
                "--token-file",
                ConnectOptions::TOKEN_FILE_ENV,
                &self.token_file,
            ),
            ("--tls-ca", ConnectOptions::TLS_CA_ENV, &self.tls_ca),
        ] {
            let named = || env::var_os(variable).filter(|path| !path.is_empty());
            let path = given.clone().or_else(|| named().map(PathBuf::from));
            if let Some(path) = path {
                let path = std::path::absolute(path).map_err(Failure::setup)?;
                arguments.extend([flag.to_owned(), path.to_string_lossy().into_owned()]);
            }
        }
        Ok(arguments)
    }

    pub(crate) fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new();
        if let Ok(span) = env::var(TRACE_PARENT) {
            options = options.trace_parent(span);
        }
        if let Some(path) = &self.token_file {
            options = options.token_file(path);
        }
        if let Some(path) = &self.tls_ca {
            options = options.tls_ca(path);
        }
        options
    }
}

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) client: Client,
    /// Present with `--json`.
    pub(crate) json: Option<Json>,
    pub(crate) out: Out,
}

impl Context {
    /// Connects. Without an address it is this user's daemon, which is started if it is not running.
    pub(crate) async fn open(args: &ClientArgs) -> Result<Self, Failure> {
        let client = match args.address()? {
            Some(address) => Client::connect_with(address, args.options()).await?,
            None => start::connect_or_start(args.options()).await?,
        };
        Ok(Self::new(client, args))
    }

    /// Connects to a running daemon; starts none.
    pub(crate) async fn find(args: &ClientArgs) -> Result<Self, Failure> {
        let address = match args.address()? {
            Some(address) => address,
            None => Address::default_for_user().map_err(Error::from)?,
        };
        let client = Client::connect_with(address, args.options()).await?;
        Ok(Self::new(client, args))
    }

    fn new(client: Client, args: &ClientArgs) -> Self {
        Self {
            client,
            json: args.json.then(Json::new),
            out: Out::new(),
        }
    }

    /// Prints the response of a unary call if `--json` was given.
    pub(crate) fn print_json<M: Named>(&mut self, message: &M) -> Result<Printed, Failure> {
        let Some(json) = &self.json else {
            return Ok(Printed::No);
        };
        json.pretty(self.out.writer(), message)?;
        Ok(Printed::Yes)
    }

    /// Prints one response of a stream if `--json` was given.
    pub(crate) fn print_json_line<M: Named>(&mut self, message: &M) -> Result<Printed, Failure> {
        let Some(json) = &self.json else {
            return Ok(Printed::No);
        };
        json.line(self.out.writer(), message)?;
        Ok(Printed::Yes)
    }
}

/// Tells whether a response was printed as JSON, or is still to be printed as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    Yes,
    No,
}
