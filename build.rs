//! Compiles `proto/heeler/v1/*.proto` with protox, a protobuf compiler written in Rust, so that no
//! protoc has to be installed. The descriptor set is kept for reflection and for JSON.
//!
//! The server's stub is generated separately, because some of its responses are encoded bytes.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

/// Responses that the server encodes itself, from pieces that are shared between clients.
const ENCODED: [&str; 3] = ["InspectResponse", "ListResponse", "WatchEventsResponse"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let mut files = fs::read_dir("proto/heeler/v1")?
        .map(|entry| Ok(PathBuf::from("heeler/v1").join(entry?.file_name())))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    // The same order on every machine, so that the descriptor set is the same bytes.
    files.sort();
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
        .codec_path("crate::codec::SmallBuffers")
        .out_dir(server_out)
        .extern_path(".heeler.v1", "crate::v1");
    let server = ENCODED.iter().fold(server, |server, name| {
        let rust_type = format!("crate::Encoded<crate::v1::{name}>");
        server.extern_path(format!(".heeler.v1.{name}"), rust_type)
    });
    server.compile_fds(descriptors)?;
    Ok(())
}
