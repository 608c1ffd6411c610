//! Link options of librpd_libraries.so, and the list of its symbols: the functions that the recorder has a description of.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const DESCRIPTION: &str = "../tracer/src/library_call/description/calls.tsv";

fn main() -> Result<(), Box<dyn Error>> {
    // As symbols/build.rs has them.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librpd_libraries.so");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
    for file in ["build.rs", DESCRIPTION] {
        println!("cargo:rerun-if-changed={file}");
    }
    let description = fs::read_to_string(DESCRIPTION)?;
    let calls = description.lines().filter(|line| line.starts_with("call\t") || line.starts_with("note\t"));
    let mut names: Vec<&str> = calls.filter_map(|line| line.split('\t').nth(2)).collect();
    // Several versions of a function have one symbol.
    names.retain(|name| !name.contains('@'));
    names.sort_unstable();
    // Without the library the call fails: 1 is a failure in all of them.
    let mut text = format!(
        "rpd_interposition::interpose! {{ asks c\"rpd_library_symbol\", without 1; {}\n",
        names.len()
    );
    for (place, name) in names.iter().enumerate() {
        writeln!(text, "    {place} {name} c\"{name}\" c\"{name}\";")?;
    }
    text.push_str("}\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("symbols.rs"), text)?;
    Ok(())
}
