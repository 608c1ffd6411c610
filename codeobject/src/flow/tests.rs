use super::*;

/// Instructions of four bytes from 0x100 on; a number behind the name is the distance of a branch.
fn steps<'a>(lines: &[&'a str]) -> Vec<FlowStep<'a>> {
    let step = |(index, text): (usize, &&'a str)| {
        let distance = text.rsplit(' ').next().and_then(|word| word.parse::<i16>().ok());
        FlowStep {
            address: 0x100 + 4 * index as u64,
            length: 4,
            word: 0xbf80_0000 | u32::from(distance.unwrap_or(0) as u16),
            text,
        }
    };
    lines.iter().enumerate().map(step).collect()
}

/// The blocks as text: first and last instruction, and the edges.
fn described(lines: &[&str]) -> Vec<String> {
    let edge = |edge: &FlowEdge| match edge.to {
        FlowTarget::Block(block) => format!("{} {block}", edge.kind.name()),
        FlowTarget::Address(address) => format!("{} {address:#x}", edge.kind.name()),
        FlowTarget::Unknown => edge.kind.name().to_string(),
    };
    let described = |block: &FlowBlock| {
        let edges: Vec<String> = block.edges.iter().map(edge).collect();
        format!("{}..{}: {}", block.steps.start, block.steps.end, edges.join(", "))
    };
    blocks(&steps(lines)).iter().map(described).collect()
}

#[test]
fn a_loop_with_an_exit() {
    let lines = ["s_mov_b32", "s_add_u32", "s_cbranch_scc1 -2", "s_cbranch_execz 1", "s_nop", "s_endpgm"];
    let expected = [
        "0..1: fallthrough 1",
        "1..3: taken 1, not-taken 2",
        "3..4: taken 4, not-taken 3",
        "4..5: fallthrough 4",
        "5..6: end",
    ];
    assert_eq!(described(&lines), expected);
}

#[test]
fn every_kind_of_branch() {
    let expected = |edges: &str| vec![format!("0..1: {edges}"), "1..2: end".to_string()];
    for (name, edges) in [
        ("s_branch 0", "branch 1"),
        ("s_cbranch_scc0 0", "taken 1, not-taken 1"),
        ("s_cbranch_vccnz 0", "taken 1, not-taken 1"),
        ("s_cbranch_cdbgsys_and_user 0", "taken 1, not-taken 1"),
        ("s_cbranch_i_fork s[0:1], 0", "taken 1, not-taken 1"),
        ("s_cbranch_g_fork s[0:1], s[2:3]", "indirect, not-taken 1"),
        ("s_cbranch_join s0", "indirect, not-taken 1"),
        ("s_subvector_loop_begin s0, 0", "taken 1, not-taken 1"),
        ("s_subvector_loop_end s0, 0", "taken 1, not-taken 1"),
        ("s_call_b64 s[30:31], 0", "call 1, return 1"),
        ("s_swappc_b64 s[30:31], s[4:5]", "indirect-call, return 1"),
        ("s_setpc_b64 s[30:31]", "indirect"),
        ("s_rfe_b64 s[0:1]", "indirect"),
        ("s_rfe_restore_b64 s[0:1], s2", "indirect"),
        ("s_endpgm", "end"),
        ("s_endpgm_saved", "end"),
        ("s_endpgm_ordered_ps_done", "end"),
    ] {
        assert_eq!(described(&[name, "s_endpgm"]), expected(edges), "{name}");
    }
    // What only looks alike does not end a block.
    for name in ["s_nop 0", "s_trap 2", "s_code_end", "s_barrier", "s_sethalt 1", ".long 0xbf810000"] {
        assert_eq!(described(&[name, "s_endpgm"]), ["0..2: end"], "{name}");
    }
}

#[test]
fn edges_out_of_the_function() {
    assert_eq!(described(&["s_branch 5"]), ["0..1: branch 0x118"]);
    assert_eq!(described(&["s_cbranch_scc0 -9"]), ["0..1: taken 0xe0, runs-out 0x104"]);
    assert_eq!(described(&["s_nop"]), ["0..1: runs-out 0x104"]);
    assert_eq!(described(&[]), Vec::<String>::new());
}

#[test]
fn into_the_middle_of_an_instruction() {
    let mut steps = steps(&["s_branch 1", "s_mov_b32", "s_endpgm"]);
    steps[1].length = 8;
    steps[2].address += 4;
    let found = blocks(&steps);
    assert_eq!(found[0].edges, [FlowEdge { kind: EdgeKind::Branch, to: FlowTarget::Address(0x108) }]);
    assert_eq!(found.len(), 2);
}

#[test]
fn addresses_at_the_end_of_memory() {
    let mut steps = steps(&["s_branch -1", "s_branch 32767"]);
    steps[0].address = u64::MAX - 7;
    steps[1].address = u64::MAX - 3;
    assert_eq!(blocks(&steps).len(), 2);
}

/// Instructions of LLVM's with their lengths: eight bytes with a constant, four without.
fn assembled<'a>(lines: &[(u32, &'a str)]) -> Vec<FlowStep<'a>> {
    let mut address = 0x1000;
    let mut step = |&(length, text): &(u32, &'a str)| {
        let distance = text.rsplit(' ').next().and_then(|word| word.parse::<i16>().ok()).unwrap_or(0);
        address += u64::from(length);
        FlowStep { address: address - u64::from(length), length, word: u32::from(distance as u16), text }
    };
    lines.iter().map(&mut step).collect()
}

#[test]
fn a_far_branch_of_tensile() {
    // Of rocBLAS 4.4.1, shortened: the distance of a branch that is too far, in front of it and behind it.
    let forward = assembled(&[
        (4, "s_getpc_b64 s[38:39]"),
        (8, "s_add_i32 s40, 0x14, 4"),
        (4, "s_add_u32 s38, s38, s40"),
        (4, "s_addc_u32 s39, s39, 0"),
        (4, "s_setpc_b64 s[38:39]"),
        (4, "s_nop 0"),
        (4, "s_endpgm"),
    ]);
    let found = blocks(&forward);
    assert_eq!(found[0].edges, [FlowEdge { kind: EdgeKind::Branch, to: FlowTarget::Block(2) }]);
    assert_eq!(found[2].steps, 6..7);
    let either = assembled(&[
        (4, "s_nop 0"),
        (4, "s_getpc_b64 s[6:7]"),
        (8, "s_add_i32 s8, 0xfffffff4, 4"),
        (4, "s_cmp_ge_i32 s8, 0"),
        (4, "s_cbranch_scc1 4"),
        (4, "s_abs_i32 s8, s8"),
        (4, "s_sub_u32 s6, s6, s8"),
        (4, "s_subb_u32 s7, s7, 0"),
        (4, "s_setpc_b64 s[6:7]"),
        (4, "s_add_u32 s6, s6, s8"),
        (4, "s_addc_u32 s7, s7, 0"),
        (4, "s_setpc_b64 s[6:7]"),
    ]);
    let found = blocks(&either);
    // Known from the block before; what is behind it is reached from there alone as well.
    assert_eq!(found[1].edges, [FlowEdge { kind: EdgeKind::Branch, to: FlowTarget::Block(0) }]);
    assert_eq!(found[2].edges[0].kind, EdgeKind::Branch);
}

#[test]
fn a_call_by_the_distance() {
    let lines = [
        (4, "s_getpc_b64 s[4:5]"),
        (8, "s_add_u32 s4, s4, 0xfffff000"),
        (8, "s_addc_u32 s5, s5, 0xffffffff"),
        (4, "s_swappc_b64 s[30:31], s[4:5]"),
        (4, "s_endpgm"),
    ];
    let call = FlowEdge { kind: EdgeKind::Call, to: FlowTarget::Address(4) };
    assert_eq!(blocks(&assembled(&lines))[0].edges[0], call);
    // gfx12: the upper half is sign-extended before.
    let mut newer = vec![lines[0], (4, "s_sext_i32_i16 s5, s5")];
    newer.extend([(8, "s_add_co_u32 s4, s4, 0xffffeffc"), (8, "s_add_co_ci_u32 s5, s5, 0xffffffff")]);
    newer.extend([lines[3], lines[4]]);
    assert_eq!(
        blocks(&assembled(&newer))[0].edges[0],
        FlowEdge { kind: EdgeKind::Call, to: FlowTarget::Address(0) }
    );
}

#[test]
fn what_is_not_known_stays_so() {
    let call = [(4, "s_swappc_b64 s[30:31], s[4:5]"), (4, "s_endpgm")];
    let indirect = |between: &[(u32, &'static str)]| {
        let address = [(4, "s_getpc_b64 s[4:5]"), (8, "s_add_u32 s4, s4, 0x100")];
        let lines = [&address, between, &call].concat();
        let steps = assembled(&lines);
        let found = blocks(&steps);
        let block =
            found.iter().find(|block| block.edges.iter().any(|edge| edge.kind == EdgeKind::Return)).unwrap();
        block.edges[0].kind == EdgeKind::IndirectCall
    };
    assert!(!indirect(&[]));
    assert!(!indirect(&[(4, "v_mov_b32_e32 v0, 0"), (4, "s_waitcnt lgkmcnt(0)"), (4, "s_mov_b32 s6, s4")]));
    for between in [
        "s_load_dwordx2 s[4:5], s[0:1], 0x0",
        "s_load_dwordx8 s[0:7], s[8:9], 0x0",
        "s_add_u32 s4, s4, s6",
        "s_subb_u32 s5, s6, 0",
        "v_readfirstlane_b32 s5, v0",
        "s_mul_i32 s4, s4, 3",
        "s_movreld_b32 s0, s1",
        "s_and_b64 s[4:5], s[4:5], exec",
        "s_mov_b32 s4, vcc_lo",
    ] {
        assert!(indirect(&[(4, between)]), "{between}");
    }
    // Something else leads there.
    let joined = assembled(&[
        (4, "s_getpc_b64 s[4:5]"),
        (4, "s_nop 0"),
        (4, "s_swappc_b64 s[30:31], s[4:5]"),
        (4, "s_cbranch_scc0 -3"),
        (4, "s_endpgm"),
    ]);
    assert!(blocks(&joined).iter().any(|block| block.edges[0].kind == EdgeKind::IndirectCall));
}
