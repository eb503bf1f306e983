//! Lists the files of the page: their addresses, their types and their content, plain and compressed.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

const FOLDER: &str = "../ui/page";
const INDEX: &str = "index.html";
/// In the index, stands for the path of the other files.
const ASSETS: &str = "{{assets}}";

/// Writes `page.rs`, with the index first.
pub(super) fn embed() -> Result<(), String> {
    let folder = fs::canonicalize(FOLDER).map_err(|error| format!("{FOLDER}: {error}"))?;
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    files.sort();
    let digest = digest(&folder, &files)?;
    let out = PathBuf::from(super::variable("OUT_DIR")?);
    let index =
        fs::read_to_string(folder.join(INDEX)).map_err(|error| format!("{INDEX}: {error}"))?;
    let index = index.replace(ASSETS, &format!("/{digest}"));
    let index_file = out.join(INDEX);
    write(&index_file, &index)?;
    let mut rows = row("/", INDEX, &index_file, &compressed(&index_file, &out, 0)?)?;
    for (number, file) in files.iter().enumerate() {
        let name = name(&folder, file)?;
        if name != INDEX {
            let compressed = compressed(file, &out, number + 1)?;
            rows += &row(&format!("/{digest}/{name}"), &name, file, &compressed)?;
        }
    }
    let text = format!(
        "pub(super) const ETAG_TEXT: &str = {:?};\npub(super) static FILES: &[File] = &[\n{rows}];\n",
        format!("W/\"{digest}\"")
    );
    write(&out.join("page.rs"), &text)
}

fn row(address: &str, name: &str, file: &Path, compressed: &Path) -> Result<String, String> {
    let content_type = content_type(name)?;
    Ok(format!(
        "    File {{ path: {address:?}, content_type: {content_type:?}, bytes: include_bytes!({file:?}), gzip: include_bytes!({compressed:?}) }},\n"
    ))
}

/// Compresses a file into another one, and returns the path of that.
fn compressed(file: &Path, out: &Path, number: usize) -> Result<PathBuf, String> {
    let failed = |error| format!("{}: {error}", file.display());
    let bytes = fs::read(file).map_err(failed)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes).map_err(failed)?;
    let path = out.join(format!("page-{number}.gz"));
    fs::write(&path, encoder.finish().map_err(failed)?).map_err(failed)?;
    Ok(path)
}

fn content_type(name: &str) -> Result<&'static str, String> {
    match name.rsplit('.').next() {
        Some("html") => Ok("text/html; charset=utf-8"),
        Some("js") => Ok("text/javascript; charset=utf-8"),
        Some("css") => Ok("text/css; charset=utf-8"),
        Some("json") => Ok("application/json"),
        Some("webmanifest") => Ok("application/manifest+json"),
        Some("svg") => Ok("image/svg+xml"),
        Some("png") => Ok("image/png"),
        Some("woff2") => Ok("font/woff2"),
        Some("txt") => Ok("text/plain; charset=utf-8"),
        Some(_) | None => Err(format!(
            "{FOLDER}/{name} has no known type: see server/build/page.rs"
        )),
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// FNV-1a over names and contents: two builds with different files have different paths.
fn digest(folder: &Path, files: &[PathBuf]) -> Result<String, String> {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    let mut add = |bytes: &[u8]| {
        for byte in bytes.iter().chain(&[0]) {
            hash ^= u128::from(*byte);
            hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    };
    for file in files {
        add(name(folder, file)?.as_bytes());
        add(&fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?);
    }
    Ok(format!("{hash:032x}"))
}

fn name(folder: &Path, file: &Path) -> Result<String, String> {
    let name = file.strip_prefix(folder).ok().and_then(Path::to_str);
    name.map(str::to_owned)
        .ok_or_else(|| format!("{} has no plain name", file.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
