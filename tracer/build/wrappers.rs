//! Writes hip_wrappers.rs from the description of the HIP API: for each function a list of its parameters, of which `hip/wrapper.rs`
//! makes a function that can be in its place.

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const DESCRIPTION: &str = "src/sources/hip/description/hip_api.tsv";
const TABLE: &str = "src/sources/hip/description/dispatch.txt";

/// From here on stand the wrappers of `hipMemcpy_spt` and the like, functions for streams of a thread, where they are described with those
/// that they stand for: HIP's callbacks know both by one name.
const PER_THREAD_STREAM: usize = 1024;

/// Functions that return no hipError_t: nothing is known of them but their name.
const OTHERS: [&str; 2] = ["hipGetErrorString", "hipGetErrorName"];

/// Writes it to OUT_DIR.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build/wrappers.rs");
    println!("cargo:rerun-if-changed={DESCRIPTION}");
    println!("cargo:rerun-if-changed={TABLE}");
    let (description, table) = (fs::read_to_string(DESCRIPTION)?, fs::read_to_string(TABLE)?);
    let entries: HashSet<&str> = table.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    let lines: Vec<&str> = description.lines().filter_map(|line| line.strip_prefix("api\t")).collect();
    let described: HashSet<&str> = lines.iter().filter_map(|line| line.split('\t').next()).collect();
    let mut text = String::from("wrappers! {\n");
    for (place, &line) in lines.iter().enumerate() {
        let mut cells = line.split('\t');
        let name = cells.next().ok_or(line)?;
        if OTHERS.contains(&name) {
            continue;
        }
        let parameters: Vec<Parameter<'_>> =
            cells.skip(2).map(|cell| Parameter::read(cell).ok_or(line)).collect::<Result<_, _>>()?;
        let end = parameters.iter().map(|parameter| parameter.offset + parameter.size).max().unwrap_or(0);
        let other = format!("{name}_spt");
        let has_other = entries.contains(&*other) && !described.contains(&*other);
        for (slot, name) in [(place, name), (PER_THREAD_STREAM + place, &other)] {
            if slot >= PER_THREAD_STREAM && !has_other {
                continue;
            }
            // A call without arguments has its mark all the same.
            write!(text, "    {slot} {place} {name}_{place} [{}] (", end.div_ceil(8).max(1))?;
            for (number, parameter) in parameters.iter().enumerate() {
                write!(text, "a{number}: {} = {}, ", parameter.kind, parameter.offset)?;
            }
            text.push_str(");\n");
        }
    }
    text.push_str("}\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("hip_wrappers.rs"), text)?;
    Ok(())
}

/// One parameter.
struct Parameter<'a> {
    /// Its place in hip_api_data_t.
    offset: usize,
    /// Bytes.
    size: usize,
    /// The Rust type that the C ABI passes in the same way.
    kind: &'a str,
}

impl Parameter<'_> {
    /// Reads `offset:class:size:name`, see description/generate.py.
    fn read(cell: &str) -> Option<Parameter<'static>> {
        let mut parts = cell.split(':');
        let (offset, class, size) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
        let (size, kind) = match (class, size) {
            ("d", _) => (12, "HipDim3"),
            ("t", _) => (24, "Extent"),
            ("z", _) => (8, "usize"),
            // Addresses of results and structures, texts.
            ("p" | "s", _) => (8, "usize"),
            (class, _) if class.starts_with(['o', 'm']) => (8, "usize"),
            ("i", "4") => (4, "i32"),
            ("i", "8") => (8, "i64"),
            ("u", "1") => (1, "u8"),
            ("u", "2") => (2, "u16"),
            ("u", "4") => (4, "u32"),
            ("u", "8") => (8, "u64"),
            ("f", "4") => (4, "f32"),
            ("f", "8") => (8, "f64"),
            // Structures of integers. Those of more than 16 bytes are passed in memory, whatever they hold.
            ("x", "8") => (8, "u64"),
            ("x", "32") => (32, "Bytes<4>"),
            ("x", "64") => (64, "Bytes<8>"),
            ("x", "72") => (72, "Bytes<9>"),
            _ => return None,
        };
        Some(Parameter { offset, size, kind })
    }
}
