//! What every client command has: the daemon, the form of the result, and where it goes.

use std::path::PathBuf;

use clap::Args;
use heeler_client::{Address, Client, ConnectOptions, Error};

use crate::{
    daemon,
    exit::Failure,
    json::{Json, Named},
    out::Out,
};

/// What every client command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClientArgs {
    /// Where the daemon is, e.g. unix:/run/x.sock, tcp:127.0.0.1:7117 or tls:build.example.com:7117
    /// [env: HEELER_ADDR] [default: this user's own, which is started if need be]
    #[arg(long, value_name = "ADDRESS")]
    addr: Option<Address>,

    /// The file with the token for a daemon over TCP [env: HEELER_TOKEN_FILE] [default: on
    /// loopback, that of this user's own daemon]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// The certificate, in PEM form, of the authority to believe over TLS [env: HEELER_TLS_CA]
    /// [default: those of the system]
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,

    /// Print the response in protobuf's JSON mapping, one object a line for streams
    #[arg(long)]
    json: bool,
}

impl ClientArgs {
    /// Which daemon somebody chose; none if nobody did.
    fn address(&self) -> Result<Option<Address>, Failure> {
        match &self.addr {
            Some(address) => Ok(Some(address.clone())),
            None => Ok(Address::from_env().map_err(Error::from)?),
        }
    }

    fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new();
        if let Some(path) = &self.token_file {
            options = options.token_file(path);
        }
        if let Some(path) = &self.tls_ca {
            options = options.tls_ca(path);
        }
        options
    }
}

/// An open connection and the way to answer.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) client: Client,
    /// Present if the result is to be JSON.
    pub(crate) json: Option<Json>,
    pub(crate) out: Out,
}

impl Context {
    /// Connects; where nobody said which daemon, one is started if there is none.
    pub(crate) async fn open(args: &ClientArgs) -> Result<Self, Failure> {
        let client = match args.address()? {
            Some(address) => Client::connect_with(address, args.options()).await?,
            None => daemon::connect_or_start().await?,
        };
        Ok(Self::new(client, args))
    }

    /// Connects to a daemon that is there; starts none.
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

    /// Prints the answer to a call as JSON, if that is the form; says whether it was.
    pub(crate) fn print_json<M: Named>(&mut self, message: &M) -> Result<Printed, Failure> {
        let Some(json) = &self.json else {
            return Ok(Printed::No);
        };
        json.pretty(self.out.writer(), message)?;
        Ok(Printed::Yes)
    }

    /// The same for one of a stream's answers.
    pub(crate) fn print_json_line<M: Named>(&mut self, message: &M) -> Result<Printed, Failure> {
        let Some(json) = &self.json else {
            return Ok(Printed::No);
        };
        json.line(self.out.writer(), message)?;
        Ok(Printed::Yes)
    }
}

/// Whether a result has been printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    /// As JSON: there is nothing left to print.
    Yes,
    /// It is for people, and still to be printed.
    No,
}
