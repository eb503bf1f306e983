//! Turns `proto/heeler/v1/*.proto` into Rust with protox, a protobuf compiler written in Rust, so
//! that nobody has to install protoc. The descriptor set is kept for reflection and for JSON.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

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
        .compile_fds(descriptors)?;
    Ok(())
}
