//! Over TCP the token of a task carries its rights.

use heeler_client::{Client, ConnectOptions};
use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, eventually_some, http1::Http, shell, tcp, v1::*,
};
use serde_json::json;

use super::{calling, clean_up, lines_of, sleeper, stranger};

const LOOPBACK: &str = "tcp:127.0.0.1:0";

/// A client that shows a token.
async fn connect(daemon: &Daemon, token: &str) -> Client {
    let address = daemon.remote_address().await;
    let client = tcp::client(&address, ConnectOptions::new().token(token));
    client.await.unwrap()
}

/// A task that has written its token to a file, and that token.
async fn task_with_token(daemon: &Daemon, api: &Api) -> (BackgroundTask, String) {
    let file = daemon.file("task-token");
    let script = format!("echo $HEELER_TOKEN > {file}; exec sleep 3600");
    let task = api.start(shell(script)).await;
    let token = eventually_some("the token of a task", || {
        let text = std::fs::read_to_string(&file).ok()?;
        text.strip_suffix('\n').map(str::to_owned)
    });
    (task, token.await)
}

/// K4, P5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_token_of_a_task_has_its_rights_and_ends_with_it() {
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let api = daemon.api().await;
    let other = stranger(&api).await;
    let (task, token) = task_with_token(&daemon, &api).await;
    assert_ne!(token, daemon.token(), "not that of the server");
    let inside = connect(&daemon, &token).await;

    let listed = inside.list_page(ListRequest::default()).await.unwrap();
    let ids: Vec<&String> = listed.tasks.iter().map(|task| &task.id).collect();
    assert_eq!(ids, [&task.id], "it sees itself");
    let refused = inside.inspect(InspectRequest {
        task_id: other.id.clone(),
        ..InspectRequest::default()
    });
    let refused = refused.await.unwrap_err();
    assert!(refused.is(ErrorReason::NotYourTask), "{refused:?}");
    let refused = inside
        .shutdown(ShutdownRequest::default())
        .await
        .unwrap_err();
    assert!(refused.is(ErrorReason::RightsInsufficient), "{refused:?}");
    let child = inside
        .spawn_response(sleeper())
        .await
        .unwrap()
        .task
        .unwrap();
    assert_eq!(child.spec.unwrap().parent_id, task.id);

    let forged = format!("{}0", &token[..token.len() - 1]);
    let of_other = token.replace(&task.id, &other.id);
    for bad in [
        forged.as_str(),
        &of_other,
        &task.id,
        &format!("{}:", task.id),
    ] {
        if bad == token {
            continue;
        }
        assert_refused(connect(&daemon, bad).await).await;
    }
    api.kill(&task.id).await;
    assert_refused(connect(&daemon, &token).await).await;
    assert_refused(inside).await;
    assert!(!daemon.log().contains(&token), "no log has it");
    let shown = format!(
        "{:?}{:?}",
        api.history().await,
        api.inspect(&task.id).await.unwrap()
    );
    assert!(!shown.contains(&token), "no answer has it");
    clean_up(&daemon).await;
}

async fn assert_refused(client: Client) {
    let refused = client.list_page(ListRequest::default()).await.unwrap_err();
    assert!(refused.is(ErrorReason::TokenRefused), "{refused:?}");
}

/// K2: input is written to descendants, and their terminals are resized.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_writes_to_the_input_of_its_descendants_only() {
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let api = daemon.api().await;
    let other = api.start(sleeper().with_terminal(80, 24)).await;
    let (task, token) = task_with_token(&daemon, &api).await;
    let inside = connect(&daemon, &token).await;
    let write = |id: &str| WriteInputRequest {
        task_id: id.to_owned(),
        offset: Some(0),
        data: "hello\n".into(),
        ..WriteInputRequest::default()
    };
    let resize = |id: &str| ResizeTerminalRequest {
        task_id: id.to_owned(),
        columns: 100,
        rows: 30,
    };
    for id in [&other.id, &task.id] {
        let refused = inside.write_input(write(id)).await.unwrap_err();
        assert!(refused.is(ErrorReason::NotYourTask), "{refused:?}");
        let refused = inside.resize_terminal(resize(id)).await.unwrap_err();
        assert!(refused.is(ErrorReason::NotYourTask), "{refused:?}");
    }
    let given = api.write(&other.id, 0, "").await.unwrap();
    assert_eq!(given.offset, 0, "nothing was written to it");

    let child = inside.spawn_response(sleeper().with_terminal(80, 24));
    let child = child.await.unwrap().task.unwrap();
    let written = inside.write_input(write(&child.id)).await.unwrap();
    assert_eq!(written.taken_bytes, 6);
    inside.resize_terminal(resize(&child.id)).await.unwrap();
    clean_up(&daemon).await;
}

/// K4: the token gives the same rights over HTTP, also if the server listens on no other TCP address.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_token_of_a_task_has_its_rights_over_http() {
    let daemon = Daemon::builder().http().start().await;
    let api = daemon.api().await;
    let other = stranger(&api).await;
    let (task, token) = task_with_token(&daemon, &api).await;
    let inside = Http::new(&daemon.http().await.host, &token);
    let listed = inside.call("List", "{}").await;
    let ids: Vec<_> = listed["tasks"].as_array().unwrap().iter().collect();
    assert_eq!((ids.len(), &ids[0]["id"]), (1, &json!(task.id)), "{listed}");
    let cancel = json!({"filter": {"taskIds": [other.id]}}).to_string();
    for (method, body, status, reason) in [
        ("Cancel", cancel, 403, "NOT_YOUR_TASK"),
        ("Shutdown", "{}".to_owned(), 403, "RIGHTS_INSUFFICIENT"),
    ] {
        let refused = inside.send(inside.request(method, body)).await;
        assert_eq!(refused.status, status, "{method}");
        assert_eq!(refused.error().1, reason, "{method}");
    }
    let mut events = inside
        .stream("WatchEvents", r#"{"initialState": true}"#)
        .await;
    let (_, first) = events.next().await.unwrap();
    assert_eq!(first["initial"]["id"], task.id, "{first}");
    let (_, second) = events.next().await.unwrap();
    assert!(second["initial"].is_null(), "{second}");
    api.kill(&task.id).await;
    let refused = inside.send(inside.request("List", "{}")).await;
    assert_eq!(refused.error().1, "TOKEN_REFUSED");
    assert_eq!(api.task(&other.id).await.state(), TaskState::Running);
    clean_up(&daemon).await;
}

/// K4: a server that is killed and started again takes the tokens of the tasks that are still live.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_token_of_a_task_outlives_the_server() {
    let mut daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let (task, token) = task_with_token(&daemon, &daemon.api().await).await;
    daemon.kill9();
    daemon.restart().await;
    let inside = connect(&daemon, &token).await;
    let listed = inside.list_page(ListRequest::default()).await.unwrap();
    let ids: Vec<&String> = listed.tasks.iter().map(|task| &task.id).collect();
    assert_eq!(ids, [&task.id]);
    clean_up(&daemon).await;
}

/// K4: the kernel's word counts on the Unix socket, whatever token is shown. Without TCP there is no token.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_token_changes_nothing_on_the_unix_socket() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let lines = lines_of(&api, calling("echo token $HEELER_TOKEN", &[])).await;
    assert_eq!(lines, ["token"]);
}

/// K4: a task of a server without a Unix socket calls over TCP, with its own token.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_command_inside_of_a_task_uses_its_token() {
    let daemon = Daemon::builder().also_on(LOOPBACK).start().await;
    let api = daemon.api().await;
    let other = stranger(&api).await;
    let address = daemon.remote_address().await;
    let script = "
        export HEELER_ADDR={TCP}
        echo listed $($H ps -q)
        echo $HEELER_TASK_ID ${HEELER_TOKEN_FILE:-none}
        $H cancel {OTHER} --json 2>&1 | grep -o NOT_YOUR_TASK | head -n 1
        tr '\\0' ' ' < /proc/$$/cmdline | grep -c \"$HEELER_TOKEN\"
        exit 0";
    let values = [("TCP", address.as_str()), ("OTHER", &other.id)];
    let lines = lines_of(&api, calling(script, &values)).await;
    let own = lines[1].strip_suffix(" none").unwrap();
    assert_eq!(lines[0], format!("listed {own}"));
    assert_eq!(lines[2..], ["NOT_YOUR_TASK", "0"]);
    clean_up(&daemon).await;
}
