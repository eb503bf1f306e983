//! The conformance cases, run by the Rust SDK and by grpcurl, and the table of the results.
//!
//! `tests/conformance` has the cases and says what they mean. `case` reads and compares them, `stage` is
//! the daemon and the directory of a case, `sdk` and `grpcurl` are the clients.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod case;
mod grpcurl;
mod sdk;
mod stage;
mod table;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Arc,
};

use heeler_tests::binary;
use prost_reflect::DescriptorPool;
use serde_json::json;
use tokio::{sync::Semaphore, task::JoinSet};

use case::Case;
use stage::{Client, Stage};

/// Cases that run at the same time.
const AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_rust_client_passes_every_case() {
    run::<sdk::Rust>("rust").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn grpcurl_passes_every_case_that_it_can() {
    if heeler_tests::grpcurl::program().is_some() {
        run::<grpcurl::Grpcurl>("grpcurl").await;
    }
}

/// The RPCs that no case calls: Shutdown ends the daemon of the case.
const WITHOUT_A_CASE: [&str; 1] = ["Shutdown"];

#[test]
fn every_rpc_has_a_case() {
    let contract = DescriptorPool::decode(heeler_proto::FILE_DESCRIPTOR_SET).unwrap();
    let service = contract.get_service_by_name("heeler.v1.BackgroundTasks");
    let called: BTreeSet<String> = Case::all()
        .iter()
        .flat_map(|case| &case.steps)
        .filter_map(|step| case::rpc(&contract, step["do"].as_str()?))
        .map(|method| method.name().to_owned())
        .chain(WITHOUT_A_CASE.map(str::to_owned))
        .collect();
    for method in service.unwrap().methods() {
        let name = method.name();
        assert!(called.contains(name), "add a case for {name} to cases.json");
    }
}

/// Runs every case, writes the report, and fails if a case failed.
async fn run<C: Client>(client: &str) {
    let (permits, mut running) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for case in Case::all() {
        let permits = Arc::clone(&permits);
        running.spawn(async move {
            let _permit = permits.acquire_owned().await;
            let name = case.name.clone();
            (name, Stage::<C>::run(case).await)
        });
    }
    let mut results = BTreeMap::new();
    while let Some(done) = running.join_next().await {
        let (name, result) = done.unwrap();
        results.insert(name, result.to_string());
    }
    let dir = binary::target_dir().join("conformance");
    fs::create_dir_all(&dir).unwrap();
    let report = json!({"client": client, "results": results});
    fs::write(dir.join(format!("{client}.json")), format!("{report:#}\n")).unwrap();
    let failed: Vec<_> = results
        .iter()
        .filter(|(_, result)| result.starts_with("failed"))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
