//! Real libraries through the rewriter: which kernels count, why others do not, and how fast it is. With RPD_SOAK; the libraries are those
//! of Debian's packages librocrand1, librocsparse0, librocfft0 and librocblas0, where they are, or of the directory that
//! RPD_SOAK_LIBRARIES names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rpd_codeobject::CodeObject;
use rpd_codeobject::container::code_objects;
use rpd_codeobject::counting::{Options, Variant, rewrite};

#[path = "hostile/sound.rs"]
mod sound;
use sound::sound;

const DIRECTORY: &str = "/usr/lib/x86_64-linux-gnu";

/// Sums over one library.
#[derive(Default)]
struct Sums {
    objects: u64,
    counted: u64,
    scalar: u64,
    by_pointer: u64,
    blocks: u64,
    instructions: u64,
    bytes: u64,
    added: u64,
    took: Duration,
    refused: BTreeMap<String, u64>,
}

/// Files below a directory whose names begin with "libroc" and hold code, and code objects.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() {
            files(&path, found);
        } else if !path.is_symlink()
            && (name.starts_with("libroc") && name.contains(".so") || name.ends_with("co"))
        {
            found.push(path);
        }
    }
}

/// A refusal without its names and numbers.
fn kind(reason: &str) -> String {
    let reason =
        reason.rsplit_once(": ").filter(|(_, rest)| !rest.contains(" of ")).map_or(reason, |(_, rest)| rest);
    let words =
        reason.split(' ').map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "N" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn libraries_count_or_say_why_not() {
    if std::env::var_os("RPD_SOAK").is_none() {
        return;
    }
    let directory = std::env::var_os("RPD_SOAK_LIBRARIES").unwrap_or(DIRECTORY.into());
    let mut paths = Vec::new();
    files(Path::new(&directory), &mut paths);
    let mut libraries: BTreeMap<String, Sums> = BTreeMap::new();
    for path in paths {
        let bytes = fs::read(&path).expect("a library");
        let Ok(parts) = code_objects(&bytes) else { continue };
        let name = path.file_name().expect("a name").to_string_lossy();
        let library = if name.ends_with("co") { "code objects".to_string() } else { name.into_owned() };
        for part in parts {
            let Ok(parsed) = CodeObject::parse(&part.bytes) else { continue };
            let key = format!("{library} {}", parsed.target.processor);
            let sums = libraries.entry(key).or_default();
            let options = Options { variant: Variant::Waves, slots: 1, ..Options::default() };
            let begin = Instant::now();
            let made = match rewrite(&part.bytes, &options, &|_| true) {
                Ok(made) => made,
                Err(refusal) => {
                    *sums.refused.entry(kind(&refusal.to_string())).or_default() += 1;
                    continue;
                }
            };
            sums.took += begin.elapsed();
            sums.objects += 1;
            sums.counted += made.kernels.len() as u64;
            sums.scalar += made.kernels.iter().filter(|kernel| kernel.is_scalar).count() as u64;
            sums.by_pointer += made.kernels.iter().filter(|kernel| kernel.calls_by_pointer).count() as u64;
            sums.blocks += made.blocks.len() as u64;
            sums.instructions += made.blocks.iter().map(|block| u64::from(block.instructions)).sum::<u64>();
            sums.bytes += part.bytes.len() as u64;
            sums.added += (made.object.len() - part.bytes.len()) as u64;
            for (_, refusal) in &made.refused {
                *sums.refused.entry(kind(&refusal.to_string())).or_default() += 1;
            }
            // What was made is read as what it was, with a segment more.
            let again = CodeObject::parse(&made.object).expect("a code object");
            assert_eq!(again.kernels, parsed.kernels);
            sound(&part.bytes, &made);
        }
    }
    for (library, sums) in libraries {
        println!(
            "{library}: {} objects, {} kernels count ({} by scalars, {} call by pointer), {} blocks, {} instructions, {} bytes and {} more, \
             {:.2} s, {:.2} M instructions/s",
            sums.objects,
            sums.counted,
            sums.scalar,
            sums.by_pointer,
            sums.blocks,
            sums.instructions,
            sums.bytes,
            sums.added,
            sums.took.as_secs_f64(),
            sums.instructions as f64 / 1e6 / sums.took.as_secs_f64()
        );
        for (reason, count) in sums.refused {
            println!("  {count} refused: {reason}");
        }
    }
}
