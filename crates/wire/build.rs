//! Makes the gRPC types of the protos, without protoc.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["redrive/v1/redrive.proto"], ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptor.bin"), files.encode_to_vec())?;
    tonic_prost_build::configure().bytes(".").codec_path("crate::LimitedCodec").compile_fds(files)?;
    Ok(())
}
