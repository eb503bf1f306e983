//! The errors of calls, typed from the details that the daemon sends with each refusal.

use std::{collections::BTreeMap, error::Error as StdError, fmt, io, sync::Arc, time::Duration};

use heeler_proto::v1::ErrorReason;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::{
    backoff::Attempt,
    connect::{Address, AddressError, CredentialsError},
    option_names,
};

/// The domain of Heeler's reasons.
const DOMAIN: &str = "heeler.dev";
const REASON_PREFIX: &str = "ERROR_REASON_";

/// The reason why a call did not succeed.
///
/// ```no_run
/// use heeler_client::{Client, Error, v1::ErrorReason};
///
/// # async fn example(client: Client) -> Result<(), Error> {
/// match client.task("shell-aaaaaaaaaa").get().await {
///     Ok(task) => println!("{:?}", task.state()),
///     Err(error) if error.is(ErrorReason::TaskNotFound) => println!("no such task"),
///     Err(error) => return Err(error),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// No process listens at the address.
    #[error("no daemon answers at {address}: start one with `{}`", address.start_command())]
    NotRunning { address: Address, source: io::Error },
    /// There is no program `heeler` that can be executed.
    #[error(
        "cannot start the daemon: cannot execute `{program}`: {source}; install it with `cargo install --path cli` in a checkout of Heeler, or set HEELER_BINARY to its path"
    )]
    NotInstalled { program: String, source: io::Error },
    /// `heeler start` failed.
    #[error("`{program} start` failed: {message}")]
    DaemonStart { program: String, message: String },
    /// The address cannot be reached.
    #[error("cannot connect to {address}: {source}")]
    Unreachable { address: Address, source: io::Error },
    /// The connection broke: the daemon may or may not have received the call.
    #[error("the connection to {address} broke")]
    Disconnected {
        address: Address,
        source: Box<Status>,
    },
    /// The daemon refused the call. Nothing was changed.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The stream of a worker ended with this error.
    #[error("{0}")]
    Worker(Arc<Error>),
    /// The answer lacks a field that the contract promises.
    #[error("the daemon's answer has no {field}")]
    Incomplete { field: &'static str },
}

/// A refusal, as text and in machine-readable form.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub code: Code,
    /// Absent if the status did not come from Heeler itself.
    pub reason: Option<Reason>,
    /// The text for people.
    pub message: String,
    /// The values of the ErrorInfo.
    pub metadata: BTreeMap<String, String>,
    /// The bad fields of the request.
    pub fields: Vec<FieldViolation>,
}

/// A bad field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// The path in the request, such as `spec.stop.grace`.
    pub field: String,
    /// The option of this crate that sets it, such as `grace`.
    pub option: String,
    pub description: String,
}

/// The reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A reason of the contract.
    Known(ErrorReason),
    /// A reason from a newer daemon.
    Other(String),
}

impl Error {
    /// Converts the status of a call to this address.
    pub(crate) fn from_status(status: Status, address: &Address) -> Self {
        // Only a failure on this side has a source; a status from the daemon has none.
        let Some(source) = status.source() else {
            return Self::Refused(Box::new(Refusal::from(&status)));
        };
        match connect_failure(source) {
            Some(source) => Self::from_connect(source, address),
            None => Self::Disconnected {
                address: address.clone(),
                source: Box::new(status),
            },
        }
    }

    /// The attempt that failed with it.
    pub(crate) fn attempt(&self, lasted: Duration) -> Attempt {
        match self {
            Self::NotRunning { .. } | Self::Unreachable { .. } => Attempt::Unconnected(lasted),
            Self::Address(_)
            | Self::Credentials(_)
            | Self::NotInstalled { .. }
            | Self::DaemonStart { .. }
            | Self::Disconnected { .. }
            | Self::Refused(_)
            | Self::Worker(_)
            | Self::Incomplete { .. } => Attempt::Connected(lasted),
        }
    }

    /// Converts the failure to connect to this address.
    pub(crate) fn from_connect(source: io::Error, address: &Address) -> Self {
        let address = address.clone();
        if matches!(
            source.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
        ) {
            Self::NotRunning { address, source }
        } else {
            Self::Unreachable { address, source }
        }
    }

    /// The refusal of a bad argument, as the daemon would word it.
    pub(crate) fn bad_field(field: &str, problem: &str) -> Self {
        Self::Refused(Box::new(Refusal {
            code: Code::InvalidArgument,
            reason: Some(Reason::Known(ErrorReason::InvalidField)),
            message: format!("{field} {problem}"),
            metadata: BTreeMap::new(),
            fields: vec![FieldViolation::new(field.to_owned(), problem.to_owned())],
        }))
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Worker(error) => error.refusal(),
            Self::Address(_)
            | Self::Credentials(_)
            | Self::NotRunning { .. }
            | Self::NotInstalled { .. }
            | Self::DaemonStart { .. }
            | Self::Unreachable { .. }
            | Self::Disconnected { .. }
            | Self::Incomplete { .. } => None,
        }
    }

    /// True for a refusal with this reason.
    pub fn is(&self, reason: ErrorReason) -> bool {
        self.refusal().is_some_and(|refusal| refusal.is(reason))
    }

    /// True if the daemon cannot have received the call, and a repeated call may succeed.
    pub fn is_unheard(&self) -> bool {
        match self {
            Self::NotRunning { .. } => true,
            // A user or a certificate that is not trusted stays so; a network comes back.
            Self::Unreachable { source, .. } => source.kind() != io::ErrorKind::PermissionDenied,
            Self::Refused(refusal) => refusal.code == Code::Unavailable,
            Self::Worker(error) => error.is_unheard(),
            Self::Address(_)
            | Self::Credentials(_)
            | Self::NotInstalled { .. }
            | Self::DaemonStart { .. }
            | Self::Disconnected { .. }
            | Self::Incomplete { .. } => false,
        }
    }

    /// True if the same call may succeed later: the daemon is unavailable or restarting.
    pub fn is_transient(&self) -> bool {
        self.is_unheard() || matches!(self, Self::Disconnected { .. })
    }
}

impl Refusal {
    /// True if it has this reason.
    pub fn is(&self, reason: ErrorReason) -> bool {
        self.reason == Some(Reason::Known(reason))
    }

    /// True if a repeated call would be refused again.
    pub(crate) fn is_final(&self) -> bool {
        match self.code {
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated => true,
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => false,
        }
    }
}

impl From<&Status> for Refusal {
    fn from(status: &Status) -> Self {
        let info = status
            .get_details_error_info()
            .filter(|info| info.domain == DOMAIN);
        let (reason, metadata) = match info {
            Some(info) => (
                Some(Reason::from(info.reason)),
                info.metadata.into_iter().collect(),
            ),
            None => (None, BTreeMap::new()),
        };
        let fields = status
            .get_details_bad_request()
            .map(|bad| bad.field_violations);
        Self {
            code: status.code(),
            reason,
            message: status.message().to_owned(),
            metadata,
            fields: fields
                .unwrap_or_default()
                .into_iter()
                .map(FieldViolation::from)
                .collect(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.message.as_str(), self.fields.first()) {
            ("", Some(bad)) => write!(f, "{}: {}", bad.option, bad.description),
            ("", None) => f.write_str(self.code.description()),
            (message, Some(bad)) => f.write_str(&option_names::beside(&bad.field, message)),
            (message, None) => f.write_str(message),
        }
    }
}

impl FieldViolation {
    fn new(field: String, description: String) -> Self {
        Self {
            option: option_names::option_of(&field),
            field,
            description,
        }
    }
}

impl From<tonic_types::FieldViolation> for FieldViolation {
    fn from(violation: tonic_types::FieldViolation) -> Self {
        Self::new(violation.field, violation.description)
    }
}

impl From<String> for Reason {
    fn from(name: String) -> Self {
        match ErrorReason::from_str_name(&format!("{REASON_PREFIX}{name}")) {
            Some(known) => Self::Known(known),
            None => Self::Other(name),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(known) => {
                f.write_str(known.as_str_name().trim_start_matches(REASON_PREFIX))
            }
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// The error of a connector, which tells it from that of a connection.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct ConnectFailure(pub(crate) io::Error);

/// The error of connecting, if that failed.
pub(crate) fn connect_failure(error: &(dyn StdError + 'static)) -> Option<io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ConnectFailure(failure)) = error.downcast_ref() {
            return Some(same(failure));
        }
        next = error.source();
    }
    None
}

/// An `io::Error` cannot be cloned; its number or its text can.
pub(crate) fn same(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::*;

    fn address() -> Address {
        "unix:/nowhere/x.sock".parse().unwrap()
    }

    fn refused(status: Status) -> Refusal {
        let error = Error::from_status(status, &address());
        error.refusal().unwrap().clone()
    }

    fn with_reason(code: Code, reason: &str, domain: &str) -> Status {
        let metadata = HashMap::from([("task_id".to_owned(), "shell-a".to_owned())]);
        let details = ErrorDetails::with_error_info(reason, domain, metadata);
        Status::with_error_details(code, "no such task", details)
    }

    #[test]
    fn a_reason_of_the_contract_is_recognised_with_its_values() {
        let refusal = refused(with_reason(Code::NotFound, "TASK_NOT_FOUND", DOMAIN));
        assert!(refusal.is(ErrorReason::TaskNotFound));
        assert_eq!(refusal.metadata["task_id"], "shell-a");
        assert_eq!(refusal.to_string(), "no such task");
        assert_eq!(refusal.reason.unwrap().to_string(), "TASK_NOT_FOUND");
    }

    #[test]
    fn a_newer_reason_keeps_its_name() {
        let refusal = refused(with_reason(Code::Aborted, "NEW_REASON", DOMAIN));
        assert_eq!(refusal.reason, Some(Reason::Other("NEW_REASON".to_owned())));
    }

    #[test]
    fn reasons_of_other_domains_are_ignored() {
        let refusal = refused(with_reason(Code::NotFound, "TASK_NOT_FOUND", "example.com"));
        assert_eq!(refusal.reason, None);
        assert!(refusal.metadata.is_empty());
    }

    #[test]
    fn bad_fields_are_named_as_the_contract_and_this_crate_call_them() {
        let refusal = |message: &str| {
            let details =
                ErrorDetails::with_bad_request_violation("spec.stop.grace", "is negative");
            refused(Status::with_error_details(
                Code::InvalidArgument,
                message,
                details,
            ))
        };
        let bad = refusal("spec.stop.grace is negative");
        assert_eq!(bad.fields[0].field, "spec.stop.grace");
        assert_eq!(bad.fields[0].option, "grace");
        assert_eq!(bad.to_string(), "grace (spec.stop.grace) is negative");
        assert_eq!(refusal("").to_string(), "grace: is negative");
    }

    #[test]
    fn a_missing_or_dead_socket_means_that_no_daemon_runs() {
        for kind in [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused] {
            let error = Error::from_connect(kind.into(), &address());
            assert!(error.is_unheard(), "{error:?}");
            let text = error.to_string();
            assert!(
                text.contains("heeler serve --listen unix:/nowhere/x.sock"),
                "{text}"
            );
        }
        let error = Error::from_connect(io::ErrorKind::NetworkUnreachable.into(), &address());
        assert!(error.is_unheard(), "a network comes back: {error:?}");
        let error = Error::from_connect(io::ErrorKind::PermissionDenied.into(), &address());
        assert!(matches!(error, Error::Unreachable { .. }));
        assert!(!error.is_transient());
    }

    #[test]
    fn a_failure_to_connect_is_told_from_that_of_a_connection() {
        let status = |error: Box<dyn StdError + Send + Sync>| {
            Error::from_status(Status::from_error(error), &address())
        };
        let timed_out = || io::Error::from(io::ErrorKind::TimedOut);
        let unconnected = status(Box::new(ConnectFailure(timed_out())));
        assert!(matches!(unconnected, Error::Unreachable { .. }));
        let lasted = Duration::from_secs(10);
        assert_eq!(unconnected.attempt(lasted), Attempt::Unconnected(lasted));
        let broken = status(Box::new(timed_out()));
        assert_eq!(broken.attempt(lasted), Attempt::Connected(lasted));
    }

    #[test]
    fn a_call_on_a_broken_connection_may_have_been_received() {
        let broken = io::Error::from(io::ErrorKind::BrokenPipe);
        let error = Error::from_status(Status::from_error(Box::new(broken)), &address());
        assert!(matches!(error, Error::Disconnected { .. }));
        assert!(error.is_transient() && !error.is_unheard());
    }

    #[test]
    fn a_restarting_daemon_is_transient_and_a_full_one_is_not() {
        let restarting = Error::from_status(Status::unavailable("recovering"), &address());
        assert!(restarting.is_transient() && restarting.is_unheard());
        let full = Error::from_status(Status::resource_exhausted("full"), &address());
        assert!(!full.is_transient());
    }
}
