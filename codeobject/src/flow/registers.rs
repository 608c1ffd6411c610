//! The target of an indirect branch whose address the code works out from its own: what compilers and Tensile write for branches that are
//! too far for a direct one, and for calls.
//!
//! Here is how LLVM's text is read; what is known is in [`crate::known_registers`]. Whatever else an instruction names is not known behind it.

use crate::known_registers::{Arithmetic, KnownRegisters};

use super::FlowStep;

/// What an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    /// `s4`, `s[4:5]`: the first, and how many.
    Scalar(u16, u16),
    Constant(u32),
    Other,
}

impl Operand {
    fn of(text: &str) -> Operand {
        let parsed = || {
            if let Some(number) = text.strip_prefix("0x") {
                return u32::from_str_radix(number, 16).ok().map(Operand::Constant);
            }
            if let Ok(number) = text.parse::<i64>() {
                // Negative ones are sign-extended to 32 bits.
                return i32::try_from(number)
                    .map(i32::cast_unsigned)
                    .or_else(|_| u32::try_from(number))
                    .ok()
                    .map(Operand::Constant);
            }
            let register = text.strip_prefix('s')?;
            if let Some(range) = register.strip_prefix('[').and_then(|range| range.strip_suffix(']')) {
                let (first, last) = range.split_once(':')?;
                let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
                return Some(Operand::Scalar(first, last.checked_sub(first)?.checked_add(1)?));
            }
            register.parse().ok().map(|register| Operand::Scalar(register, 1))
        };
        parsed().unwrap_or(Operand::Other)
    }
}

/// The address that the instruction's last operand, a pair of registers, holds.
pub(super) fn target(registers: &KnownRegisters, text: &str) -> Option<u64> {
    match Operand::of(text.rsplit([' ', ',']).next()?) {
        Operand::Scalar(first, 2) => registers.pair(first),
        _ => None,
    }
}

/// Takes one instruction into account.
pub(super) fn follow(registers: &mut KnownRegisters, step: &FlowStep<'_>) {
    let (name, rest) = step.text.split_once(' ').unwrap_or((step.text, ""));
    // Neither writes a register nor, but for the carry, anything else that is followed.
    if ["s_nop", "s_waitcnt", "s_barrier", "s_branch", "s_cbranch", "s_delay", "s_wait_", "s_clause"]
        .iter()
        .any(|begin| name.starts_with(begin))
    {
        return;
    }
    if name.starts_with("s_cmp") || name.starts_with("s_bitcmp") {
        registers.forget_carry();
        return;
    }
    let operands: Vec<Operand> = rest.split(',').map(|text| Operand::of(text.trim())).collect();
    let arithmetic = match name {
        "s_getpc_b64" | "s_get_pc_i64" => {
            match operands.first() {
                Some(Operand::Scalar(first, 2)) => registers.set_pair(*first, step.next()),
                _ => forget(registers, &operands),
            }
            return;
        }
        // Registers that are named by the contents of others.
        _ if name.contains("movrel") => {
            *registers = KnownRegisters::default();
            return;
        }
        "s_mov_b32" => Some(Arithmetic::Move),
        "s_movk_i32" | "s_sext_i32_i16" => Some(Arithmetic::Extend),
        "s_abs_i32" => Some(Arithmetic::Absolute),
        "s_add_u32" | "s_add_co_u32" => Some(Arithmetic::Add),
        "s_addc_u32" | "s_add_co_ci_u32" => Some(Arithmetic::AddCarry),
        "s_add_i32" | "s_add_co_i32" => Some(Arithmetic::AddSigned),
        "s_sub_u32" | "s_sub_co_u32" => Some(Arithmetic::Subtract),
        "s_subb_u32" | "s_sub_co_ci_u32" => Some(Arithmetic::SubtractBorrow),
        _ => None,
    };
    let Some(arithmetic) = arithmetic else {
        // Vector and memory instructions leave the carry alone.
        if name.starts_with("s_") && !name.starts_with("s_load") && !name.starts_with("s_mov") {
            registers.forget_carry();
        }
        return forget(registers, &operands);
    };
    let value = |at: usize| match operands.get(at)? {
        Operand::Scalar(register, 1) => registers.value(*register),
        Operand::Constant(number) => Some(*number),
        _ => None,
    };
    let (one, other) = (value(1), value(2));
    let register = match operands.first() {
        Some(Operand::Scalar(register, 1)) => Some(*register),
        _ => {
            forget(registers, &operands);
            None
        }
    };
    registers.apply(arithmetic, register, one, other);
}

fn forget(registers: &mut KnownRegisters, operands: &[Operand]) {
    for operand in operands {
        if let Operand::Scalar(first, count) = operand {
            registers.forget(*first, *count);
        }
    }
}
