//! Writes library_calls.rs: how many functions of libraries are described.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

const DESCRIPTIONS: [&str; 2] =
    ["src/library_call/description/calls.tsv", "src/library_call/description/hsa.tsv"];

/// Writes it to OUT_DIR.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build/library.rs");
    let mut count = 0;
    for description in DESCRIPTIONS {
        println!("cargo:rerun-if-changed={description}");
        let text = fs::read_to_string(description)?;
        count += text.lines().filter(|line| !line.starts_with("enum\t")).count();
    }
    let text = format!("/// How many functions are described.\npub(super) const COUNT: usize = {count};\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("library_calls.rs"), text)?;
    Ok(())
}
