//! The shares of clients: places for calls, and memory for requests and answers.

use std::time::Duration;

use heeler_proto::v1::ErrorReason;
use tokio::time::sleep;
use tonic::Code;

use super::{
    call::Call,
    methods::Pool,
    shares::{Caller, First, Share, Shares},
};
use crate::service::wire::refusal::Refusal;

/// Maximum number of calls that are not answered, those that have not arrived whole or wait for a place
/// included; further calls are refused. Each costs some kilobytes.
const OPEN_CALLS: usize = 32 * 1024;
/// Maximum number of short calls at a time; further calls wait.
const SHORT_CALLS: usize = 512;
/// Maximum number of cancels and shutdowns at a time; further calls are refused.
const STOP_CALLS: usize = 16 * 1024;
/// Maximum number of long polls and streams at a time; further calls are refused.
const LONG_CALLS: usize = 16 * 1024;
/// Maximum number of workers at a time; further ones are refused. Each costs some kilobytes.
const DUPLEX_CALLS: usize = 32 * 1024;
/// Maximum number of health checks, reflections and requests for the metrics at a time; further ones are refused.
const OTHER_CALLS: usize = 1024;
/// Maximum memory for large requests that arrive or wait for a place; further requests are not read.
const REQUEST_MEMORY: usize = 32 << 20;
/// Maximum memory for answers that are not read; further calls wait. A client gets half at most: many
/// times what keeps a fast connection busy.
const ANSWER_MEMORY: usize = 64 << 20;
/// Maximum memory for messages of streams that are not read. A client that has its share gets one message
/// at a time.
const STREAM_MEMORY: usize = 64 << 20;
/// The time after which a Spawn is taken for one that waits: a start takes some milliseconds.
const SHORT_START: Duration = Duration::from_millis(200);

/// The supplies of the whole server. A call takes memory of its request, a place, and memory of its
/// answer, always in this order, so that no two calls wait for each other.
#[derive(Debug, Clone)]
pub(super) struct Pools {
    open: Shares,
    short: Shares,
    stops: Shares,
    long: Shares,
    duplex: Shares,
    others: Shares,
    pub(super) requests: Shares,
    answers: Shares,
    streams: Shares,
}

impl Default for Pools {
    fn default() -> Self {
        Self {
            open: Shares::new(OPEN_CALLS, First::Granted),
            short: Shares::new(SHORT_CALLS, First::Granted),
            stops: Shares::new(STOP_CALLS, First::Granted),
            long: Shares::new(LONG_CALLS, First::Granted),
            duplex: Shares::new(DUPLEX_CALLS, First::Granted),
            others: Shares::new(OTHER_CALLS, First::Granted),
            requests: Shares::new(REQUEST_MEMORY, First::Granted),
            answers: Shares::new(ANSWER_MEMORY, First::Granted),
            streams: Shares::new(STREAM_MEMORY, First::Granted),
        }
    }
}

impl Pools {
    /// Counts a call from its first byte to its answer.
    pub(super) fn open(&self, caller: Caller) -> Result<Share, Refusal> {
        immediate(&self.open, caller, OPEN_CALLS)
    }

    /// A place for a health check, a reflection or the metrics.
    pub(super) fn other(&self, caller: Caller) -> Result<Share, Refusal> {
        immediate(&self.others, caller, OTHER_CALLS)
    }

    /// Begins a call that is no gRPC and concerns the whole server.
    pub(super) fn other_call(&self, caller: Caller) -> Result<Call, Refusal> {
        let place = self.other(caller)?;
        Ok(Call::new(caller, self.answers.clone(), place))
    }

    /// A place for a stream of another service.
    pub(super) fn other_stream(&self, caller: Caller) -> Result<Share, Refusal> {
        immediate(&self.long, caller, LONG_CALLS)
    }

    /// Begins a call whose request has arrived.
    pub(super) async fn call(&self, caller: Caller, pool: Pool) -> Result<Call, Refusal> {
        let place = self.place(caller, pool).await?;
        // Apart from each other: a client that lets a stream wait can still make calls.
        let memory = match pool {
            Pool::Short | Pool::Start | Pool::Stop | Pool::Poll => &self.answers,
            Pool::Stream | Pool::Duplex => &self.streams,
        };
        Ok(Call::new(caller, memory.clone(), place))
    }

    async fn place(&self, caller: Caller, pool: Pool) -> Result<Share, Refusal> {
        match pool {
            Pool::Short | Pool::Start => Ok(self.short.take(caller, 1).await),
            Pool::Stop => immediate(&self.stops, caller, STOP_CALLS),
            Pool::Poll | Pool::Stream => immediate(&self.long, caller, LONG_CALLS),
            Pool::Duplex => immediate(&self.duplex, caller, DUPLEX_CALLS),
        }
    }

    /// Awaits a start. One that takes long waits for the end of another task: it becomes a long call,
    /// and its place among the short ones is free again.
    pub(super) async fn await_start<T>(
        &self,
        caller: Caller,
        call: &Call,
        start: impl Future<Output = T>,
    ) -> T {
        let mut start = std::pin::pin!(start);
        tokio::select! {
            biased;
            answered = &mut start => return answered,
            () = sleep(SHORT_START) => call.move_to(self.long.try_take(caller, 1)),
        }
        start.await
    }
}

fn immediate(places: &Shares, caller: Caller, max: usize) -> Result<Share, Refusal> {
    places.try_take(caller, 1).ok_or_else(|| {
        let message = format!(
            "call limit reached: this client has its share of the {max} such calls that can be open"
        );
        Refusal::new(Code::ResourceExhausted, ErrorReason::TooManyCalls, message).with("max", max)
    })
}
