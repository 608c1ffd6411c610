//! Occupancy against LLVM's: what it prints for each kernel that it compiles ("; Occupancy: 10").

#[path = "../../tests/harness/skip.rs"]
#[allow(dead_code)] // other crates use the rest
mod skip;

use std::process::Command;

use rpd_codeobject::occupancy::{Need, Occupancy, OccupancyLimit};

/// Compares the lines of occupancy.py; returns how many answers there were, by processor.
///
/// `is_old`: LLVM 15 asks how many workgroups fit only where they have LDS, and does not know how many registers gfx1100 and gfx1101 have.
fn compare(lines: &str, is_old: bool) -> usize {
    let mut answers = 0;
    for line in lines.lines() {
        let mut fields = line.split('\t');
        let processors = fields.next().expect("processors");
        let numbers: Vec<u32> = fields.map(|field| field.parse().expect("a number")).collect();
        let [wavefront_size, mode, vgprs, sgprs, lds, workgroup, expected] = numbers[..] else {
            panic!("{line}")
        };
        let workgroup_processor_mode = mode == 1;
        let need = Need { vgprs, sgprs, lds, workgroup, wavefront_size, workgroup_processor_mode };
        for processor in processors.split(',') {
            if is_old && ["gfx1100", "gfx1101"].contains(&processor) {
                continue;
            }
            answers += 1;
            let occupancy = Occupancy::of(processor, &need).expect(processor);
            let (_, whole) = occupancy.allowed[3];
            let expected = if is_old { expected.min(whole) } else { expected };
            if occupancy.waves != expected {
                // LLVM up to 22 leaves out the scalar registers of the trap handler.
                assert_eq!(occupancy.limits(), [OccupancyLimit::Sgpr], "{processor}: {line}: {occupancy:?}");
                assert!(occupancy.waves < expected, "{processor}: {line}: {occupancy:?}");
            }
        }
    }
    answers
}

#[test]
fn llvm_21_says_the_same_of_every_processor() {
    assert_eq!(compare(include_str!("data/occupancy-llvm21.tsv"), false), 9812);
}

/// Registers alone: LLVM 15 takes the waves of a CU for those of a SIMD where LDS limits them.
#[test]
fn the_installed_llvm_says_the_same_of_registers() {
    if Command::new("llc-15").arg("--version").output().is_err() {
        return skip::not_installed("no llc-15 (package llvm-15)");
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/occupancy.py");
    let run = Command::new("python3").args([script, "--registers", "llc-15"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    // gfx900 to gfx940, and RDNA up to gfx1103.
    assert!(compare(&String::from_utf8(run.stdout).unwrap(), true) > 2000);
}
