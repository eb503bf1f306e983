//! Responses in protobuf's JSON mapping, as `grpcurl -emit-defaults` prints them: names in camelCase, 64-bit
//! numbers as strings. Fields at their default are written out, so that a script finds an empty list or a
//! zero where it looks for one; absent messages and `optional` fields are left out.

use std::io::{self, Write};

use heeler_client::v1;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions, prost::Message};
use serde_json::Serializer;

const OPTIONS: SerializeOptions = SerializeOptions::new().skip_default_fields(false);

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
    FollowOutputResponse,
    FollowedOutput,
    InspectResponse,
    ListQueuesResponse,
    ListResponse,
    ListSessionsResponse,
    ReadOutputResponse,
    RemoveResponse,
    ReportProgressResponse,
    SendMessageResponse,
    ShutdownResponse,
    SpawnResponse,
    UpdateQueueResponse,
    UpdateTaskResponse,
    WaitResponse,
    WatchEventsResponse,
    WriteInputResponse
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
        let mut serializer = Serializer::pretty(&mut *out);
        self.dynamic(message)
            .serialize_with_options(&mut serializer, &OPTIONS)?;
        out.write_all(b"\n")
    }

    /// Writes one response of a stream, on one line.
    pub(crate) fn line<M: Named>(&self, out: &mut impl Write, message: &M) -> io::Result<()> {
        let mut serializer = Serializer::new(&mut *out);
        self.dynamic(message)
            .serialize_with_options(&mut serializer, &OPTIONS)?;
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
        BackgroundTask, ListResponse, Outcome, ReadOutputResponse, StopRecord, TaskState,
        WaitResponse, outcome,
    };
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_response_is_printed_in_the_mapping_of_protobuf() {
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
        let printed: Value = serde_json::from_slice(&out).unwrap();
        let task = &printed["met"][0];
        assert_eq!(task["state"], "TASK_STATE_COMPLETED");
        assert_eq!(task["startTime"], "1970-01-01T00:00:01.500Z");
        assert_eq!(task["outcome"], json!({"exitCode": 0}));
        assert_eq!(task["stop"]["grace"], "90s");
        assert_eq!(printed["revision"], "7");
    }

    /// U2
    #[test]
    fn fields_at_their_default_are_printed_and_absent_messages_are_not() {
        let mut out = Vec::new();
        Json::new()
            .line(&mut out, &ListResponse::default())
            .unwrap();
        let printed: Value = serde_json::from_slice(&out).unwrap();
        let expected = json!({"tasks": [], "nextPageToken": "", "revision": "0", "ports": []});
        assert_eq!(printed, expected);
    }

    #[test]
    fn every_printed_message_is_in_the_contract() {
        fn check<M: Named + Default>(json: &Json) {
            let mut out = Vec::new();
            json.pretty(&mut out, &M::default()).unwrap();
            let printed: Value = serde_json::from_slice(&out).unwrap();
            assert!(printed.is_object(), "{}", M::NAME);
        }
        let json = Json::new();
        check::<v1::CancelResponse>(&json);
        check::<v1::FollowedOutput>(&json);
        check::<v1::InspectResponse>(&json);
        check::<v1::ListQueuesResponse>(&json);
        check::<v1::ListResponse>(&json);
        check::<v1::ListSessionsResponse>(&json);
        check::<ReadOutputResponse>(&json);
        check::<v1::RemoveResponse>(&json);
        check::<v1::ShutdownResponse>(&json);
        check::<v1::SpawnResponse>(&json);
        check::<v1::UpdateQueueResponse>(&json);
        check::<v1::UpdateTaskResponse>(&json);
        check::<WaitResponse>(&json);
        check::<v1::WatchEventsResponse>(&json);
    }
}
