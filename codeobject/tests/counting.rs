//! Counting kernels on the software GPU's interpreter: results are those of the original kernels, and each counter is what the
//! interpreter has executed.

use std::collections::{BTreeMap, HashMap};

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSegment};
use rpd_codeobject::blocks::blocks;
use rpd_codeobject::counting::{Options, Refusal, Rewritten, RewrittenBlock, Variant, rewrite};
use rpd_codeobject::instruction::Instruction;
use rpd_codeobject::{CodeObject, functions};
use rpd_gfx9::{Counts, GroupNeed, Target};

#[path = "counting/assembly.rs"]
mod assembly;
#[allow(dead_code, reason = "times are the benchmark's")]
#[path = "counting/costs.rs"]
mod costs;
#[path = "counting/cpu.rs"]
mod cpu;
#[path = "counting/faithful.rs"]
mod faithful;
#[path = "counting/launch.rs"]
mod launch;
#[path = "counting/llvm.rs"]
mod llvm;
#[path = "counting/machine.rs"]
mod machine;
#[path = "hostile/sound.rs"]
mod sound;
use faithful::Faithful;
use launch::{COPY, OBJECTS, ORIGINAL, Outcome, VARIANTS, bytes, run, run_on};
use machine::Machine;
use sound::sound;

/// Kernels of the last one that cannot count, and why.
const REFUSED: [(&str, &str); 5] = [
    ("forks", "s_cbranch_g_fork"),
    ("full", "no free scalar registers: 101 of 102 are in use"),
    ("indexed", "between s_set_gpr_idx_on and s_set_gpr_idx_off"),
    ("jumps_anywhere", "indirect branch"),
    ("unknown", "unknown instruction 0xfc000000"),
];
/// The waves and lanes that have executed the instructions that stand for the original ones, by the addresses of those. What is in front of such
/// an instruction is executed as often.
fn executed(made: &Rewritten, counts: &Counts) -> HashMap<u64, (u64, u64)> {
    let of_one = |(address, executed): (&u64, &rpd_gfx9::Executed)| {
        let new = address.checked_sub(COPY)?;
        let original = made.map.original(new)?;
        let is_last = made.map.original(new + 4) != Some(original);
        is_last.then_some((original, (executed.executions, executed.lanes)))
    };
    counts.instructions.iter().filter_map(of_one).collect()
}

/// The vector instructions of a code object, by their addresses.
fn vector_instructions(object: &[u8]) -> BTreeMap<u64, Instruction> {
    let mut found = BTreeMap::new();
    for function in functions(object).expect("a code object") {
        let Ok(code) = blocks(&function) else { continue };
        let steps = code.steps.iter().filter(|step| step.instruction.is_by_lanes());
        found.extend(steps.map(|step| (step.address, step.instruction)));
    }
    found
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

#[test]
fn each_refusal_has_its_reason() {
    let options = Options { variant: Variant::Lanes, ..Options::default() };
    let made = rewrite(&bytes("counting-asm.co"), &options, &|_| true).unwrap();
    for (kernel, reason) in REFUSED {
        let (_, refusal) = made.refused.iter().find(|(name, _)| name == kernel).expect(kernel);
        assert!(refusal.to_string().contains(reason), "{kernel}: {refusal}");
        assert!(!refusal.to_string().contains('\n'));
    }
    let why = |file: &str| rewrite(&bytes(file), &options, &|_| true).unwrap_err().to_string();
    assert!(why("gfx1030-v5.co").starts_with("built for gfx1030"));
    assert!(why("two_units.so").starts_with("not a code object"));
}

/// A kernel in assembly, with so many vector registers.
fn assembled_kernel(name: &str, vectors: u32, code: &str) -> String {
    format!(
        ".rodata\n.p2align 6\n.amdhsa_kernel {name}\n.amdhsa_next_free_vgpr {vectors}\n.amdhsa_next_free_sgpr 26\n.end_amdhsa_kernel\n\
         .text\n.globl {name}\n.p2align 8\n.type {name},@function\n{name}:\n{code}\ns_endpgm\n.size {name}, .-{name}\n"
    )
}

#[test]
fn what_the_compiler_seldom_makes_is_refused_too() {
    let why = |code: &str, variant: Variant, scalar_first: bool| {
        let object = assembly::assemble(code);
        let options = Options { variant, scalar_first, ..Options::default() };
        rewrite(&object, &options, &|_| true).map(|made| made.refused)
    };
    let one = |code: &str, variant, scalar_first| {
        let refused = why(code, variant, scalar_first).unwrap();
        let [(name, refusal)] = &refused[..] else { panic!("{refused:?}") };
        assert_eq!(name, "kernel");
        refusal.clone()
    };
    let all_vectors = assembled_kernel("kernel", 256, "v_mov_b32_e32 v255, v0");
    let none_free = Refusal::NoVectorRegisters { used: 256, needed: 2 };
    assert_eq!(one(&all_vectors, Variant::Lanes, false), none_free);
    // Waves are counted through the scalar unit then.
    assert_eq!(why(&all_vectors, Variant::Waves, false), Ok(Vec::new()));

    // More blocks than its instructions can name counters of, and no vector registers.
    let blocks = 140_000;
    let branches = format!("v_mov_b32_e32 v255, v0\n.rept {}\ns_branch 0\n.endr", blocks - 1);
    let branches = assembled_kernel("kernel", 256, &branches);
    assert_eq!(one(&branches, Variant::Waves, true), Refusal::TooManyBlocks(blocks));
    let needs_more = Refusal::NoVectorRegisters { used: 256, needed: 3 };
    assert_eq!(one(&branches, Variant::Waves, false), needs_more);

    let jump = "s_getpc_b64 s[20:21]\n.Lfrom:\ns_add_u32 s20, s20, .Linto-.Lfrom\ns_addc_u32 s21, s21, 0\ns_setpc_b64 s[20:21]";
    let other =
        ".type other,@function\nother:\ns_nop 0\n.Linto:\ns_setpc_b64 s[30:31]\n.size other, .-other\n";
    let into = one(&format!("{}{other}", assembled_kernel("kernel", 4, jump)), Variant::Waves, false);
    assert!(matches!(&into, Refusal::JumpOutside { function, .. } if function == "kernel"), "{into:?}");

    let kernel = assembled_kernel("kernel", 4, "s_nop 0");
    let refers = why(&format!("{kernel}.weak elsewhere\n.data\n.quad elsewhere\n"), Variant::Waves, false);
    assert_eq!(refers, Err(Refusal::ExternalSymbol("elsewhere".to_string())));

    // The size in memory of the last loaded segment.
    let mut object = assembly::assemble(&kernel);
    let (table, count) = (word(&object, 32) as usize, object[56] as usize);
    let loads = (0..count).map(|number| table + 56 * number).filter(|header| word(&object, *header) == 1);
    let last = loads.max().expect("a segment") + 40;
    object[last..last + 8].copy_from_slice(&(1u64 << 30).to_le_bytes());
    assert_eq!(rewrite(&object, &Options::default(), &|_| true), Err(Refusal::TooLarge));
}

/// A kernel that keeps a number in its last scalar and its last vector register while it goes round a loop.
fn kernel_of_registers(scalars: u32, vectors: u32) -> Vec<u8> {
    let (scalar, vector) = (scalars - 1, vectors - 1);
    let head = format!(
        ".rodata\n.p2align 6\n.amdhsa_kernel kernel\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_next_free_vgpr {vectors}\n\
         .amdhsa_next_free_sgpr {scalars}\n.end_amdhsa_kernel\n.text\n.globl kernel\n.p2align 8\n.type kernel,@function\nkernel:\n"
    );
    let code = format!(
        "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_movk_i32 s{scalar}, 77\nv_mov_b32_e32 v{vector}, 9\nv_lshlrev_b32_e32 v0, 2, v0\n\
         s_movk_i32 s6, 3\ns_waitcnt lgkmcnt(0)\n.Lloop:\ns_add_i32 s{scalar}, s{scalar}, 5\nv_add_u32_e32 v{vector}, 3, v{vector}\n\
         s_sub_u32 s6, s6, 1\ns_cmp_lg_u32 s6, 0\ns_cbranch_scc1 .Lloop\nv_add_u32_e32 v1, s{scalar}, v{vector}\n\
         global_store_dword v0, v1, s[4:5]\ns_endpgm\n"
    );
    assembly::assemble(&format!("{head}{code}.size kernel, .-kernel\n"))
}

/// Around the number of registers that a wave can name: a kernel counts, with what the hardware allots and no more, or says what it lacks. The
/// interpreter stops code that names a register beyond that.
#[test]
fn registers_run_out_where_the_hardware_has_no_more() {
    let (mut counted, mut refused, mut grown) = (0, BTreeMap::new(), 0);
    let scalars = (88..=102).map(|scalars| (scalars, 16));
    for (scalars, vectors) in scalars.chain((247..=256).map(|vectors| (24, vectors))) {
        let object = kernel_of_registers(scalars, vectors);
        for (variant, scalar_first) in VARIANTS {
            for branch_limit in [1, 1 << 15] {
                let options = Options { variant, scalar_first, slots: 1, branch_limit };
                let named = format!("{scalars} {vectors} {options:?}");
                let made = rewrite(&object, &options, &|_| true).unwrap();
                let Some(kernel) = made.kernels.first() else {
                    let why = &made.refused[0].1;
                    let (used, needed, all) = match why {
                        Refusal::NoScalarRegisters { used, needed } => (*used, *needed, 102),
                        Refusal::NoVectorRegisters { used, needed } => (*used, *needed, 256),
                        other => panic!("{named}: {other}"),
                    };
                    assert_eq!(used, if all == 102 { scalars } else { vectors }, "{named}");
                    assert!(needed <= 16 && used + needed > all, "{named}: {why}");
                    *refused.entry(all).or_insert(0) += 1;
                    continue;
                };
                sound(&object, &made);
                let parsed = CodeObject::parse(&object).unwrap();
                let descriptor = functions(&object).unwrap()[0].descriptor.unwrap();
                let before = descriptor.registers(&parsed.target).unwrap();
                let after = kernel.registers;
                assert!(
                    after.sgprs % 16 == 0 && after.sgprs <= 112 && after.vgprs <= 256,
                    "{named}: {after:?}"
                );
                grown += u32::from(after.sgprs > before.sgprs);
                let plain = run(&object, &made, kernel, Target::Gfx906, None).expect(&named);
                let outcome = run(&object, &made, kernel, Target::Gfx906, Some(0)).expect(&named);
                assert_eq!(outcome.results, plain.results, "{named}");
                assert_eq!(plain.results[..4], (77 + 15 + 9 + 9u32).to_le_bytes());
                counted += 1;
            }
        }
    }
    println!("{counted} count, {grown} of them with more scalar registers; refused: {refused:?}");
    assert!(counted > 100 && grown > 10 && refused[&102] > 20 && refused[&256] == 4);
}

#[test]
fn only_what_is_wanted_is_there() {
    let object = bytes("counting-gfx906-o2.co");
    let made = rewrite(&object, &Options::default(), &|name| name == "calls").unwrap();
    assert_eq!(made.kernels.len(), 1);
    let kernel = &made.kernels[0];
    assert_eq!((kernel.name.as_str(), kernel.slots.len(), kernel.calls_by_pointer), ("calls", 1, false));
    assert_eq!(made.functions, ["_Z6helperii", "calls"]);
    assert_eq!(kernel.blocks, 0..made.blocks.len());
    // Two call the same function, and each has a copy.
    let both =
        rewrite(&object, &Options::default(), &|name| ["calls", "shares", "loops"].contains(&name)).unwrap();
    let blocks = |name: &str| both.kernels.iter().find(|kernel| kernel.name == name).unwrap().blocks.clone();
    let ranges = ["calls", "shares", "loops"].map(blocks);
    let together: usize = ranges.iter().map(ExactSizeIterator::len).sum();
    assert_eq!(together, both.blocks.len(), "{ranges:?}");
    assert_eq!(both.functions.iter().filter(|name| *name == "_Z6helperii").count(), 2);
    let points = rewrite(&object, &Options::default(), &|name| name == "points").unwrap();
    let kernel = &points.kernels[0];
    assert!(kernel.calls_by_pointer);
    // What pointers lead to in other objects may use all that the kernel has.
    let granules = word(&descriptor(&object, kernel.original_descriptor), 48) >> 6 & 15;
    assert!(kernel.registers.sgprs > (granules / 2 + 1) * 16, "{granules} {:?}", kernel.registers);
    // Functions that only data name come with it.
    assert_eq!(points.functions, ["_Z6helperii", "_Z4plusi", "_Z5timesi", "points"]);
    // Nobody is asked for: nothing but a segment without kernels.
    let none = rewrite(&object, &Options::default(), &|_| false).unwrap();
    assert!(none.kernels.is_empty() && none.refused.is_empty() && none.blocks.is_empty());
}

#[test]
fn a_work_group_that_is_too_large_does_not_fit() {
    let object = bytes("counting-gfx906-o2.co");
    let made = rewrite(&object, &Options::default(), &|name| name == "straight").unwrap();
    let mut kernel = made.kernels[0].clone();
    assert!(kernel.residency(1024, 0).counting > 0);
    // 1024 work-items are 4 waves of each SIMD, which has 256 registers.
    kernel.registers.vgprs = 68;
    assert_eq!([1024, 768, 64].map(|items| kernel.residency(items, 0).counting), [0, 1, 12]);
}

/// Which kernels may hang as counting ones, against compute units that are filled wave by wave.
#[test]
fn grids_that_no_longer_run_at_once() {
    let object = bytes("counting-gfx906-o2.co");
    let made = rewrite(&object, &Options::default(), &|name| name == "straight").unwrap();
    let mut kernel = made.kernels[0].clone();
    let (compute_units, mut lost) = (3, 0);
    for vgprs in (4..=256).step_by(4) {
        for sgprs in [16, 64, 80, 96, 112] {
            kernel.registers.vgprs = vgprs;
            kernel.registers.sgprs = sgprs;
            for (waves, lds) in
                [(1, 0), (2, 0), (3, 1), (4, 0), (4, 9000), (5, 40000), (9, 0), (16, 0), (16, 40000)]
            {
                let need = GroupNeed { waves, vector_registers: vgprs, scalar_registers: sgprs, lds };
                let resident = need.resident();
                let residency = kernel.residency(waves * 64, lds);
                assert_eq!(residency.counting, resident, "{need:?}");
                assert!(
                    residency.original >= resident || vgprs <= 8 || sgprs == 16,
                    "{need:?} {residency:?}"
                );
                for workgroups in 1..=130 {
                    let runs =
                        |each: u32| (0..compute_units).map(|_| u64::from(each)).sum::<u64>() >= workgroups;
                    let hangs = runs(residency.original) && !runs(residency.counting);
                    assert_eq!(
                        residency.loses_some(workgroups, Some(compute_units)),
                        hangs,
                        "{need:?} {workgroups}"
                    );
                    lost += u32::from(hangs);
                }
                assert_eq!(residency.loses_some(1, None), residency.original > resident);
            }
        }
    }
    assert!(lost > 10_000, "{lost}");
}

const S_BRANCH: u32 = 0xbf82_0000;
const S_NOP: u32 = 0xbf80_0000;

/// Lets each sequence that counts do something more at its end: `added`. The sequence, and that, are at the address that is returned with them; a
/// branch that leads there is where the sequence was, and one back is behind them.
fn add_to_sequences(made: &mut Rewritten, added: &[u32]) -> (u64, Vec<u8>) {
    let elf = ElfFile64::<LittleEndian>::parse(&*made.object).expect("an ELF file");
    let load = elf.segments().last().expect("a segment");
    let into = load.file_range().0.wrapping_sub(load.address());
    let begin = (load.address() + load.size() + 64).next_multiple_of(256);
    let stretches: Vec<_> = made.map.stretches().collect();
    let branch = |from: u64, to: u64| S_BRANCH | (to.wrapping_sub(from + 4) / 4) as u32 & 0xffff;
    let (mut elsewhere, mut sequences) = (Vec::<u32>::new(), 0);
    for pair in stretches.windows(2) {
        // What is put in front of an instruction stands for it too.
        let [(new, length, original), (next, _, same)] = *pair else { unreachable!() };
        if original != same || new + length != next {
            continue;
        }
        let place = new.wrapping_add(into) as usize;
        let sequence = (place..place + length as usize).step_by(4).map(|at| word(&made.object, at));
        let here = begin + 4 * elsewhere.len() as u64;
        elsewhere.extend(sequence.chain(added.iter().copied()));
        elsewhere.push(branch(begin + 4 * elsewhere.len() as u64, next));
        made.object[place..place + 4].copy_from_slice(&branch(new, here).to_le_bytes());
        sequences += 1;
    }
    assert!(sequences >= made.blocks.len(), "{sequences} sequences of {} blocks", made.blocks.len());
    (begin, elsewhere.iter().flat_map(|word| word.to_le_bytes()).collect())
}

/// The original and the counting kernel whose sequences do something more, and whether the second leaves what the first does, and counts what a
/// counting kernel does whose sequences do not.
fn is_noticed(object: &[u8], options: &Options, name: &str, added: &[u32]) -> bool {
    let made = rewrite(object, options, &|kernel| kernel == name).expect("as before");
    let kernel = &made.kernels[0];
    // One wave, whose times are exact.
    let of = |made: &Rewritten, elsewhere: Option<&(u64, Vec<u8>)>, slot| {
        let mut machine = Machine::new(Target::Gfx906);
        if let Some((address, code)) = elsewhere {
            machine.area(COPY + address, code.len() + 64);
            machine.write(COPY + address, code);
        }
        run_on(machine, (1, 64), object, made, kernel, slot)
    };
    let [plain, counting] = [None, Some(0)].map(|slot| of(&made, None, slot).expect("its end"));
    assert!(plain.results == counting.results && plain.results.iter().any(|byte| *byte != 0), "{name}");
    let mut changed = made.clone();
    let elsewhere = add_to_sequences(&mut changed, added);
    of(&changed, Some(&elsewhere), Some(0))
        .map_or(true, |changed| changed.results != plain.results || changed.counters != counting.counters)
}

/// Each kind of sequence, if it left something else of the program's state than it found, would be noticed: by the kernel that keeps that in its
/// blocks. So the comparison of results can fail.
#[test]
fn clobbered_state_is_noticed() {
    let object = bytes("counting-asm.co");
    let states: [(&str, &[u32]); 6] = [
        // s_cmp_eq_u32 0, 0, and s_cmp_lg_u32 0, 0
        ("keeps_scc", &[0xbf06_8080]),
        ("keeps_scc", &[0xbf07_8080]),
        // s_mov_b64 exec, 1, and s_mov_b64 exec, -1
        ("keeps_exec", &[0xbefe_0181]),
        ("keeps_exec", &[0xbefe_01c1]),
        // s_mov_b64 vcc, exec
        ("keeps_vcc", &[0xbeea_017e]),
        // s_mov_b32 m0, 1
        ("keeps_m0", &[0xbefc_0081]),
    ];
    for (variant, scalar_first) in VARIANTS {
        for branch_limit in [40, 1 << 15] {
            let options = Options { variant, scalar_first, slots: 1, branch_limit };
            for (kernel, clobber) in states {
                let named =
                    format!("{variant:?}, scalar {scalar_first}, {branch_limit}: {kernel} {clobber:x?}");
                assert!(!is_noticed(&object, &options, kernel, &[S_NOP]), "{named}: nothing is changed");
                assert!(is_noticed(&object, &options, kernel, clobber), "{named}");
            }
        }
    }
}

/// The same of the registers that are the sequences' own: those that have to last from block to block. The others are free between blocks.
#[test]
fn clobbered_registers_of_the_sequences_are_noticed() {
    // s20 and s21 are the address of the counters, v8 and v9 the numbers 1 and 0.
    let all = [
        // s22 and s23 keep EXEC.
        (Variant::Waves, false, vec!["s20", "s21", "v8", "v9"], vec!["s22", "s23"]),
        // They are the number 1.
        (Variant::Waves, true, vec!["s20", "s21", "s22", "s23"], vec![]),
        (Variant::Lanes, false, vec!["s20", "s21", "v8", "v9"], vec!["s22", "s23"]),
        // They are a time, as v10 and v11 are, s24 and s25 keep EXEC, v12 is an offset; s26 is the block that the wave is in.
        (
            Variant::Time,
            false,
            vec!["s20", "s21", "s26", "v8", "v9"],
            vec!["s22", "s23", "s24", "s25", "v10", "v11", "v12"],
        ),
        // s24 and s25 are the number 1.
        (Variant::Time, true, vec!["s20", "s21", "s24", "s25", "s26"], vec!["s22", "s23"]),
    ];
    let object = kernel_of_registers(20, 8);
    for (variant, scalar_first, kept, free) in all {
        let options = Options { variant, scalar_first, ..Options::default() };
        let is_kept = |register: &str| {
            let number: u32 = register[1..].parse().unwrap();
            // s_mov_b32 or v_mov_b32, 8
            let clobber = match register.starts_with('s') {
                true => 0xbe80_0088 | number << 16,
                false => 0x7e00_0288 | number << 17,
            };
            is_noticed(&object, &options, "kernel", &[clobber])
        };
        let named = format!("{variant:?}, scalar {scalar_first}");
        assert!(!is_noticed(&object, &options, "kernel", &[S_NOP]), "{named}");
        for (registers, are_kept) in [(&kept, true), (&free, false)] {
            registers.iter().for_each(|one| assert_eq!(is_kept(one), are_kept, "{named}: {one}"));
        }
        // There are no more.
        let made = rewrite(&object, &options, &|_| true).unwrap();
        let names = kept.iter().chain(&free);
        let last = |kind| {
            names.clone().filter(|name| name.starts_with(kind)).map(|name| name[1..].parse().unwrap()).max()
        };
        let last: [Option<u32>; 2] = ['s', 'v'].map(last);
        let granules = [
            last[0].map_or(32, |last| (last + 1 + 6).next_multiple_of(16)),
            last[1].map_or(8, |last| (last + 1).next_multiple_of(4)),
        ];
        assert_eq!([made.kernels[0].registers.sgprs, made.kernels[0].registers.vgprs], granules, "{named}");
    }
}

/// s_waitcnt, and one that waits for nothing.
const WAIT: u32 = 0xbf8c_0000;
const NO_WAIT: u32 = 0xbf8c_cf7f;

/// Waits that are missing are noticed, since loads arrive as late as waits allow: those that are added for the clock, and the program's own.
#[test]
fn missing_waits_are_noticed() {
    let (mut added, mut own) = (0, 0);
    for (file, target) in OBJECTS {
        let object = bytes(file);
        let options = Options { variant: Variant::Time, scalar_first: true, ..Options::default() };
        let made = rewrite(&object, &options, &|_| true).unwrap();
        let functions = rpd_codeobject::functions(&object).unwrap();
        for kernel in &made.kernels {
            let plain = run(&object, &made, kernel, target, None).unwrap();
            let counted = run(&object, &made, kernel, target, Some(0)).unwrap();
            // Behind s_memtime, all of them: times become differences of what is in the register too early.
            let mut without = made.clone();
            for at in (object.len()..without.object.len() - 12).step_by(4) {
                if word(&without.object, at) & 0xffff_e03f == 0xc090_0000
                    && word(&without.object, at + 8) & 0xffff_0000 == WAIT
                {
                    without.object[at + 8..at + 12].copy_from_slice(&NO_WAIT.to_le_bytes());
                }
            }
            let ticks = |outcome: &Outcome| {
                let is_its = |block: &&RewrittenBlock| made.functions[block.function as usize] == kernel.name;
                let block = made.blocks[kernel.blocks.clone()].iter().find(is_its).unwrap();
                outcome.counters[block.counter as usize + 2]
                    .wrapping_sub(outcome.counters[block.counter as usize + 1])
            };
            let outcome = run(&object, &without, kernel, target, Some(0)).unwrap();
            assert!(outcome.results == plain.results);
            assert!(ticks(&counted) > 0 && ticks(&outcome) == 0, "{file} {}", kernel.name);
            added += 1;
            // Each wait of the kernel itself, one at a time. Some are for what nothing reads.
            let function = functions.iter().find(|function| function.name == kernel.name).unwrap();
            let place = function.code.as_ptr() as usize - object.as_ptr() as usize;
            let waits: Vec<usize> = (place..place + function.code.len() / 4 * 4)
                .step_by(4)
                .filter(|at| word(&object, *at) & 0xffff_0000 == WAIT)
                .collect();
            let is_noticed = |at: &usize| {
                let mut without = object.clone();
                without[*at..*at + 4].copy_from_slice(&NO_WAIT.to_le_bytes());
                let outcome = run(&without, &made, kernel, target, None);
                !outcome.is_ok_and(|outcome| outcome.results == plain.results)
            };
            let noticed = waits.iter().filter(|at| is_noticed(at)).count();
            assert!(noticed > 0 || waits.is_empty(), "{file} {}: none of {}", kernel.name, waits.len());
            own += noticed;
        }
    }
    println!("{added} kernels whose clock is read too early, {own} waits of their own");
    assert!(added > 30 && own > 100, "{added} {own}");
}

#[test]
fn counters_are_what_was_executed() {
    let (mut compared, mut by_lanes) = (0, 0);
    for (file, target) in OBJECTS {
        let object = bytes(file);
        let vectors = vector_instructions(&object);
        let mut plain_runs: HashMap<String, Outcome> = HashMap::new();
        for (variant, scalar_first) in VARIANTS {
            for branch_limit in [40, 100, 200, 1 << 15] {
                let options = Options { variant, scalar_first, slots: 2, branch_limit };
                let made = rewrite(&object, &options, &|_| true).unwrap();
                let refused: Vec<&str> = made.refused.iter().map(|(name, _)| name.as_str()).collect();
                let expected = REFUSED.iter().map(|(name, _)| *name).filter(|name| {
                    // Its counters may be scalar ones.
                    file.contains("asm") && (*name != "indexed" || variant == Variant::Lanes)
                });
                assert_eq!(sorted(refused), expected.collect::<Vec<_>>(), "{file} {variant:?}");
                for kernel in &made.kernels {
                    let named = format!("{file} {} {variant:?} {scalar_first} {branch_limit}", kernel.name);
                    assert_eq!(kernel.is_scalar, scalar_first || kernel.name == "indexed", "{named}");
                    let plain = plain_runs
                        .entry(kernel.name.clone())
                        .or_insert_with(|| run(&object, &made, kernel, target, None).unwrap());
                    let counted = run(&object, &made, kernel, target, Some(1))
                        .unwrap_or_else(|trap| panic!("{named}: {trap}"));
                    assert!(plain.results == counted.results, "{named}: results differ");
                    assert!(plain.results.iter().any(|byte| *byte != 0), "{named}: no results");
                    let of_original = executed(&made, &counted.counts);
                    for block in &made.blocks[kernel.blocks.clone()] {
                        let (waves, lanes) = of_original.get(&block.start).copied().unwrap_or_default();
                        let counter = block.counter as usize;
                        let place = format!("{named}: block {:#x}", block.start);
                        assert_eq!(counted.counters[counter], waves, "{place}");
                        if variant == Variant::Lanes {
                            assert_eq!(counted.counters[counter + 1], lanes, "{place}: lanes");
                            for (at, _) in vectors.range(block.start..block.end) {
                                let executed = of_original.get(at).copied().unwrap_or_default();
                                assert_eq!(executed, (waves, lanes), "{place}: lanes at {at:#x}");
                                by_lanes += u32::from(waves > 0);
                            }
                        }
                        // Called by an instruction that writes the pair which it reads.
                        if made.functions[block.function as usize] != "multiplies" {
                            let before = plain
                                .counts
                                .instructions
                                .get(&(ORIGINAL + block.start))
                                .copied()
                                .unwrap_or_default();
                            assert_eq!(
                                (waves, lanes),
                                (before.executions, before.lanes),
                                "{place}: the original"
                            );
                        }
                        compared += usize::from(waves > 0);
                    }
                }
            }
        }
    }
    assert!(compared > 3000, "{compared} blocks executed");
    assert!(by_lanes > 3000, "{by_lanes} vector instructions of them");
}

/// A descriptor of a slot.
fn descriptor(object: &[u8], address: u64) -> [u8; 64] {
    let elf = ElfFile64::<LittleEndian>::parse(object).expect("an ELF file");
    let bytes = elf.segments().find_map(|load| load.data_range(address, 64).ok()?);
    bytes.expect("a segment").try_into().expect("64 bytes")
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// But for what counts, the code is the original's, with branches that lead to the same places; LLVM knows each instruction that is new.
#[test]
fn code_is_the_originals_but_for_what_counts() {
    for (file, processor) in [
        ("counting-gfx900-o2.co", "gfx900"),
        ("counting-gfx906-o2.co", "gfx906"),
        ("counting-gfx906-o0.co", "gfx906"),
        ("counting-asm.co", "gfx906"),
        ("gfx908-v4.co", "gfx908"),
        ("counting-gfx90a-o2.co", "gfx90a"),
        ("counting-gfx942-o2.co", "gfx942"),
    ] {
        let object = bytes(file);
        let mut found = Faithful::default();
        for (variant, scalar_first) in VARIANTS {
            for branch_limit in [40, 1 << 15] {
                let options = Options { variant, scalar_first, slots: 1, branch_limit };
                found.add(&object, &rewrite(&object, &options, &|_| true).unwrap());
            }
        }
        let new = llvm::knows(processor, &found.new);
        let Faithful { copies, branches, put_in, .. } = found;
        println!("{file}: {copies} copies, {branches} branches, {put_in} put in, {new} different ones");
        assert!(copies > 500 && put_in > copies / 10 && new > 50);
    }
}

/// Where vector registers and accumulation registers share a file, those for counting move the others.
#[test]
fn accumulation_registers_move() {
    for (file, processor) in [("counting-gfx90a-o2.co", "gfx90a"), ("counting-gfx942-o2.co", "gfx942")] {
        let object = bytes(file);
        for variant in [Variant::Waves, Variant::Lanes, Variant::Time] {
            let options = Options { variant, scalar_first: true, slots: 2, ..Options::default() };
            let made = rewrite(&object, &options, &|_| true).unwrap();
            assert_eq!(made.refused, [], "{file}");
            assert!(made.kernels.len() >= 9, "{processor}");
            for kernel in &made.kernels {
                assert!(!kernel.is_scalar, "nobody has seen {processor} add through the scalar unit");
                let before = descriptor(&object, kernel.original_descriptor);
                let after = descriptor(&made.object, kernel.slots[1].descriptor);
                // Total, and where accumulation registers begin.
                let registers =
                    |bytes: &[u8]| ((word(bytes, 48) & 0x3f) * 8 + 8, (word(bytes, 44) & 0x3f) * 4 + 4);
                let ((total, begin), (more, later)) = (registers(&before), registers(&after));
                assert!(later >= begin && more >= later && more >= total, "{}", kernel.name);
                assert!(more - later >= total.saturating_sub(begin) / 8 * 8, "{}", kernel.name);
                assert_eq!(kernel.registers.vgprs, more);
                assert_eq!((word(&before, 44) ^ word(&after, 44)) & !0x3f, 0);
            }
            // Numbers of 64 bits are in even registers: the pair of each addition.
            let begins: Vec<u64> = made.map.stretches().map(|(new, ..)| new).collect();
            let elf = ElfFile64::<LittleEndian>::parse(&*made.object).expect("an ELF file");
            let load = elf.segments().last().expect("a segment");
            let code = load.data().expect("bytes");
            let first = (begins[0] - load.address()) as usize;
            let mut additions = 0;
            for at in (first..code.len() - 4).step_by(4) {
                if word(code, at) & 0xffff_f000 == 0xdd88_8000 {
                    assert_eq!(word(code, at + 4) >> 8 & 1, 0, "{file} {at:#x}");
                    additions += 1;
                }
            }
            assert!(additions >= made.blocks.len(), "{additions}");
        }
    }
}

/// Kernels whose arguments firmware may load into registers are entered at one of two places, 256 bytes apart.
#[test]
fn preloaded_arguments_have_an_entry_of_their_own() {
    let object = bytes("counting-gfx942-o2.co");
    let made = rewrite(&object, &Options { slots: 3, ..Options::default() }, &|_| true).unwrap();
    let elf = ElfFile64::<LittleEndian>::parse(&*made.object).expect("an ELF file");
    let load = elf.segments().last().expect("a segment");
    let code = load.data().expect("bytes");
    let at = |address: u64| word(code, (address - load.address()) as usize);
    for kernel in &made.kernels {
        let before = descriptor(&object, kernel.original_descriptor);
        assert_ne!(before[58] & 0x7f, 0, "{}: made with -amdgpu-kernarg-preload-count", kernel.name);
        let original = kernel.original_descriptor.wrapping_add(u64::from(word(&before, 16)));
        for slot in &kernel.slots {
            let entry =
                slot.descriptor.wrapping_add(u64::from(word(&descriptor(&made.object, slot.descriptor), 16)));
            assert_eq!(entry % 256, 0);
            for second in [0, 256] {
                // Both read the slot's cell, and end with a branch.
                let begin = entry + second;
                assert_eq!(at(begin) & 0xff80_ff00, 0xbe80_1c00, "s_getpc_b64");
                let distance = i64::from(at(begin + 8).cast_signed());
                assert_eq!((begin + 4).wrapping_add_signed(distance), slot.cell);
                let branch =
                    (begin..begin + 256).step_by(4).find(|here| at(*here) >> 16 == 0xbf82).expect("a branch");
                let target = branch + 4 + u64::from(at(branch) & 0xffff) * 4;
                assert_eq!(made.map.original(target), Some(original + second), "{}", kernel.name);
            }
        }
    }
    // Not where no instruction is.
    let mut damaged = object.clone();
    let symbol = rpd_codeobject::functions(&object).unwrap();
    let straight = symbol.iter().find(|function| function.name == "straight").unwrap();
    let place = straight.code.as_ptr() as usize - object.as_ptr() as usize;
    // An instruction of two words over the second entry.
    damaged[place + 252..place + 260].copy_from_slice(&[0xff, 0, 0x80, 0xbe, 0, 0, 0, 0]);
    let made = rewrite(&damaged, &Options::default(), &|name| name == "straight").unwrap();
    assert!(
        made.refused[0].1.to_string().contains("no instruction is at its second entry"),
        "{:?}",
        made.refused
    );
}

/// docs/architecture.md has what counting costs: instructions and bytes, which are the same on each machine, as they are measured here.
#[test]
fn costs() {
    let architecture = include_str!("../../docs/architecture.md");
    for (variant, scalar_first) in VARIANTS {
        let costs = costs::of(variant, scalar_first, 1);
        for kernel in &costs.kernels {
            assert!(kernel.counting.0 > kernel.plain.0, "{variant:?}: {}", kernel.name);
        }
        let row = costs.row();
        let written = architecture.lines().find(|line| line.starts_with(&row.begin)).expect(&row.begin);
        assert!(written.contains(&row.executed) && written.ends_with(&row.bytes), "{row:?}: {written}");
    }
}

/// The clock ticks once each time it is read, so a wave that is alone stays in a block for one step each time.
#[test]
fn times_of_one_wave_are_exact() {
    let mut compared = 0;
    for (file, target) in OBJECTS {
        let object = bytes(file);
        for scalar_first in [false, true] {
            let options = Options { variant: Variant::Time, scalar_first, ..Options::default() };
            let made = rewrite(&object, &options, &|_| true).unwrap();
            for kernel in &made.kernels {
                let named = format!("{file} {} {scalar_first}", kernel.name);
                let alone =
                    run_on(Machine::new(target), (1, 64), &object, &made, kernel, Some(0)).expect(&named);
                for block in &made.blocks[kernel.blocks.clone()] {
                    let of_block = |place: usize| alone.counters[block.counter as usize + place];
                    let ticks = of_block(2).wrapping_sub(of_block(1));
                    assert_eq!(ticks, machine::TICK * of_block(0), "{named}: block {:#x}", block.start);
                    compared += usize::from(ticks > 0);
                }
            }
        }
    }
    assert!(compared > 400, "{compared} blocks");
}
