//! The RPCs of the contract, as its descriptors describe them.

use std::{collections::HashMap, sync::Arc};

use prost_reflect::{DescriptorPool, MessageDescriptor};

use super::json::Writer;
use crate::service::{
    NAME,
    transport::{Effect, effect},
};

/// The RPCs by name.
#[derive(Debug)]
pub(super) struct Contract(HashMap<String, Method>);

#[derive(Debug)]
pub(super) struct Method {
    pub(super) name: String,
    pub(super) input: MessageDescriptor,
    /// For its responses; a stream keeps it.
    pub(super) writer: Arc<Writer>,
    pub(super) form: Form,
    pub(super) effect: Effect,
}

/// The messages of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Unary,
    /// One request, many responses.
    Stream,
    /// Messages in both directions, which a browser cannot send.
    Duplex,
}

impl Contract {
    pub(super) fn new() -> Self {
        let pool = DescriptorPool::decode(heeler_proto::FILE_DESCRIPTOR_SET)
            .expect("the build generates the descriptor set");
        let service = pool
            .get_service_by_name(NAME)
            .expect("the contract has the service");
        let methods = service.methods().map(|method| {
            let name = method.name().to_owned();
            let form = match (method.is_client_streaming(), method.is_server_streaming()) {
                (false, false) => Form::Unary,
                (false, true) => Form::Stream,
                (true, _) => Form::Duplex,
            };
            let described = Method {
                input: method.input(),
                writer: Arc::new(Writer::new(&method.output())),
                form,
                effect: effect(&name),
                name: name.clone(),
            };
            (name, described)
        });
        Self(methods.collect())
    }

    /// The RPC of a path such as `/heeler.v1.BackgroundTasks/List`.
    pub(super) fn method(&self, path: &str) -> Option<&Method> {
        let name = path
            .strip_prefix('/')?
            .strip_prefix(NAME)?
            .strip_prefix('/')?;
        self.0.get(name)
    }
}

impl Method {
    pub(super) fn path(&self) -> String {
        format!("/{NAME}/{}", self.name)
    }
}
