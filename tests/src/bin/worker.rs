//! `heeler-worker`: joins the task that it runs in, prints what it hears, and ends when it is asked to stop.
//! `heeler-worker deaf` does not end by itself.

use heeler_client::{Client, Progress, WorkResult};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let client = Client::connect_default().await.expect("a daemon");
    let work = client.current().await.expect("it may join");
    let work = work.expect("this process is inside a task");
    println!("joined {}", work.task().id());
    work.report(Progress::new().intent("listens")).await;
    loop {
        tokio::select! {
            () = work.stopping().cancelled() => break,
            Some(message) = work.message() => println!("message {} {}", message.number, message.text),
        }
    }
    let cancel = work.cancel_request().unwrap_or_default();
    println!("stopping {:?} {}", cancel.mode(), cancel.reason);
    if std::env::args().any(|arg| arg == "deaf") {
        std::future::pending::<()>().await;
    }
    let result = WorkResult::cancelled("as far as it got");
    work.deliver(result).await.expect("it is delivered");
}
