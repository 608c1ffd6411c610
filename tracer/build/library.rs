//! Writes library_calls.rs: how many functions of GPU libraries are described.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

const DESCRIPTION: &str = "src/sources/library/description/calls.tsv";

/// Writes it to OUT_DIR.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build/library.rs");
    println!("cargo:rerun-if-changed={DESCRIPTION}");
    let description = fs::read_to_string(DESCRIPTION)?;
    let count = description.lines().filter(|line| !line.starts_with("enum\t")).count();
    let text = format!("/// How many functions are described.\npub(super) const COUNT: usize = {count};\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("library_calls.rs"), text)?;
    Ok(())
}
