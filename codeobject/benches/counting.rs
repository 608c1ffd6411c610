//! How many instructions a second the rewriter takes that makes kernels count their basic blocks: of the processor's time of one thread. librocrand's
//! kernels where the library is, or those of the libraries and code objects that are named.

#[path = "../tests/counting/cpu.rs"]
mod cpu;

use std::path::Path;
use std::time::Duration;

use rpd_codeobject::container::code_objects;
use rpd_codeobject::counting::{Options, Variant, rewrite};

const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/librocrand.so.1";
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/counting-gfx906-o0.co");
const VARIANTS: [(&str, Variant, bool); 5] = [
    ("waves, vector unit", Variant::Waves, false),
    ("waves, scalar unit", Variant::Waves, true),
    ("waves and work-items", Variant::Lanes, false),
    ("waves and time, vector unit", Variant::Time, false),
    ("waves and time, scalar unit", Variant::Time, true),
];
/// So much of the processor's time is a sample; the median of so many is shown.
const LEAST: Duration = Duration::from_millis(200);
const SAMPLES: usize = 5;

fn main() {
    let named: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let found = if Path::new(LIBRARY).exists() { LIBRARY } else { OWN };
    let files = if named.is_empty() { vec![found.to_string()] } else { named };
    println!("Kernels made to count their basic blocks: instructions a second of one core");
    for file in files {
        let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let parts = code_objects(&bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
        println!("{file}");
        for (name, variant, scalar_first) in VARIANTS {
            let options = Options { variant, scalar_first, slots: 4, ..Options::default() };
            let all = || {
                let made = parts.iter().filter_map(|part| rewrite(&part.bytes, &options, &|_| true).ok());
                let blocks = made.flat_map(|made| made.blocks);
                blocks.map(|block| u64::from(block.instructions)).sum::<u64>()
            };
            let sample = |_| {
                let (begin, mut instructions) = (cpu::time(), 0);
                while cpu::time() - begin < LEAST {
                    instructions += all();
                }
                instructions as f64 / (cpu::time() - begin).as_secs_f64() / 1e6
            };
            let mut rates: Vec<f64> = (0..SAMPLES).map(sample).collect();
            rates.sort_by(f64::total_cmp);
            println!(
                "  {name:28} {:.1} M (from {:.1} to {:.1})",
                rates[SAMPLES / 2],
                rates[0],
                rates[SAMPLES - 1]
            );
        }
    }
}
