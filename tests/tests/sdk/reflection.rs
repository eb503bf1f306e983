//! Server reflection for generic clients, by both versions of the protocol.

use heeler_tests::Daemon;
use tokio_stream::StreamExt as _;
use tonic_reflection::pb::{v1, v1alpha};

const SERVICE: &str = "heeler.v1.BackgroundTasks";

/// Asks for the names of the services by one version of the protocol.
macro_rules! services {
    ($daemon:ident, $version:ident) => {{
        use $version::{
            ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        };
        let mut client = ServerReflectionClient::new($daemon.api().await.channel());
        let request = ServerReflectionRequest {
            message_request: Some(MessageRequest::ListServices(String::new())),
            ..ServerReflectionRequest::default()
        };
        let answers = client.server_reflection_info(tokio_stream::once(request));
        let mut answers = answers.await.unwrap().into_inner();
        let answer = answers.next().await.unwrap().unwrap();
        match answer.message_response {
            Some(MessageResponse::ListServicesResponse(listed)) => {
                let names = listed.service.into_iter().map(|service| service.name);
                names.collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    }};
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn both_versions_of_reflection_list_the_service() {
    let daemon = Daemon::start().await;
    let newer = services!(daemon, v1);
    let older = services!(daemon, v1alpha);
    assert!(newer.iter().any(|name| name == SERVICE), "{newer:?}");
    assert!(older.iter().any(|name| name == SERVICE), "{older:?}");
}
