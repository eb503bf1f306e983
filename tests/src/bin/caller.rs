//! `heeler-caller ADDRESS [COUNT]`: makes one List call and prints the result. Tests run it as another user.
//!
//! With a count, it connects and lists as often, and prints the medians of a connection with its first call and of
//! a second call, in microseconds.

use std::time::Instant;

use heeler_tests::{Api, refusal::Refusal, v1::ListRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1);
    let address = args.next().expect("an address");
    match args.next() {
        Some(count) => measure(&address, count.parse().expect("a number")).await,
        None => call(&address).await,
    }
}

async fn call(address: &str) {
    let api = match Api::connect(address).await {
        Ok(api) => api,
        Err(error) => return println!("not connected: {error:?}"),
    };
    match api.list(ListRequest::default()).await {
        Ok(_) => println!("listed"),
        Err(status) => {
            let refusal = Refusal::of(&status);
            println!(
                "{:?} {} {:?}",
                refusal.code, refusal.reason, refusal.metadata
            );
        }
    }
}

async fn measure(address: &str, count: usize) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let request = || ListRequest {
        page_size: 1,
        ..ListRequest::default()
    };
    for _ in 0..count {
        let begun = Instant::now();
        let api = Api::connect(address).await.expect("a connection");
        api.list(request()).await.expect("a list");
        first.push(begun.elapsed().as_micros());
        let begun = Instant::now();
        api.list(request()).await.expect("a list");
        second.push(begun.elapsed().as_micros());
    }
    first.sort_unstable();
    second.sort_unstable();
    println!("{} {}", first[count / 2], second[count / 2]);
}
