//! Responses in protobuf's JSON mapping, as `grpcurl` prints them: names in camelCase, 64-bit numbers
//! as strings, fields at their default left out.

use std::io::{self, Write};

use heeler_client::v1;
use prost_reflect::{DescriptorPool, DynamicMessage, prost::Message};

/// The contract's descriptors, which name the fields. Built only for `--json`: decoding them takes longer
/// than a whole Spawn.
#[derive(Debug)]
pub(crate) struct Json {
    pool: DescriptorPool,
}

/// A message that can be printed, with its name in the contract.
pub(crate) trait Named: Message {
    const NAME: &'static str;
}

macro_rules! named {
    ($($name:ident),*) => {
        $(impl Named for v1::$name {
            const NAME: &'static str = concat!("heeler.v1.", stringify!($name));
        })*
    };
}

named!(
    AttachResponse,
    CancelResponse,
    DetachResponse,
    InspectResponse,
    ListQueuesResponse,
    ListResponse,
    ReadOutputResponse,
    RemoveResponse,
    ShutdownResponse,
    SpawnResponse,
    UpdateQueueResponse,
    WaitResponse,
    WatchEventsResponse
);

impl Json {
    pub(crate) fn new() -> Self {
        let pool = DescriptorPool::decode(heeler_proto::FILE_DESCRIPTOR_SET);
        Self {
            pool: pool.expect("the build generates the descriptor set"),
        }
    }

    /// Writes the response of a unary call.
    pub(crate) fn pretty<M: Named>(&self, out: &mut impl Write, message: &M) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, &self.dynamic(message))?;
        out.write_all(b"\n")
    }

    /// Writes one response of a stream, on one line.
    pub(crate) fn line<M: Named>(&self, out: &mut impl Write, message: &M) -> io::Result<()> {
        serde_json::to_writer(&mut *out, &self.dynamic(message))?;
        out.write_all(b"\n")
    }

    fn dynamic<M: Named>(&self, message: &M) -> DynamicMessage {
        let descriptor = self
            .pool
            .get_message_by_name(M::NAME)
            .expect("the contract has a message of this name");
        let mut dynamic = DynamicMessage::new(descriptor);
        let encoded = message.encode_to_vec();
        dynamic
            .merge(encoded.as_slice())
            .expect("the message has the type of its name");
        dynamic
    }
}

#[cfg(test)]
mod tests {
    use heeler_client::v1::{
        BackgroundTask, Outcome, ReadOutputResponse, StopRecord, TaskState, WaitResponse, outcome,
    };

    use super::*;

    #[test]
    fn a_response_is_printed_as_grpcurl_prints_it() {
        let task = BackgroundTask {
            id: "shell-a".to_owned(),
            state: TaskState::Completed.into(),
            start_time: Some(prost_types::Timestamp {
                seconds: 1,
                nanos: 500_000_000,
            }),
            stop: Some(StopRecord {
                grace: Some(prost_types::Duration {
                    seconds: 90,
                    nanos: 0,
                }),
                ..StopRecord::default()
            }),
            outcome: Some(Outcome {
                result: Some(outcome::Result::ExitCode(0)),
            }),
            ..BackgroundTask::default()
        };
        let response = WaitResponse {
            satisfied: true,
            met: vec![task],
            revision: 7,
            ..Default::default()
        };
        let mut out = Vec::new();
        Json::new().line(&mut out, &response).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"satisfied\":true,\"met\":[{\"id\":\"shell-a\",\
             \"state\":\"TASK_STATE_COMPLETED\",\"startTime\":\"1970-01-01T00:00:01.500Z\",\
             \"outcome\":{\"exitCode\":0},\"stop\":{\"grace\":\"90s\"}}],\"revision\":\"7\"}\n"
        );
    }

    #[test]
    fn every_printed_message_is_in_the_contract() {
        fn check<M: Named + Default>(json: &Json) {
            let mut out = Vec::new();
            json.pretty(&mut out, &M::default()).unwrap();
            assert_eq!(out, b"{}\n", "{}", M::NAME);
        }
        let json = Json::new();
        check::<v1::CancelResponse>(&json);
        check::<v1::InspectResponse>(&json);
        check::<v1::ListQueuesResponse>(&json);
        check::<v1::ListResponse>(&json);
        check::<ReadOutputResponse>(&json);
        check::<v1::RemoveResponse>(&json);
        check::<v1::ShutdownResponse>(&json);
        check::<v1::SpawnResponse>(&json);
        check::<v1::UpdateQueueResponse>(&json);
        check::<WaitResponse>(&json);
        check::<v1::WatchEventsResponse>(&json);
    }
}
