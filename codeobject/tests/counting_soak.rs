//! Real libraries through the rewriter: which kernels count, why others do not, how large their code becomes, and how fast it is. What was made does
//! what the original does, and LLVM's disassembler knows each instruction that is new. With RPD_SOAK; the libraries are those
//! of Debian's packages librocrand1, librocsparse0, librocfft0 and librocblas0, where they are, or of the directory that
//! RPD_SOAK_LIBRARIES names; counting/libraries.sh loads them into one. RPD_SOAK_PROCESSOR=gfx906 takes their code for that processor alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rpd_codeobject::CodeObject;
use rpd_codeobject::container::code_objects;
use rpd_codeobject::counting::{Options, Refusal, Rewritten, Variant, rewrite};

#[path = "counting/cpu.rs"]
mod cpu;
#[path = "counting/faithful.rs"]
mod faithful;
#[path = "counting/llvm.rs"]
mod llvm;
#[path = "hostile/sound.rs"]
mod sound;
use faithful::{Faithful, Words};
use sound::sound;

const DIRECTORY: &str = "/usr/lib/x86_64-linux-gnu";

/// Sums over one library.
#[derive(Default)]
struct Sums {
    counted: u64,
    scalar: u64,
    blocks: u64,
    instructions: u64,
    /// Bytes of code, before and after.
    code: (u64, u64),
    /// Of the thread's processor.
    took: Duration,
    refused: BTreeMap<&'static str, u64>,
    /// Kernels of the code objects.
    kernels: u64,
}

impl Sums {
    fn add(&mut self, made: &Rewritten) {
        self.counted += made.kernels.len() as u64;
        self.scalar += made.kernels.iter().filter(|kernel| kernel.is_scalar).count() as u64;
        // A function that several kernels call is there once for each.
        let places: BTreeMap<(u64, u64), u32> =
            made.blocks.iter().map(|block| ((block.start, block.end), block.instructions)).collect();
        self.blocks += places.len() as u64;
        self.instructions += places.values().map(|instructions| u64::from(*instructions)).sum::<u64>();
        self.code.0 += places.keys().map(|(start, end)| end - start).sum::<u64>();
        self.code.1 += made.map.stretches().map(|(_, length, _)| length).sum::<u64>();
    }
}

/// What is counted, as `rpd probe --auto` calls it.
const VARIANTS: [(&str, Variant); 3] =
    [("count", Variant::Waves), ("lanes", Variant::Lanes), ("time", Variant::Time)];

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

/// The reasons for which kernels of libraries may be left out; any other one is a fault of the rewriter's.
fn reason(refusal: &Refusal) -> Option<&'static str> {
    match refusal {
        Refusal::NoScalarRegisters { .. } => Some("no free scalar registers"),
        Refusal::NoVectorRegisters { .. } => Some("no free vector registers"),
        Refusal::JumpOutside { .. } => Some("jump into another function"),
        _ => None,
    }
}

/// Each kernel of the code object counts or is refused, for one of the known reasons, and nothing else does; how often which.
fn reasons(of: &CodeObject, made: &Rewritten, path: &Path) -> BTreeMap<&'static str, u64> {
    let all: Vec<&str> = of.kernels.iter().map(|kernel| kernel.symbol.trim_end_matches(".kd")).collect();
    let counted = made.kernels.iter().map(|kernel| kernel.name.as_str());
    let refused = made.refused.iter().map(|(name, _)| name.as_str());
    let sorted = |mut names: Vec<_>| {
        names.sort_unstable();
        names
    };
    assert_eq!(sorted(counted.chain(refused).collect()), sorted(all), "{}", path.display());
    let mut reasons = BTreeMap::new();
    for (name, refusal) in &made.refused {
        let reason = reason(refusal).unwrap_or_else(|| panic!("{}: {name}: {refusal}", path.display()));
        *reasons.entry(reason).or_default() += 1;
    }
    reasons
}

#[test]
fn libraries_count_or_say_why_not() {
    if std::env::var_os("RPD_SOAK").is_none() {
        return;
    }
    let directory = std::env::var_os("RPD_SOAK_LIBRARIES").unwrap_or(DIRECTORY.into());
    let processor = std::env::var("RPD_SOAK_PROCESSOR").ok();
    let mut paths = Vec::new();
    files(Path::new(&directory), &mut paths);
    let mut libraries: BTreeMap<String, Sums> = BTreeMap::new();
    let mut new: BTreeMap<String, BTreeSet<Words>> = BTreeMap::new();
    for path in paths {
        let bytes = fs::read(&path).expect("a library");
        let Ok(parts) = code_objects(&bytes) else { continue };
        let name = path.file_name().expect("a name").to_string_lossy();
        let library = if name.ends_with("co") { "Tensile".to_string() } else { name.into_owned() };
        for part in parts {
            let Ok(parsed) = CodeObject::parse(&part.bytes) else { continue };
            if processor.as_ref().is_some_and(|processor| *processor != parsed.target.processor) {
                continue;
            }
            for (what, variant) in VARIANTS {
                let options = Options { variant, slots: 1, ..Options::default() };
                let begin = cpu::time();
                let made = match rewrite(&part.bytes, &options, &|_| true) {
                    Ok(made) => made,
                    // As a whole, with all others for that processor.
                    Err(Refusal::Target(_)) => break,
                    Err(refusal) => panic!("{}: {refusal}", path.display()),
                };
                let of = format!("{library} {} {what}", parsed.target.processor);
                let sums = libraries.entry(of).or_default();
                sums.took += cpu::time() - begin;
                sums.add(&made);
                sums.kernels += parsed.kernels.len() as u64;
                for (reason, count) in reasons(&parsed, &made, &path) {
                    *sums.refused.entry(reason).or_default() += count;
                }
                // What was made is read as what it was, with a segment more.
                let again = CodeObject::parse(&made.object).expect("a code object");
                assert_eq!(again.kernels, parsed.kernels);
                sound(&part.bytes, &made);
                let mut faithful = Faithful::default();
                faithful.add(&part.bytes, &made);
                new.entry(parsed.target.processor.clone()).or_default().extend(faithful.new);
            }
        }
    }
    for (processor, new) in &new {
        println!("{processor}: LLVM knows {} new instructions", llvm::knows(processor, new));
    }
    println!(
        "| library | kernels | that count | by scalars | refused | blocks | instructions | code, MB | with counting | a second |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let counted: u64 = libraries.values().map(|sums| sums.counted).sum();
    let refused: u64 = libraries.values().flat_map(|sums| sums.refused.values()).sum();
    for (library, sums) in libraries {
        assert_eq!(sums.counted + sums.refused.values().sum::<u64>(), sums.kernels, "{library}");
        if sums.kernels == 0 {
            println!("| {library} | none, it makes them when it runs | | | | | | | | |");
            continue;
        }
        let mut refused = String::new();
        for (reason, count) in &sums.refused {
            write!(refused, "{}{count}: {reason}", if refused.is_empty() { "" } else { "; " })
                .expect("a text");
        }
        let million = |number: u64| number as f64 / 1e6;
        println!(
            "| {library} | {} | {} | {} | {refused} | {} | {:.1} M | {:.1} | {:.2} | {:.1} M |",
            sums.kernels,
            sums.counted,
            sums.scalar,
            sums.blocks,
            million(sums.instructions),
            million(sums.code.0),
            sums.code.1 as f64 / sums.code.0 as f64,
            million(sums.instructions) / sums.took.as_secs_f64()
        );
    }
    assert!(counted > 0 && refused * 20 < counted, "{counted} kernels count, {refused} are refused");
}
