//! The RPCs, the pool of calls that each belongs to, its effect, and the rights that it needs.
//!
//! A new RPC is added to [`METHODS`]. A test compares the table with the contract; until then the
//! server refuses the method as UNIMPLEMENTED, because a long poll in the pool of short calls could
//! keep every other call waiting.

use crate::{service::NAME, task::Rights};

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

/// The effect of an RPC, for an address that is read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes nothing.
    Reads,
    /// It starts, stops or changes a task, a queue or the server.
    Changes,
}

/// Each RPC, its pool, its effect, and the least rights that a caller inside of a task needs for it. With CHILDREN
/// the call itself is limited to the descendants of that task.
const METHODS: [(&str, Pool, Effect, Rights); 21] = [
    ("Spawn", Pool::Start, Effect::Changes, Rights::Children),
    ("Attach", Pool::Stream, Effect::Changes, Rights::Children),
    ("Detach", Pool::Short, Effect::Changes, Rights::Children),
    ("Cancel", Pool::Stop, Effect::Changes, Rights::Children),
    ("List", Pool::Short, Effect::Reads, Rights::Children),
    ("Inspect", Pool::Short, Effect::Reads, Rights::Children),
    ("WatchEvents", Pool::Stream, Effect::Reads, Rights::Children),
    ("Wait", Pool::Poll, Effect::Reads, Rights::Children),
    ("ReadOutput", Pool::Poll, Effect::Reads, Rights::Children),
    (
        "FollowOutput",
        Pool::Stream,
        Effect::Reads,
        Rights::Children,
    ),
    ("WriteInput", Pool::Poll, Effect::Changes, Rights::Children),
    (
        "ResizeTerminal",
        Pool::Short,
        Effect::Changes,
        Rights::Children,
    ),
    ("UpdateTask", Pool::Short, Effect::Changes, Rights::Children),
    ("Work", Pool::Duplex, Effect::Changes, Rights::Report),
    (
        "ReportProgress",
        Pool::Short,
        Effect::Changes,
        Rights::Report,
    ),
    (
        "SendMessage",
        Pool::Short,
        Effect::Changes,
        Rights::Children,
    ),
    ("Remove", Pool::Short, Effect::Changes, Rights::Children),
    ("UpdateQueue", Pool::Short, Effect::Changes, Rights::All),
    ("ListQueues", Pool::Short, Effect::Reads, Rights::Children),
    ("ListSessions", Pool::Short, Effect::Reads, Rights::Children),
    ("Shutdown", Pool::Stop, Effect::Changes, Rights::All),
];

/// The target of a call, by its HTTP path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// An RPC of the service, and the least rights for it.
    Rpc(Pool, Rights),
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
    let Some(method) = method(path) else {
        return match path.strip_prefix('/').unwrap_or(path) {
            HEALTH_WATCH => Target::OtherStream,
            _ => Target::Other,
        };
    };
    let known = METHODS.iter().find(|(name, ..)| *name == method);
    known.map_or(Target::Unknown, |(_, pool, _, rights)| {
        Target::Rpc(*pool, *rights)
    })
}

/// The part of a path that names a method of the service.
fn method(path: &str) -> Option<&str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.strip_prefix(NAME)?.strip_prefix('/')
}

/// The name of a method for the metrics: one of a few, whatever the path is.
pub(super) fn name(path: &str) -> &'static str {
    let Some(method) = method(path) else {
        return "other";
    };
    let known = METHODS.iter().find(|(name, ..)| *name == method);
    known.map_or("unknown", |(name, ..)| name)
}

/// Reports whether a path is that of an RPC of the service.
pub(super) fn is_rpc(path: &str) -> bool {
    matches!(target(path), Target::Rpc(..))
}

/// The effect of an RPC of the service; an unknown one counts as one that changes something.
pub(crate) fn effect(method: &str) -> Effect {
    let known = METHODS.iter().find(|(name, ..)| *name == method);
    known.map_or(Effect::Changes, |(_, _, effect, _)| *effect)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

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
        for (method, ..) in METHODS {
            let known = contract.iter().any(|name| name == method);
            assert!(known, "METHODS has {method}, and the contract has not");
        }
    }

    #[test]
    fn streaming_rpcs_and_no_others_are_streams() {
        let set = FileDescriptorSet::decode(heeler_proto::FILE_DESCRIPTOR_SET).unwrap();
        let services = set.file.iter().flat_map(|file| &file.service);
        for method in services.flat_map(|service| &service.method) {
            let target = target(&format!("/{NAME}/{}", method.name()));
            let name = method.name();
            let is_duplex = matches!(target, Target::Rpc(Pool::Duplex, _));
            assert_eq!(is_duplex, method.client_streaming(), "{name}");
            let is_stream = matches!(target, Target::Rpc(Pool::Stream, _)) || is_duplex;
            assert_eq!(is_stream, method.server_streaming(), "{name}");
        }
    }

    /// K3: no call is possible without a right, and the calls that concern the whole server need all.
    #[test]
    fn every_rpc_needs_a_right() {
        for (method, _, _, rights) in METHODS {
            assert!(rights > Rights::None, "{method}");
            let is_server_wide = ["Shutdown", "UpdateQueue"].contains(&method);
            assert_eq!(rights == Rights::All, is_server_wide, "{method}");
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
