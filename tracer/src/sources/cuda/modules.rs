//! Modules of CUDA's that the program loads. The recorder saves their code, a cubin each, where the user asks for it (RPDT_SAVE_CODE).
//!
//! Nothing says which module a kernel comes from. The recorder looks for its name in the latest module that has it.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use rpd_codeobject::CodeObject;
use rpd_preload::lock::lock;

use crate::gpu::code_objects::origin::CodeLocation;
use crate::gpu::code_objects::{self, CodeNumber};

/// Mangled names of kernels, and what they came in.
static KERNELS: LazyLock<Mutex<HashMap<String, CodeNumber>>> = LazyLock::new(Mutex::default);

/// Whether they are to be saved.
pub(super) fn are_saved() -> bool {
    code_objects::are_saved()
}

/// The program has loaded one, whose bytes are there for the moment.
pub(super) fn loaded(cubin: &[u8]) {
    let Ok(object) = CodeObject::parse(cubin) else { return };
    let origin = CodeLocation::of_memory(cubin);
    let Some(number) = code_objects::loaded(cubin, &origin, object.target.processor) else { return };
    let mut kernels = lock(&KERNELS);
    kernels.extend(object.kernels.into_iter().map(|kernel| (kernel.name, number)));
}

/// What the kernel of that mangled name came in.
pub(super) fn of(kernel: &str) -> Option<CodeNumber> {
    lock(&KERNELS).get(kernel).copied()
}
