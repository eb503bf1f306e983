//! The memory of requests and of answers: no request waits for its own kind, and clients that do not read take little.

use heeler_tests::{
    Daemon,
    daemon::SERVICE,
    http1::error,
    http2::{self, Connection},
    process::memory,
    shell, within,
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
    task::JoinSet,
};

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

/// H2, N3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn streams_of_http1_that_are_not_read_take_bounded_memory() {
    const STREAMS: u64 = 200;
    const KIB: u64 = 1 << 10;
    let daemon = Daemon::builder().http().start().await;
    let (api, http) = (daemon.api().await, daemon.http().await);
    let task = api.start(shell("head -c 20000000 /dev/zero")).await;
    api.ended(&task.id).await;
    let follow = json!({"filter": {"taskIds": [task.id]}, "includeFinished": true}).to_string();
    let request = format!(
        "POST /{SERVICE}/FollowOutput HTTP/1.1\r\nhost: {}\r\ncontent-type: application/connect+json\r\n\
         authorization: Bearer {}\r\ncontent-length: {}\r\n\r\n\0\0\0\0{}{follow}",
        http.host,
        http.token,
        5 + follow.len(),
        char::from(u8::try_from(follow.len()).unwrap()),
    );
    http.call("List", "{}").await;
    let before = memory(daemon.pid(), "VmRSS");
    let mut unread = Vec::new();
    for _ in 0..STREAMS {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(http.host.parse().unwrap()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        within("an answer", stream.read_exact(&mut head))
            .await
            .unwrap();
        unread.push(stream);
    }
    for _ in 0..20 {
        http.call("List", "{}").await;
    }
    let grown = memory(daemon.pid(), "VmRSS").saturating_sub(before);
    eprintln!("a stream that is not read: {} KiB", grown / STREAMS / KIB);
    assert!(grown < STREAMS * 400 * KIB, "{grown} bytes");
}
