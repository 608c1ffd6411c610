//! Where an indirect branch leads whose address the code works out from its own: what compilers and Tensile write for branches that are
//! too far for a direct one, and for calls.
//!
//! Values of scalar registers are followed as far as they are known without running anything: from `s_getpc_b64` through moves, sums and
//! differences with constants. Whatever else an instruction names is not known behind it.

use std::collections::BTreeMap;

use super::FlowStep;

/// Scalar registers whose values are known, and the carry (SCC).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KnownRegisters {
    known: BTreeMap<u16, u32>,
    carry: Option<bool>,
}

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

impl KnownRegisters {
    /// The address that the instruction's last operand, a pair of registers, holds.
    pub(super) fn target(&self, text: &str) -> Option<u64> {
        match Operand::of(text.rsplit([' ', ',']).next()?) {
            Operand::Scalar(first, 2) => {
                let (low, high) = (self.known.get(&first)?, self.known.get(&(first.checked_add(1)?))?);
                Some(u64::from(*low) | u64::from(*high) << 32)
            }
            _ => None,
        }
    }

    fn value(&self, operand: Operand) -> Option<u32> {
        match operand {
            Operand::Scalar(register, 1) => self.known.get(&register).copied(),
            Operand::Constant(number) => Some(number),
            _ => None,
        }
    }

    /// Takes one instruction into account.
    pub(super) fn follow(&mut self, step: &FlowStep<'_>) {
        let (name, rest) = step.text.split_once(' ').unwrap_or((step.text, ""));
        // Neither writes a register nor, but for the carry, anything else that is followed.
        if ["s_nop", "s_waitcnt", "s_barrier", "s_branch", "s_cbranch", "s_delay", "s_wait_", "s_clause"]
            .iter()
            .any(|begin| name.starts_with(begin))
        {
            return;
        }
        if name.starts_with("s_cmp") || name.starts_with("s_bitcmp") {
            self.carry = None;
            return;
        }
        let operands: Vec<Operand> = rest.split(',').map(|text| Operand::of(text.trim())).collect();
        let values = |at: usize| operands.get(at).and_then(|operand| self.value(*operand));
        let (one, other, carry) = (values(1), values(2), self.carry);
        // The result, and the carry behind it; `None` for what is not known.
        let (result, carry) = match (name, one, other) {
            ("s_getpc_b64" | "s_get_pc_i64", ..) => {
                let Some(Operand::Scalar(first, 2)) = operands.first() else { return self.forget(&operands) };
                let next = step.next();
                self.known.insert(*first, next as u32);
                self.known.insert(first.saturating_add(1), (next >> 32) as u32);
                return;
            }
            ("s_mov_b32", one, _) => (one, carry),
            ("s_movk_i32", Some(number), _) => (Some(i32::from(number as i16).cast_unsigned()), carry),
            ("s_sext_i32_i16", Some(number), _) => (Some(i32::from(number as i16).cast_unsigned()), carry),
            ("s_abs_i32", Some(number), _) => {
                let result = number.cast_signed().unsigned_abs();
                (Some(result), Some(result != 0))
            }
            ("s_add_u32" | "s_add_co_u32", Some(one), Some(other)) => sum(one, other, false),
            ("s_addc_u32" | "s_add_co_ci_u32", Some(one), Some(other)) => {
                carry.map_or((None, None), |carry| sum(one, other, carry))
            }
            ("s_add_i32" | "s_add_co_i32", Some(one), Some(other)) => {
                let (result, overflow) = one.cast_signed().overflowing_add(other.cast_signed());
                (Some(result.cast_unsigned()), Some(overflow))
            }
            ("s_sub_u32" | "s_sub_co_u32", Some(one), Some(other)) => difference(one, other, false),
            ("s_subb_u32" | "s_sub_co_ci_u32", Some(one), Some(other)) => {
                carry.map_or((None, None), |carry| difference(one, other, carry))
            }
            // Registers that are named by the contents of others.
            _ if name.contains("movrel") => {
                *self = KnownRegisters::default();
                return;
            }
            // Vector and memory instructions leave the carry alone.
            _ => {
                if name.starts_with("s_") && !name.starts_with("s_load") && !name.starts_with("s_mov") {
                    self.carry = None;
                }
                return self.forget(&operands);
            }
        };
        self.forget(&operands[..1]);
        if let (Some(Operand::Scalar(register, 1)), Some(result)) = (operands.first(), result) {
            self.known.insert(*register, result);
        }
        self.carry = carry;
    }

    fn forget(&mut self, operands: &[Operand]) {
        for operand in operands {
            if let Operand::Scalar(first, count) = operand {
                self.known.retain(|register, _| !(*first..first.saturating_add(*count)).contains(register));
            }
        }
    }
}

fn sum(one: u32, other: u32, carry: bool) -> (Option<u32>, Option<bool>) {
    let sum = u64::from(one) + u64::from(other) + u64::from(carry);
    (Some(sum as u32), Some(sum >> 32 != 0))
}

fn difference(one: u32, other: u32, borrow: bool) -> (Option<u32>, Option<bool>) {
    let (whole, first) = one.overflowing_sub(other);
    let (whole, second) = whole.overflowing_sub(borrow.into());
    (Some(whole), Some(first || second))
}
