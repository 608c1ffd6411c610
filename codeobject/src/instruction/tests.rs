use super::*;

fn decoded(first: u32) -> Instruction {
    Instruction::decode(first, Some(0x1234)).expect("an instruction")
}

#[test]
fn lengths_follow_from_the_first_word() {
    let long = [
        0xbe84_00ff, // s_mov_b32 s4, literal
        0x8004_ff04, // s_add_u32 s4, s4, literal
        0x8004_04ff,
        0xbf06_ff04, // s_cmp_eq_u32 s4, literal
        0xba00_0001, // s_setreg_imm32_b32
        0x2e00_0300, // v_madmk_f32
        0x7e00_02f9, // v_mov_b32 sdwa
        0x7e00_02fa, // v_mov_b32 dpp
        0x7e00_02ff, // v_mov_b32 literal
        0xc006_0100, // s_load_dwordx2
        0xd100_0000, // v_cndmask_b32_e64
        0xd380_0000, // v_pk_mad_i16
        0xd800_0000, // ds_add_u32
        0xdc50_8000, // global_load_dword
        0xe050_0000, // buffer_load_dword
    ];
    for first in long {
        let instruction = decoded(first);
        assert_eq!((instruction.length, instruction.words[1]), (8, 0x1234), "{first:#x}");
        assert_eq!(Instruction::decode(first, None), None, "{first:#x}: its second word is missing");
    }
    // s_mov_b32 s4, s5; s_branch; v_mov_b32 v0, v1; v_add_u32 v0, v0, v1; v_cmp_eq_u32; s_movk_i32
    for first in [0xbe84_0005, 0xbf82_0001, 0x7e00_0301, 0x6800_0300, 0x7d94_0300, 0xb004_0001] {
        assert_eq!(Instruction::decode(first, None).expect("one word").length, 4, "{first:#x}");
    }
    // No format; SOPP, SOP1 and SOP2 opcodes behind the last.
    for first in [0xfc00_0000, 0xffff_ffff, 0xbf9f_0000, 0xbe84_3805, 0x9a84_0505] {
        assert_eq!(Instruction::decode(first, Some(0)), None, "{first:#x}");
    }
}

#[test]
fn control_and_class() {
    use InstructionClass::{Branch, Other, Salu};
    for (first, control, class) in [
        (0xbf82_fffe, Control::Branch(-2), Branch),
        (0xbf85_0007, Control::Conditional(7), Branch),
        (0xbe80_1d1e, Control::Jump(30), Branch),
        (0xbe9e_1e04, Control::Call { target: 4 }, Branch),
        (0xbf81_0000, Control::End, Other),
        (0xbf8c_0070, Control::Next, Other),
        (0xbe84_1c00, Control::Next, Salu),
        (0xbf97_0001, Control::Unfollowed("s_cbranch_cdbg"), Branch),
        (0xbf10_0001, Control::Unfollowed("s_setvskip"), Branch),
        // s_setreg_b32 of MODE: rounding (4 bits from 0) is harmless, bits 27 and 28 are not.
        (0xb904_1801, Control::Next, Salu),
        (0xb904_06c1, Control::Unfollowed("s_setreg of MODE"), Branch),
        (0xb904_f801, Control::Unfollowed("s_setreg of MODE"), Branch),
    ] {
        let instruction = decoded(first);
        assert_eq!((instruction.control(), instruction.class()), (control, class), "{first:#x}");
    }
    assert!(InstructionClass::ALL.iter().enumerate().all(|(place, class)| class.index() == place));
    // v_mfma_f32_32x32x1f32, v_accvgpr_read
    assert_eq!(decoded(0xd3c0_0000).class(), InstructionClass::Mfma);
    assert_eq!(decoded(0xd3d8_0000).class(), InstructionClass::Valu);
}

#[test]
fn registers_and_their_widths() {
    let registers = |first, second| {
        let found = Instruction::decode(first, Some(second)).expect("an instruction").registers();
        (found.scalar, found.vector)
    };
    // s_mov_b64 s[4:5], s[8:9]; s_load_dwordx16 s[16:31], s[2:3]; s_mov_b64 exec, vcc
    assert_eq!(registers(0xbe84_0108, 0), (10, 0));
    assert_eq!(registers(0xc012_0401, 0), (32, 0));
    assert_eq!(registers(0xbefe_016a, 0), (0, 0));
    // global_load_dwordx4 v[4:7], v[1:2], off; the same with s[6:7] as its base
    assert_eq!(registers(0xdc5c_8000, 0x047f_0001), (0, 8));
    assert_eq!(registers(0xdc5c_8000, 0x0406_0001), (8, 8));
    // v_add_f64 v[2:3], v[4:5], v[6:7], whose unused field names s0; v_readfirstlane_b32 s9, v2
    assert_eq!(registers(0xd280_0002, 0x0002_0d04), (2, 8));
    assert_eq!(registers(0x7e12_0502, 0), (10, 3));
    // s_movrels_b32, s_set_gpr_idx_on: the numbers do not tell.
    assert!(decoded(0xbe84_2a05).registers().is_scalar_open);
    assert!(decoded(0xbf11_0104).registers().is_vector_open);
    // v_cmp_lt_u32_e64 s[10:11], v1, v2 writes a pair; a load as many as it loads; an addition of vectors none.
    assert_eq!(decoded(0xd0c9_000a).scalar_writes(), ScalarWrites::Range(10, 2));
    assert_eq!(decoded(0xc00a_0100).scalar_writes(), ScalarWrites::Range(4, 4));
    assert_eq!(decoded(0x6800_0300).scalar_writes(), ScalarWrites::None);
}
