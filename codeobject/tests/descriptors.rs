//! Without a metadata note the kernel descriptors tell as much as the hardware needs, and the two agree.

use std::fs;
use std::path::PathBuf;

use rpd_codeobject::{CodeObject, FactsFrom, Kernel};

fn bytes(file: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "data", file].iter().collect();
    fs::read(path).expect(file)
}

/// The object with its metadata note turned into one of another kind.
fn without_note(file: &str) -> CodeObject {
    let mut bytes = bytes(file);
    let at = bytes.windows(11).position(|at| at == b"\x20\0\0\0AMDGPU\0").expect(file);
    bytes[at] = 0x7f;
    CodeObject::parse(&bytes).expect(file)
}

fn compare(file: &str, vgpr_granule: u32) {
    let full = CodeObject::parse(&bytes(file)).expect(file);
    let bare = without_note(file);
    assert_eq!((full.source, bare.source), (FactsFrom::Metadata, FactsFrom::Descriptors));
    assert_eq!((&bare.target, bare.abi_version), (&full.target, full.abi_version));
    let symbols = |object: &CodeObject| {
        let mut symbols: Vec<String> = object.kernels.iter().map(|kernel| kernel.symbol.clone()).collect();
        symbols.sort();
        symbols
    };
    assert_eq!(symbols(&bare), symbols(&full), "{file}");
    for Kernel { symbol, name, .. } in &full.kernels {
        let (full, bare) = (full.kernel(symbol).expect(symbol), bare.kernel(symbol).expect(symbol));
        assert_eq!(&bare.name, name);
        let exact = |kernel: &Kernel| {
            let Kernel { group_segment_fixed_size, private_segment_fixed_size, wavefront_size, .. } = *kernel;
            (
                group_segment_fixed_size,
                private_segment_fixed_size,
                wavefront_size,
                kernel.kernarg_segment_size,
            )
        };
        assert_eq!(exact(bare), exact(full), "{file}: {symbol}");
        // A kernel gets whole granules, at least one, and no more than it needs.
        let granules = full.vgpr_count.max(1).next_multiple_of(vgpr_granule);
        assert_eq!(bare.vgpr_count, granules, "{file}: {symbol}");
        // The scalar registers that the hardware keeps for itself are not in the note.
        assert!(bare.sgpr_count >= full.sgpr_count, "{file}: {symbol}");
    }
}

#[test]
fn gfx9_counts_vector_registers_in_fours() {
    compare("gfx900-v3.co", 4);
    compare("gfx906-v4.co", 4);
}

#[test]
fn gfx90a_counts_in_eights_and_splits_the_file() {
    compare("gfx90a-v5.co", 8);
    let bare = without_note("gfx90a-v5.co");
    assert_eq!(bare.kernel("_Z10accumulatePfff").unwrap().agpr_count, 32);
    assert_eq!(bare.kernel("plain").unwrap().agpr_count, 4, "what is left of the granule");
}

#[test]
fn gfx908_has_two_files_of_equal_size() {
    let full = CodeObject::parse(&bytes("gfx908-v4.co")).unwrap();
    let bare = without_note("gfx908-v4.co");
    for kernel in &full.kernels {
        let bare = bare.kernel(&kernel.symbol).unwrap();
        let needed = kernel.vgpr_count.max(kernel.agpr_count).max(1).next_multiple_of(4);
        assert_eq!((bare.vgpr_count, bare.agpr_count), (needed, needed), "{}", kernel.symbol);
    }
}

#[test]
fn gfx10_counts_in_eights_per_lane_pair_and_always_has_the_scalars() {
    compare("gfx1030-v5.co", 8);
    assert!(without_note("gfx1030-v5.co").kernels.iter().all(|kernel| kernel.sgpr_count == 128));
    assert!(without_note("gfx1030-v5.co").kernels.iter().all(|kernel| kernel.wavefront_size == 32));
}

#[test]
fn what_a_descriptor_does_not_hold_is_empty() {
    let bare = without_note("gfx90a-v5.co");
    let kernel = bare.kernel("_Z8spillingPf").unwrap();
    assert_eq!((kernel.vgpr_spill_count, kernel.max_flat_workgroup_size, kernel.args.len()), (0, 0, 0));
    assert!(bare.kernel("_Z8indirectPFiiEPi").unwrap().uses_dynamic_stack);
}
