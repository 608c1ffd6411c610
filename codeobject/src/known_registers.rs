//! Values of scalar registers, as far as they are known without running anything: addresses that code works out of its own by moves, sums
//! and differences with constants, as compilers and Tensile do for calls and for branches that are too far for a direct one.

use std::collections::BTreeMap;

/// Instructions that are followed, by what they make of their sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Move,
    /// The lower half of the source, with its sign: s_movk_i32, s_sext_i32_i16.
    Extend,
    Absolute,
    Add,
    AddCarry,
    AddSigned,
    Subtract,
    SubtractBorrow,
}

/// Scalar registers whose values are known, and the carry (SCC).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KnownRegisters {
    known: BTreeMap<u16, u32>,
    carry: Option<bool>,
}

impl KnownRegisters {
    /// What a register holds.
    pub(crate) fn value(&self, register: u16) -> Option<u32> {
        self.known.get(&register).copied()
    }

    /// The address in a pair of registers.
    pub(crate) fn pair(&self, first: u16) -> Option<u64> {
        let (low, high) = (self.value(first)?, self.value(first.checked_add(1)?)?);
        Some(u64::from(low) | u64::from(high) << 32)
    }

    /// A pair of registers holds this address from here on.
    pub(crate) fn set_pair(&mut self, first: u16, address: u64) {
        self.known.insert(first, address as u32);
        self.known.insert(first.saturating_add(1), (address >> 32) as u32);
    }

    /// So many registers, from the first one on, hold what is not known.
    pub(crate) fn forget(&mut self, first: u16, count: u16) {
        self.known.retain(|register, _| !(first..first.saturating_add(count)).contains(register));
    }

    /// The carry is not known.
    pub(crate) fn forget_carry(&mut self) {
        self.carry = None;
    }

    /// What is known in both; says whether that is less than what was known here.
    pub(crate) fn keep_common(&mut self, other: &KnownRegisters) -> bool {
        let before = (self.known.len(), self.carry);
        self.known.retain(|register, value| other.known.get(register) == Some(value));
        if self.carry != other.carry {
            self.carry = None;
        }
        before != (self.known.len(), self.carry)
    }

    /// `register` gets the result of `arithmetic` of the two sources.
    pub(crate) fn apply(
        &mut self,
        arithmetic: Arithmetic,
        register: Option<u16>,
        one: Option<u32>,
        other: Option<u32>,
    ) {
        let carry = self.carry;
        // The result, and the carry behind it; `None` for what is not known.
        let (result, carry) = match (arithmetic, one, other) {
            (Arithmetic::Move, one, _) => (one, carry),
            (Arithmetic::Extend, Some(number), _) => (Some(i32::from(number as i16).cast_unsigned()), carry),
            (Arithmetic::Extend, None, _) => (None, carry),
            (Arithmetic::Absolute, Some(number), _) => {
                let result = number.cast_signed().unsigned_abs();
                (Some(result), Some(result != 0))
            }
            (Arithmetic::Add, Some(one), Some(other)) => sum(one, other, false),
            (Arithmetic::AddCarry, Some(one), Some(other)) => {
                carry.map_or((None, None), |carry| sum(one, other, carry))
            }
            (Arithmetic::AddSigned, Some(one), Some(other)) => {
                let (result, overflow) = one.cast_signed().overflowing_add(other.cast_signed());
                (Some(result.cast_unsigned()), Some(overflow))
            }
            (Arithmetic::Subtract, Some(one), Some(other)) => difference(one, other, false),
            (Arithmetic::SubtractBorrow, Some(one), Some(other)) => {
                carry.map_or((None, None), |carry| difference(one, other, carry))
            }
            _ => (None, None),
        };
        if let Some(register) = register {
            match result {
                Some(result) => self.known.insert(register, result),
                None => self.known.remove(&register),
            };
        }
        self.carry = carry;
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
