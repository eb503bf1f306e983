//! The RPCs and the pool of calls that each belongs to.
//!
//! A new RPC is added to [`METHODS`]. A test compares the table with the contract; until then the
//! server refuses the method as UNIMPLEMENTED, because a long poll in the pool of short calls could
//! keep every other call waiting.

use crate::service::NAME;

/// A pool of calls that are served at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pool {
    /// Calls that answer at once. Further calls wait for a place.
    Short,
    /// Spawn: short, unless the task has to wait for the one that it replaces. Then it is long.
    Start,
    /// Calls that stop tasks or the server, so that a stop is possible however busy the server is.
    Stop,
    /// Long polls. Further calls are refused, because a place may not become free.
    Poll,
    /// Streams, which share the places of long polls.
    Stream,
    /// Streams in both directions, whose messages are read one by one. They have places of their own:
    /// each is the worker of a task.
    Duplex,
}

const METHODS: [(&str, Pool); 18] = [
    ("Spawn", Pool::Start),
    ("Attach", Pool::Stream),
    ("Detach", Pool::Short),
    ("Cancel", Pool::Stop),
    ("List", Pool::Short),
    ("Inspect", Pool::Short),
    ("WatchEvents", Pool::Stream),
    ("Wait", Pool::Poll),
    ("ReadOutput", Pool::Poll),
    ("FollowOutput", Pool::Stream),
    ("UpdateTask", Pool::Short),
    ("Work", Pool::Duplex),
    ("ReportProgress", Pool::Short),
    ("SendMessage", Pool::Short),
    ("Remove", Pool::Short),
    ("UpdateQueue", Pool::Short),
    ("ListQueues", Pool::Short),
    ("Shutdown", Pool::Stop),
];

/// The target of a call, by its HTTP path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// An RPC of the service.
    Rpc(Pool),
    /// A method that the service does not have.
    Unknown,
    /// A call of another service: health or reflection.
    Other,
    /// A stream of another service that stays open as long as its client likes.
    OtherStream,
}

/// The stream of changes of the health service.
const HEALTH_WATCH: &str = "grpc.health.v1.Health/Watch";

/// Reads a path such as `/heeler.v1.BackgroundTasks/Spawn`.
pub(super) fn target(path: &str) -> Target {
    let path = path.strip_prefix('/').unwrap_or(path);
    let Some(method) = path
        .strip_prefix(NAME)
        .and_then(|rest| rest.strip_prefix('/'))
    else {
        return match path {
            HEALTH_WATCH => Target::OtherStream,
            _ => Target::Other,
        };
    };
    let known = METHODS.iter().find(|(name, _)| *name == method);
    known.map_or(Target::Unknown, |(_, pool)| Target::Rpc(*pool))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    const STREAM: Target = Target::Rpc(Pool::Stream);

    fn methods_of_the_contract() -> Vec<String> {
        let set = FileDescriptorSet::decode(heeler_proto::FILE_DESCRIPTOR_SET).unwrap();
        let files = set.file.iter().filter(|file| file.package() == "heeler.v1");
        let services = files.flat_map(|file| &file.service);
        let methods = services.flat_map(|service| &service.method);
        methods.map(|method| method.name().to_owned()).collect()
    }

    #[test]
    fn every_rpc_of_the_contract_has_a_pool() {
        let contract = methods_of_the_contract();
        assert!(!contract.is_empty());
        for method in &contract {
            let target = target(&format!("/{NAME}/{method}"));
            assert_ne!(target, Target::Unknown, "add {method} to METHODS");
        }
        for (method, _) in METHODS {
            let known = contract.iter().any(|name| name == method);
            assert!(known, "METHODS has {method}, and the contract has not");
        }
    }

    #[test]
    fn streaming_rpcs_and_no_others_are_streams() {
        let set = FileDescriptorSet::decode(heeler_proto::FILE_DESCRIPTOR_SET).unwrap();
        let services = set.file.iter().flat_map(|file| &file.service);
        for method in services.flat_map(|service| &service.method) {
            let pool = target(&format!("/{NAME}/{}", method.name()));
            let name = method.name();
            let is_duplex = pool == Target::Rpc(Pool::Duplex);
            assert_eq!(is_duplex, method.client_streaming(), "{name}");
            let is_stream = pool == STREAM || is_duplex;
            assert_eq!(is_stream, method.server_streaming(), "{name}");
        }
    }

    #[test]
    fn a_method_outside_the_table_is_unknown_and_other_services_are_not_concerned() {
        assert_eq!(target("/heeler.v1.BackgroundTasks/Hold"), Target::Unknown);
        assert_eq!(target("/heeler.v1.BackgroundTasks/"), Target::Unknown);
        assert_eq!(target("/heeler.v1.BackgroundTasksX/Spawn"), Target::Other);
        assert_eq!(target("/grpc.health.v1.Health/Check"), Target::Other);
        let watch = target("/grpc.health.v1.Health/Watch");
        assert_eq!(watch, Target::OtherStream);
    }
}
