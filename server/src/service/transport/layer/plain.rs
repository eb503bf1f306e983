//! Requests that are no gRPC. Each is accepted before its body is read, by the rules of the call that it stands for.

use http::request::Parts;
use prost::bytes::Bytes;
use tonic::{Status, body::Body};

use super::{Edge, Identity};
use crate::{
    service::{
        transport::{
            call::Call,
            meters::OpenCall,
            methods::{self, Target},
            request_body,
            shares::{Caller, Share},
        },
        wire::refusal::Refusal,
    },
    task::Rights,
};

/// A request whose caller may make its call. It counts as a call that is not answered.
#[derive(Debug)]
pub(crate) struct Admitted {
    caller: Caller,
    /// Held, never read.
    _open: Share,
}

impl Edge {
    /// Accepts a request that stands for a call. A refusal is counted as that of the call.
    pub(crate) async fn admit(&self, parts: &Parts) -> Result<Admitted, Status> {
        let (path, headers) = (parts.uri.path(), &parts.headers);
        let (caller, identity) = self
            .identify(headers, &parts.extensions)
            .map_err(|refusal| counted(self.begin_unidentified(path), refusal))?;
        let admitted = self.admit_call(caller, identity, path).await;
        admitted.map_err(|refusal| counted(self.begin(path, headers).0, refusal))
    }

    async fn admit_call(
        &self,
        caller: Caller,
        identity: Identity,
        path: &str,
    ) -> Result<Admitted, Refusal> {
        let open = self.pools.open(caller)?;
        match methods::target(path) {
            Target::Rpc(_, needed) => self.authorise_rpc(identity, needed).await?,
            Target::Unknown | Target::Other | Target::OtherStream => {
                return Err(Refusal::method_unknown(path));
            }
        };
        Ok(Admitted {
            caller,
            _open: open,
        })
    }

    /// Reads the body of a request. The share is the memory that it takes.
    pub(crate) async fn read_plain(
        &self,
        admitted: &Admitted,
        body: Body,
        largest: usize,
    ) -> Result<(Bytes, Option<Share>), Status> {
        let memory = &self.pools.requests;
        request_body::read_plain(body, admitted.caller, memory, largest).await
    }

    /// Accepts a request that concerns the whole server. The call has a place, and memory for an answer.
    pub(crate) async fn admit_to_all(&self, parts: &Parts) -> Result<Call, Status> {
        let (caller, identity) = self.identify(&parts.headers, &parts.extensions)?;
        let call = self.pools.other_call(caller)?;
        self.authorise(identity, Rights::All).await?;
        call.reserve_short().await;
        Ok(call)
    }
}

fn counted(call: OpenCall, refusal: Refusal) -> Status {
    let status = Status::from(refusal);
    call.refused(status.code());
    status
}
