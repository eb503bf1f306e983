//! The memory of requests: none waits for its own kind.

use heeler_tests::{
    Daemon,
    http1::error,
    http2::{self, Connection},
    shell, within,
};
use serde_json::json;
use tokio::task::JoinSet;

/// H2, N3: clients such as connect-node send no length.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn waits_without_a_length_leave_room_for_other_calls_of_their_connection() {
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let task = daemon.api().await.start(shell("sleep 1000")).await;
    let filter = json!({"filter": {"taskIds": [task.id]}}).to_string();
    let mut connection = Connection::to_http(&http).await;
    let mut waits = JoinSet::new();
    for padding in [0, 100_000] {
        for _ in 0..20 {
            let padded = format!("{filter}{}", " ".repeat(padding));
            waits.spawn(connection.send_json(&http, "Wait", padded).await);
        }
    }
    let listed = connection.send_json(&http, "List", "{}".to_owned()).await;
    let listed = http2::json(within("a list", listed).await.unwrap()).await;
    assert_eq!(listed["tasks"][0]["id"], task.id.as_str(), "{listed}");
    let cancelled = connection.send_json(&http, "Cancel", filter).await;
    within("a cancel", cancelled).await.unwrap();
    for answer in within("the waits", waits.join_all()).await {
        let answer = http2::json(answer.unwrap()).await;
        assert_eq!(answer["satisfied"], true, "{answer}");
    }
}

/// H2, N3: they have half of the memory for requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn large_requests_of_one_connection_are_all_answered() {
    const SIZE: usize = 3_140_000;
    let daemon = Daemon::builder().http().start().await;
    let http = daemon.http().await;
    let request = json!({"taskId": "a".repeat(SIZE)}).to_string();
    let length = request.len().to_string();
    let mut connection = Connection::to_http(&http).await;
    let mut begun = Vec::new();
    for _ in 0..5 {
        let headers = [("content-length", length.as_str())];
        begun.push(connection.begin_json(&http, "Inspect", &headers).await);
    }
    let mut answers = JoinSet::new();
    for (answer, mut body) in begun {
        body.send_data(request.clone().into(), true).unwrap();
        answers.spawn(answer);
    }
    for answer in within("the answers", answers.join_all()).await {
        let refused = error(&http2::json(answer.unwrap()).await);
        assert_eq!(refused.1, "TASK_NOT_FOUND", "{refused:?}");
    }
}
