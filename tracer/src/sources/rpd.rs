//! The source of the recorder's own markers: `rpd_mark` and its like (include/rpd_tracer.h), under the names the original gave them.
//!
//! Every function may be called from any thread, and does nothing where recording is not possible.

use std::ffi::c_char;

use rpd_transport::marker;
use rpd_transport::records::Stack;
use rpd_transport::source::Source;

use crate::guard::{bytes, with_recorder_without_points};

pub(crate) struct Rpd;

impl Source for Rpd {
    fn name(&self) -> &'static str {
        "rpd"
    }

    fn number(&self) -> u8 {
        5
    }
}

/// An instant. Schema 2 has no place for the domain.
///
/// # Safety
/// The arguments are NUL-terminated strings or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rpd_mark(
    _domain: *const c_char,
    api_name: *const c_char,
    args: *const c_char,
) {
    // SAFETY: the caller's promise.
    let (name, args) = unsafe { (bytes(api_name), bytes(args)) };
    with_recorder_without_points(|recorder| marker::mark(recorder, name, args));
}

/// A range of the calling thread begins. Schema 2 has no place for the domain.
///
/// # Safety
/// The arguments are NUL-terminated strings or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rpd_rangePush(
    _domain: *const c_char,
    api_name: *const c_char,
    args: *const c_char,
) {
    // SAFETY: the caller's promise.
    let (name, args) = unsafe { (bytes(api_name), bytes(args)) };
    with_recorder_without_points(|recorder| marker::push(recorder, Stack::RPD, name, args));
}

/// The innermost range of the calling thread ends.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpd_rangePop() {
    with_recorder_without_points(|recorder| marker::pop(recorder, Stack::RPD));
}

/// As [`rpd_rangePush`], on a stack of its own: calls of an interpreter's functions, which end whether or not the ranges that they
/// have pushed do.
///
/// # Safety
/// The arguments are NUL-terminated strings or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rpd_framePush(api_name: *const c_char, args: *const c_char) {
    // SAFETY: the caller's promise.
    let (name, args) = unsafe { (bytes(api_name), bytes(args)) };
    with_recorder_without_points(|recorder| marker::push(recorder, Stack::FRAMES, name, args));
}

/// The innermost range of [`rpd_framePush`] of the calling thread ends.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpd_framePop() {
    with_recorder_without_points(|recorder| marker::pop(recorder, Stack::FRAMES));
}
