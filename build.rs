//! Turns `proto/heeler/v1/*.proto` into Rust with protox, a protobuf compiler written in Rust, so
//! that nobody has to install protoc. The descriptor set is kept for reflection and for JSON.
//!
//! The server's stub is made apart from the rest, since some of its answers are given as bytes.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

/// Answers that the server encodes by itself: they are made of pieces that many clients get.
const ENCODED: [&str; 3] = ["InspectResponse", "ListResponse", "WatchEventsResponse"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = [
        "heeler/v1/background_tasks.proto",
        "heeler/v1/error.proto",
        "heeler/v1/event.proto",
        "heeler/v1/output.proto",
        "heeler/v1/process.proto",
        "heeler/v1/task.proto",
    ];
    let descriptors = protox::compile(files, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("heeler.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        // Ordered maps: the same request is always the same bytes.
        .btree_map(".")
        .bytes(".heeler.v1")
        .build_server(false)
        .compile_fds(descriptors.clone())?;
    let server_out = out.join("server");
    fs::create_dir_all(&server_out)?;
    let server = tonic_prost_build::configure()
        .build_client(false)
        .out_dir(server_out)
        .extern_path(".heeler.v1", "crate::v1");
    let server = ENCODED.iter().fold(server, |server, name| {
        let rust_type = format!("crate::Encoded<crate::v1::{name}>");
        server.extern_path(format!(".heeler.v1.{name}"), rust_type)
    });
    server.compile_fds(descriptors)?;
    Ok(())
}
