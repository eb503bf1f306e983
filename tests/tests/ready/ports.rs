//! The listening ports of live trees, and calls that select a task by its port.

use heeler_tests::{
    Api, Daemon, Setting, in_each_setting, millis,
    request::{cancel_matching, detach_matching},
    v1::*,
};

in_each_setting! {
    inspect_and_list_name_the_ports_of_a_live_tree_with_their_process,
    a_task_is_listed_and_cancelled_by_a_port_of_its_tree,
}

fn on_port(port: u32) -> TaskFilter {
    TaskFilter {
        port,
        ..Default::default()
    }
}

async fn ids_on_port(api: &Api, port: u32) -> Vec<String> {
    let request = ListRequest {
        filter: Some(on_port(port)),
        include_finished: true,
        ..Default::default()
    };
    let page = api.list(request).await.unwrap();
    page.tasks.into_iter().map(|task| task.id).collect()
}

/// The ports of all tasks, by task, as List tells them.
async fn listed_ports(api: &Api) -> Vec<TaskPorts> {
    let request = ListRequest {
        include_ports: true,
        ..Default::default()
    };
    api.list(request).await.unwrap().ports
}

/// Y3
async fn inspect_and_list_name_the_ports_of_a_live_tree_with_their_process(
    daemon: Daemon,
    _: Setting,
) {
    let api = daemon.api().await;
    let quiet = daemon.run(&api, "forever").await;
    let script = "fork [ setsid pid server listen 0 fork [ forever ] forever ] forever";
    let fixture = daemon.run(&api, script).await;
    let port = api.listening_port(&fixture.id).await;
    let shown = api.inspect(&fixture.id).await.unwrap().ports;
    let [found] = &shown[..] else {
        panic!("not one port, which two processes share: {shown:?}");
    };
    let server = fixture.process("server").await;
    assert_eq!(
        (found.protocol(), &*found.address, found.port, found.pid),
        (PortProtocol::Tcp, "127.0.0.1", port, server.pid)
    );
    assert!(found.command.contains("heeler-fixture"), "{found:?}");
    let listed = listed_ports(&api).await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(
        (&*listed[0].task_id, &listed[0].ports[..]),
        (&*fixture.id, &shown[..])
    );
    assert_eq!(api.inspect(&quiet.id).await.unwrap().ports, []);
    let page = api.list(ListRequest::default()).await.unwrap();
    assert_eq!((page.tasks.len(), page.ports), (2, Vec::new()), "not asked");
    api.kill(&fixture.id).await;
    assert_eq!(api.inspect(&fixture.id).await.unwrap().ports, []);
    assert_eq!(listed_ports(&api).await, []);
}

/// Y3
async fn a_task_is_listed_and_cancelled_by_a_port_of_its_tree(daemon: Daemon, _: Setting) {
    let api = daemon.api().await;
    let other = daemon.run(&api, "listen 0 forever").await;
    let script = "double-fork [ setsid clean-exec [ pid server listen 0 forever ] ] forever";
    let mut fixture = daemon.run(&api, script).await;
    let port = api.listening_port(&fixture.id).await;
    assert_eq!(ids_on_port(&api, port).await, [fixture.id.clone()]);
    let request = CancelRequest {
        wait: true,
        how: heeler_tests::request::grace(millis(100)),
        ..cancel_matching(on_port(port))
    };
    let cancelled = api.cancel_one(request.clone()).await;
    assert_eq!(cancelled.task.unwrap().id, fixture.id);
    fixture.assert_gone();
    assert_eq!(ids_on_port(&api, port).await, Vec::<String>::new());
    assert_eq!(api.cancel(request).await.unwrap().results, []);
    let other_port = api.listening_port(&other.id).await;
    assert_eq!(ids_on_port(&api, other_port).await, [other.id]);
}

/// Y3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_port_that_no_task_listens_on_selects_no_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    daemon.run(&api, "forever").await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().into();
    assert_eq!(ids_on_port(&api, port).await, Vec::<String>::new());
    let cancelled = api.cancel(cancel_matching(on_port(port))).await.unwrap();
    assert_eq!(cancelled.results, []);
    let detached = api.detach(detach_matching(on_port(port))).await.unwrap();
    assert_eq!(detached.results, []);
}

/// Y3, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_next_server_finds_a_task_by_its_port() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "listen 0 forever").await;
    let port = api.listening_port(&fixture.id).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    let ports = api.inspect(&fixture.id).await.unwrap().ports;
    assert_eq!(ports.len(), 1, "{ports:?}");
    assert_eq!(ids_on_port(&api, port).await, [fixture.id]);
}
