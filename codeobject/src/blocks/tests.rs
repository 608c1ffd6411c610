use super::*;

const NOP: u32 = 0xbf80_0000;
const END: u32 = 0xbf81_0000;

/// The blocks of a kernel or function at 0x1000, by their first and last addresses.
fn of(words: &[u32], is_kernel: bool) -> Result<Vec<(u64, u64)>, Obstacle> {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let descriptor = is_kernel.then(|| crate::descriptor::KernelDescriptor::decode(&[0; 64]));
    let found = blocks(&Function { name: "f", address: 0x1000, code: &code, descriptor })?;
    Ok(found
        .blocks
        .iter()
        .map(|block| (found.steps[block.start].address, found.steps[block.end - 1].address))
        .collect())
}

#[test]
fn blocks_and_what_nothing_leads_to() {
    // A loop; padding behind the end, and in front of what the branch leads to.
    let words = [NOP, 0xbf85_fffe, 0xbf82_0002, 0xffff_ffff, NOP, END, 0];
    assert_eq!(of(&words, true), Ok(vec![(0x1000, 0x1004), (0x1008, 0x1008), (0x1014, 0x1014)]));
    assert_eq!(of(&[END], true), Ok(vec![(0x1000, 0x1000)]));
    // A call ends a block; a function may return.
    let call = [0xbe9e_1e04, NOP, 0xbe80_1d1e];
    assert_eq!(of(&call, false), Ok(vec![(0x1000, 0x1000), (0x1004, 0x1008)]));
}

#[test]
fn obstacles() {
    let word = 0xffff_ffff;
    assert_eq!(of(&[NOP, word, END], true), Err(Obstacle::UnknownInstruction { address: 0x1004, word }));
    assert_eq!(of(&[NOP], true), Err(Obstacle::RunsOut { address: 0x1004 }));
    assert_eq!(of(&[], true), Err(Obstacle::RunsOut { address: 0x1000 }));
    let trap = 0xbf92_0002;
    assert_eq!(of(&[NOP, trap], true), Ok(vec![(0x1000, 0x1004)]));
    // s_swappc_b64: a call of a function that does not return.
    assert_eq!(of(&[NOP, 0xbe9e_1e04], true), Ok(vec![(0x1000, 0x1004)]));
    let stray = |target| Err(Obstacle::StrayBranch { address: 0x1000, target });
    assert_eq!(of(&[0xbf82_0008, END], true), stray(0x1024));
    assert_eq!(of(&[0xbf82_fff8, END], true), stray(0xfe4));
    // Into a literal.
    assert_eq!(of(&[0xbf84_0001, 0xbe84_00ff, END, END], true), stray(0x1008));
    assert_eq!(of(&[0xbe80_1d04], true), Err(Obstacle::UnknownTarget { address: 0x1000 }));
    let unfollowed = Obstacle::Unfollowed { name: "s_call_b64", address: 0x1000 };
    assert_eq!(of(&[0xba9e_0001, END], true), Err(unfollowed));
    assert_eq!(unfollowed.to_string(), "s_call_b64 at 0x1000 is not followed");
}

/// s_getpc_b64 s[4:5], and what is added to it.
#[test]
fn an_address_is_followed_into_other_blocks() {
    let (getpc, add, addc, jump) = (0xbe84_1c00, 0x8004_ff04, 0x8205_8005, 0xbe80_1d04);
    // Over a block's start, to the end.
    let words = [getpc, add, 0x18, addc, 0xbf84_0000, NOP, jump, END];
    let expected = vec![(0x1000, 0x1010), (0x1014, 0x1018), (0x101c, 0x101c)];
    assert_eq!(of(&words, true), Ok(expected));
    // Not where another edge leads in on which the register holds something else.
    let words = [0xbf84_0004, getpc, add, 0x14, addc, jump, END];
    assert_eq!(of(&words, true), Err(Obstacle::UnknownTarget { address: 0x1014 }));
    // Nor where something unknown was added, or the register was written: s_load_dword s5, s[0:1].
    let words = [getpc, 0x8004_0904, addc, jump, END];
    assert_eq!(of(&words, true), Err(Obstacle::UnknownTarget { address: 0x100c }));
    let words = [getpc, add, 0x18, addc, 0xc002_0140, 0, jump, END];
    assert_eq!(of(&words, true), Err(Obstacle::UnknownTarget { address: 0x1018 }));
}
