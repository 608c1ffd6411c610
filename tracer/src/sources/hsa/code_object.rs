//! Code objects as the application loads them: a reader over bytes, an executable made of one or more, frozen, destroyed.
//!
//! The bytes are valid for as long as the reader lives, so the metadata is read when a reader is loaded into an executable;
//! the addresses of kernels exist once the executable is frozen.

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rpd_codeobject::CodeObject;
use rpd_preload::lock::lock_within;
use rpd_transport::log;
use rpd_transport::records::NO_GPU;

use super::state::{self, Hsa, get};
use crate::gpu::code_objects::{self, CodeNumber, origin::CodeLocation};
use crate::gpu::kernels::{self, NumberedKernel};
use crate::guard::guard;
use crate::hsa_runtime::abi::*;
use crate::hsa_runtime::code::KernelSymbol;
use crate::intercept::{self, Original, Runtime};

/// Where the bytes of a reader are.
#[derive(Clone)]
enum CodeSource {
    Memory { address: usize, size: usize },
    File(Arc<OwnedFd>),
}

/// What is known of the kernels of a code object that was loaded into an executable.
struct LoadedCode {
    agent: Agent,
    kernels: Vec<rpd_codeobject::Kernel>,
    /// Where its bytes are saved.
    code_object: Option<CodeNumber>,
    /// The file that it came from, where it came from one and somebody wants to know.
    origin: Option<Arc<Path>>,
    /// A variable of it that kernels could change, where somebody wants to know.
    variable: Option<String>,
    /// SHA-256 of its bytes, where it has one kernel and somebody wants to know.
    sha256: Option<Arc<str>>,
    /// Its bytes, where it has instrumented kernels and somebody wants them.
    bytes: Option<Arc<[u8]>>,
}

/// Bytes of a code object that are hashed while the application waits: 5 ms at most.
const MOST_HASHED: usize = 1 << 20;

#[derive(Default)]
struct CodeState {
    readers: HashMap<Reader, CodeSource>,
    /// What was loaded so far into executables that are not frozen yet.
    loaded: HashMap<Executable, Vec<LoadedCode>>,
    /// Kernel objects of frozen executables.
    frozen: HashMap<Executable, Vec<u64>>,
}

static STATE: std::sync::LazyLock<Mutex<CodeState>> = std::sync::LazyLock::new(Mutex::default);
/// How long to wait for it. A handler may have interrupted its holder, and HIP destroys its executables when the process ends.
const PATIENCE: Duration = Duration::from_secs(1);

/// The state. Nothing in a forked child, whose copy of the lock may be held by a thread that it does not have.
fn state(hsa: &Hsa) -> Option<MutexGuard<'static, CodeState>> {
    if hsa.is_own() { lock_within(&STATE, PATIENCE) } else { None }
}

fn status(body: impl FnOnce(&'static Hsa) -> Status) -> Status {
    // The hooks are only in the table after HSA was set.
    get().map_or(ERROR, body)
}

/// hsa_code_object_reader_create_from_memory.
pub(super) unsafe extern "C-unwind" fn reader_from_memory(
    bytes: *const c_void,
    size: usize,
    reader: *mut Reader,
) -> Status {
    status(|hsa| {
        // SAFETY: the caller's arguments, passed on.
        let status = unsafe { (hsa.originals.reader_from_memory)(bytes, size, reader) };
        if status == SUCCESS {
            // SAFETY: a successful call has written the handle.
            let reader = unsafe { *reader };
            guard((), || {
                if let Some(mut state) = state(hsa) {
                    state.readers.insert(reader, CodeSource::Memory { address: bytes as usize, size });
                }
            });
        }
        status
    })
}

/// hsa_code_object_reader_create_from_file.
pub(super) unsafe extern "C-unwind" fn reader_from_file(file: i32, reader: *mut Reader) -> Status {
    status(|hsa| {
        // SAFETY: the caller's arguments, passed on.
        let status = unsafe { (hsa.originals.reader_from_file)(file, reader) };
        if status == SUCCESS {
            // SAFETY: a successful call has written the handle.
            let reader = unsafe { *reader };
            // SAFETY: the runtime has just read from this descriptor, so it is open during this call.
            let copy = unsafe { BorrowedFd::borrow_raw(file) }.try_clone_to_owned();
            guard((), || {
                if let (Ok(file), Some(mut state)) = (copy, state(hsa)) {
                    state.readers.insert(reader, CodeSource::File(Arc::new(file)));
                }
            });
        }
        status
    })
}

/// hsa_code_object_reader_destroy.
pub(super) unsafe extern "C-unwind" fn reader_destroy(reader: Reader) -> Status {
    status(|hsa| {
        guard((), || {
            if let Some(mut state) = state(hsa) {
                state.readers.remove(&reader);
            }
        });
        // SAFETY: the caller's argument, passed on.
        unsafe { (hsa.originals.reader_destroy)(reader) }
    })
}

/// hsa_executable_load_agent_code_object.
pub(super) unsafe extern "C-unwind" fn load_agent_code_object(
    executable: Executable,
    agent: Agent,
    reader: Reader,
    options: *const c_char,
    loaded: *mut u64,
) -> Status {
    status(|hsa| {
        let load = hsa.originals.executable_load_agent_code_object;
        // SAFETY: the caller's arguments, passed on.
        let status = unsafe { load(executable, agent, reader, options, loaded) };
        if status == SUCCESS && hsa.usable() {
            guard((), || remember(hsa, executable, agent, reader));
        }
        status
    })
}

fn remember(hsa: &Hsa, executable: Executable, agent: Agent, reader: Reader) {
    let Some(source) = state(hsa).and_then(|state| state.readers.get(&reader).cloned()) else { return };
    let loaded = match source {
        CodeSource::Memory { address, size } => {
            // SAFETY: the application keeps the bytes until it destroys the reader, and it is using the reader now
            // (hsa_code_object_reader_create_from_memory, HSA 1.2 §2.10.2).
            let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, size) };
            examine(agent, bytes, || CodeLocation::of_memory(bytes))
        }
        CodeSource::File(file) => match contents(&file) {
            Ok(bytes) => {
                examine(agent, &bytes, || CodeLocation::of_descriptor(file.as_fd(), bytes.len() as u64))
            }
            Err(error) => return log::info(|| format!("a code object file cannot be read again ({error})")),
        },
    };
    if let Some(mut state) = state(hsa) {
        state.loaded.entry(executable).or_default().push(loaded);
    }
}

/// Reads what a code object says of its kernels, and has it saved where that was asked for.
fn examine(agent: Agent, bytes: &[u8], origin: impl FnOnce() -> CodeLocation) -> LoadedCode {
    let (mut target, mut kernels) = (String::new(), Vec::new());
    match CodeObject::parse(bytes) {
        Ok(object) => {
            target = object.target.to_string();
            kernels = object.kernels;
            if !intercept::is_on() {
                // Nobody else needs them, and libraries have thousands of kernels.
                kernels.iter_mut().for_each(|kernel| kernel.args = Vec::new());
            }
        }
        Err(error) => {
            log::info(|| format!("no registers and sizes for the kernels of a code object ({error})"))
        }
    }
    let variable = intercept::wants_validation()
        .then(|| rpd_codeobject::variables(bytes).ok()?.into_iter().next())
        .flatten();
    let origin = (code_objects::are_saved() || intercept::wants_origins()).then(origin);
    let code_object = origin.as_ref().and_then(|origin| code_objects::loaded(bytes, origin, target));
    // As Triton makes them: one kernel each, of which a cache may have the very build.
    let is_small = kernels.len() == 1 && bytes.len() <= MOST_HASHED;
    let sha256 = (intercept::is_on() && is_small).then(|| Arc::from(code_objects::sha256(bytes)));
    let origin = origin.and_then(|origin| origin.path().map(Arc::from));
    let bytes = intercept::wants_bytes(&kernels).then(|| Arc::from(bytes));
    LoadedCode { agent, kernels, code_object, origin, variable, sha256, bytes }
}

fn contents(file: &OwnedFd) -> std::io::Result<Vec<u8>> {
    let file = File::from(file.try_clone()?);
    let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or(0)];
    // Not from the descriptor's own position: it is shared with the application.
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// hsa_executable_freeze.
pub(super) unsafe extern "C-unwind" fn freeze(executable: Executable, options: *const c_char) -> Status {
    status(|hsa| {
        // SAFETY: the caller's arguments, passed on.
        let status = unsafe { (hsa.originals.executable_freeze)(executable, options) };
        if status == SUCCESS && hsa.usable() {
            guard((), || enter(hsa, executable));
        }
        status
    })
}

/// Puts the kernels of a frozen executable into the table.
fn enter(hsa: &'static Hsa, executable: Executable) {
    let loaded = state(hsa).and_then(|mut state| state.loaded.remove(&executable)).unwrap_or_default();
    let by_symbol: HashMap<(Agent, &str), (&LoadedCode, &rpd_codeobject::Kernel)> = loaded
        .iter()
        .flat_map(|loaded| loaded.kernels.iter().map(move |kernel| (loaded, kernel)))
        .map(|(loaded, kernel)| ((loaded.agent, kernel.symbol.as_str()), (loaded, kernel)))
        .collect();
    let (mut objects, mut originals) = (Vec::new(), Vec::new());
    for KernelSymbol { symbol, object, agent } in hsa.code.kernels(executable) {
        let (loaded, facts) = by_symbol.get(&(agent, symbol.as_str())).copied().unzip();
        let gpu = hsa.known.gpus.of(agent).map_or(NO_GPU, |gpu| gpu.index);
        let kernel = NumberedKernel::new(symbol, gpu, facts.cloned());
        let code_object = loaded.and_then(|loaded| loaded.code_object);
        let kernel = kernels::add(object, NumberedKernel { code_object, ..kernel });
        objects.push(object);
        let origin = loaded.and_then(|loaded| loaded.origin.clone());
        let variable = loaded.and_then(|loaded| loaded.variable.clone());
        let sha256 = loaded.and_then(|loaded| loaded.sha256.clone());
        let bytes = loaded.and_then(|loaded| loaded.bytes.clone());
        originals.push(Original { object, agent, kernel, origin, variable, sha256, bytes });
    }
    if let Some(mut state) = state(hsa) {
        state.frozen.insert(executable, objects);
    }
    let lives = || state::get().is_some_and(|hsa| hsa.usable());
    intercept::loaded(
        Runtime {
            code: &hsa.code,
            memory: &hsa.memory,
            own_queues: &hsa.own_queues,
            gpus: &hsa.known.gpus,
            lives,
        },
        originals,
    );
}

/// hsa_executable_destroy: the addresses of its kernels may mean others afterwards.
pub(super) unsafe extern "C-unwind" fn destroy(executable: Executable) -> Status {
    status(|hsa| {
        guard((), || {
            let Some(mut state) = state(hsa) else { return };
            state.loaded.remove(&executable);
            if let Some(objects) = state.frozen.remove(&executable) {
                kernels::remove(&objects);
                drop(state);
                intercept::unloaded(&objects);
            }
        });
        // SAFETY: the caller's argument, passed on.
        unsafe { (hsa.originals.executable_destroy)(executable) }
    })
}
