// Kernels that notice when SCC, EXEC, VCC or M0 is not what it was, and branches as assemblers write them: see make.sh and ../counting.rs.
// All have the same arguments: results, numbers.
.amdgcn_target "amdgcn-amd-amdhsa--gfx906"

// s[4:5] results, s[6:7] numbers, v1 the item's offset, v2 its number, s9 the number of the first item; v3 is the result.
.macro begin name
.text
.globl \name
.p2align 8
.type \name,@function
\name:
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    s_lshl_b32 s8, s2, 7
    v_add_u32_e32 v1, s8, v0
    v_lshlrev_b32_e32 v1, 2, v1
    s_waitcnt lgkmcnt(0)
    global_load_dword v2, v1, s[6:7]
    s_waitcnt vmcnt(0)
    v_readfirstlane_b32 s9, v2
.endm

.macro finish name, scalars=26
    global_store_dword v1, v3, s[4:5]
    s_endpgm
.Lend_\name:
.size \name, .Lend_\name-\name
.rodata
.p2align 6
.amdhsa_kernel \name
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_next_free_vgpr 12
    .amdhsa_next_free_sgpr \scalars
.end_amdhsa_kernel
.endm

begin keeps_scc
    s_mov_b32 s10, 0
    s_mov_b32 s11, 0
.Lloop:
    s_bitcmp1_b32 s9, 0
    s_cbranch_execz .Lnever
    s_cselect_b32 s12, 3, 5             // in the next block
    s_add_u32 s10, s10, s12
.Lnever:
    s_lshr_b32 s9, s9, 1
    s_add_u32 s11, s11, 1
    s_cmp_lt_u32 s11, 20
    s_cbranch_scc1 .Lloop
    s_mul_i32 s10, s10, 10
    // Over branches that are taken, and that may be long.
    s_mov_b64 vcc, 0
    s_cmp_eq_u32 s11, 20
    s_cbranch_vccz .Ltaken
    s_mov_b32 s10, 0
.Ltaken:
    s_cselect_b32 s12, 1, 0
    s_add_u32 s10, s10, s12
    s_cmp_eq_u32 s11, 21
    s_branch .Lbranch
.Lbranch:
    s_cselect_b32 s12, 2, 4
    s_add_u32 s10, s10, s12
    // A carry.
    s_add_u32 s13, s10, -1
    s_cbranch_execz .Lcarry
    s_addc_u32 s10, s10, 0
.Lcarry:
    // An address that the code works out of its own, where SCC is in use.
    s_cmp_eq_u32 s11, 20
    s_getpc_b64 s[14:15]
    s_cselect_b32 s12, 7, 9
    s_getpc_b64 s[16:17]
    s_sub_u32 s16, s16, s14
    s_subb_u32 s17, s17, s15
    s_add_u32 s10, s10, s12
    s_add_u32 s10, s10, s16
    s_add_u32 s10, s10, s17
    v_mov_b32_e32 v3, s10
finish keeps_scc

begin keeps_exec
    v_mov_b32_e32 v3, 5
    v_cmp_gt_u32_e32 vcc, 37, v0
    s_and_saveexec_b64 s[10:11], vcc
    s_branch .Lsome
.Lsome:
    v_add_u32_e32 v3, v3, v2
    s_mov_b64 s[12:13], exec
    s_mov_b64 exec, 0
    s_branch .Lnone
.Lnone:
    v_mov_b32_e32 v3, 99
    s_mov_b64 exec, s[12:13]
    s_xor_b64 exec, exec, s[10:11]
    s_branch .Lothers
.Lothers:
    v_add_u32_e32 v3, 7, v3
    // All lanes, also those without a work-item.
    s_mov_b64 exec, -1
    s_branch .Lall
.Lall:
    v_mov_b32_e32 v4, 1
    s_branch .Lmore
.Lmore:
    v_mov_b32_e32 v5, s2
    v_cmp_eq_u32_e32 vcc, v4, v4
    s_bcnt1_i32_b64 s14, vcc
    s_mov_b64 exec, s[10:11]
    v_add_u32_e32 v3, s14, v3
finish keeps_exec

begin keeps_vcc
    v_cmp_gt_u32_e32 vcc, 29, v0
    s_branch .Lmask
.Lmask:
    v_mov_b32_e32 v4, 3
    v_cndmask_b32_e32 v3, v4, v2, vcc
    s_mov_b64 vcc, 0x5555
    s_cbranch_vccz .Lzero
    v_addc_co_u32_e32 v3, vcc, 0, v3, vcc
.Lzero:
    v_mov_b32_e32 v4, vcc_lo
    v_add_u32_e32 v3, v3, v4
finish keeps_vcc

begin keeps_m0
    s_movk_i32 s16, 0x11
    s_movk_i32 s17, 0x22
    s_movk_i32 s18, 0x33
    s_movk_i32 s19, 0x44
    s_and_b32 s10, s9, 1
    s_add_u32 m0, s10, 2
    s_branch .Lrelative
.Lrelative:
    s_movrels_b32 s11, s16
    s_mov_b32 s12, m0
    s_lshl_b32 s12, s12, 8
    s_or_b32 s11, s11, s12
    v_mov_b32_e32 v3, s11
finish keeps_m0

begin jumps
    v_mov_b32_e32 v3, v2
    s_mov_b32 s24, 0
    // As compilers write it.
    s_getpc_b64 s[20:21]
.Lfrom1:
    s_add_u32 s20, s20, .Lto1-.Lfrom1
    s_addc_u32 s21, s21, 0
    s_setpc_b64 s[20:21]
    .fill 40, 4, 0xbf800000
    s_endpgm
    .long 0xffffffff
.Lback:
    v_add_u32_e32 v3, 3, v3
    s_add_u32 s24, s24, 1
    s_cmp_gt_u32 s24, 2
    s_cbranch_scc1 .Lout
.Lto1:
    v_add_u32_e32 v3, v3, v3
    // As Tensile writes it, forward.
    s_getpc_b64 s[20:21]
.Lfrom2:
    s_add_i32 s22, .Lto2-.Lfrom2-4, 4
    s_add_u32 s20, s20, s22
    s_addc_u32 s21, s21, 0
    s_setpc_b64 s[20:21]
    .fill 30, 4, 0xbf800000
.Lto2:
    v_add_u32_e32 v3, 1, v3
    // And back.
    s_getpc_b64 s[20:21]
.Lfrom3:
    s_add_i32 s22, .Lback-.Lfrom3-4, 4
    s_abs_i32 s22, s22
    s_sub_u32 s20, s20, s22
    s_subb_u32 s21, s21, 0
    s_setpc_b64 s[20:21]
.Lout:
    s_nop 0
finish jumps

// Code that is counted, but for the last kernels.
begin jumps_anywhere
    v_mov_b32_e32 v3, v2
    s_getpc_b64 s[20:21]
.Lfrom4:
    s_and_b32 s22, s9, 4
    s_add_u32 s20, s20, s22
    s_addc_u32 s21, s21, 0
    s_setpc_b64 s[20:21]
finish jumps_anywhere

begin unknown
    v_mov_b32_e32 v3, v2
    .long 0xfc000000
finish unknown

begin forks
    s_cbranch_g_fork s[10:11], s[12:13]
finish forks

begin full
    v_mov_b32_e32 v3, v2
    s_mov_b32 s100, 0
finish full

begin indexed
    v_mov_b32_e32 v3, v2
    s_and_b32 s9, s9, 1
    s_set_gpr_idx_on s9, gpr_idx(SRC0)
    s_cbranch_execz .Lindexed
    v_mov_b32_e32 v3, v2
.Lindexed:
    s_set_gpr_idx_off
finish indexed

// Functions that only data name: called last by another function, and by an instruction that writes the pair which it reads, which runs
// the function as it is.
.macro function name
.text
.p2align 2
.type \name,@function
\name:
.endm

.macro address pair_low, pair_high, symbol
    s_getpc_b64 s[\pair_low:\pair_high]
    s_add_u32 s\pair_low, s\pair_low, \symbol@rel32@lo+4
    s_addc_u32 s\pair_high, s\pair_high, \symbol@rel32@hi+12
.endm

function adds
    v_add_u32_e32 v3, v3, v2
    s_setpc_b64 s[30:31]
.size adds, .-adds

function multiplies
    v_mul_u32_u24_e32 v3, v3, v2
    s_setpc_b64 s[30:31]
.size multiplies, .-multiplies

function passes_on
    v_mov_b32_e32 v3, 11
    s_load_dwordx2 s[20:21], s[22:23], 0x0
    s_waitcnt lgkmcnt(0)
    s_setpc_b64 s[20:21]
.size passes_on, .-passes_on

.section .data.rel.ro,"aw"
.p2align 3
pointers:
    .quad adds
    .quad multiplies

begin calls_last
    address 22, 23, pointers
    address 18, 19, passes_on
    s_swappc_b64 s[30:31], s[18:19]
finish calls_last, 32

begin hides_a_call
    v_mov_b32_e32 v3, 13
    address 22, 23, pointers
    s_load_dwordx2 s[30:31], s[22:23], 0x8
    s_waitcnt lgkmcnt(0)
    s_swappc_b64 s[30:31], s[30:31]
finish hides_a_call, 32
