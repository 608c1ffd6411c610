//! Code objects in the runtime: kernels of an executable, and loading one of our own.

use std::ffi::c_void;
use std::ptr;

use super::abi::*;

/// The runtime's functions for it, the originals: what is loaded by them passes no hook.
pub(crate) struct CodeFunctions {
    pub(crate) symbol_get_info: SymbolGetInfo,
    pub(crate) iterate_symbols: ExecutableIterateSymbols,
    pub(crate) reader_from_memory: ReaderFromMemory,
    pub(crate) reader_destroy: ReaderDestroy,
    pub(crate) executable_create: ExecutableCreateAlt,
    pub(crate) load_agent_code_object: ExecutableLoadAgentCodeObject,
    pub(crate) freeze: ExecutableFreeze,
    pub(crate) executable_destroy: ExecutableDestroy,
}

/// A kernel of a frozen executable.
pub(crate) struct KernelSymbol {
    /// Such as `_Z3addPf.kd`.
    pub(crate) symbol: String,
    /// Address of its descriptor on the device, by which packets name it.
    pub(crate) object: u64,
    /// The agent it was loaded for.
    pub(crate) agent: Agent,
}

/// hsa_profile_t FULL.
const PROFILE_FULL: u32 = 1;
/// hsa_default_float_rounding_mode_t DEFAULT.
const ROUNDING_DEFAULT: u32 = 0;

impl CodeFunctions {
    /// The kernels of an executable that is frozen.
    pub(crate) fn kernels(&self, executable: Executable) -> Vec<KernelSymbol> {
        let mut symbols: Vec<Symbol> = Vec::new();
        // SAFETY: `collect` matches the callback's type and gets the vector it expects, only during the call.
        unsafe { (self.iterate_symbols)(executable, collect, (&raw mut symbols).cast()) };
        symbols.into_iter().filter_map(|symbol| self.kernel(symbol)).collect()
    }

    fn kernel(&self, symbol: Symbol) -> Option<KernelSymbol> {
        if self.attribute::<u32>(symbol, symbol_info::TYPE)? != SYMBOL_KERNEL {
            return None;
        }
        Some(KernelSymbol {
            object: self.attribute(symbol, symbol_info::KERNEL_OBJECT)?,
            agent: Agent(self.attribute(symbol, symbol_info::AGENT)?),
            symbol: self.name(symbol)?,
        })
    }

    fn attribute<T: Copy + Default>(&self, symbol: Symbol, info: u32) -> Option<T> {
        let mut value = T::default();
        // SAFETY: callers name the attribute's type (ROCr 5.2 hsa.h, hsa_executable_symbol_info_t).
        let status = unsafe { (self.symbol_get_info)(symbol, info, (&raw mut value).cast()) };
        (status == SUCCESS).then_some(value)
    }

    fn name(&self, symbol: Symbol) -> Option<String> {
        let length = self.attribute::<u32>(symbol, symbol_info::NAME_LENGTH)? as usize;
        let mut name = vec![0u8; length];
        // SAFETY: the buffer has the length the runtime asked for; the name comes without a NUL.
        let status = unsafe { (self.symbol_get_info)(symbol, symbol_info::NAME, name.as_mut_ptr().cast()) };
        (status == SUCCESS).then(|| String::from_utf8_lossy(&name).into_owned())
    }

    /// Loads a code object for `agent`, into an executable of its own.
    ///
    /// # Errors
    /// Which function of the runtime refused it, and its status.
    ///
    /// # Safety
    /// The runtime is initialised and stays so during the call.
    pub(crate) unsafe fn load(
        &self,
        agent: Agent,
        code: &[u8],
    ) -> Result<Executable, (&'static str, Status)> {
        let mut executable = Executable(0);
        // SAFETY: the caller's promise; a place for the handle, and no options.
        let status =
            unsafe { (self.executable_create)(PROFILE_FULL, ROUNDING_DEFAULT, ptr::null(), &mut executable) };
        if status != SUCCESS {
            return Err(("hsa_executable_create_alt", status));
        }
        // SAFETY: the caller's promise; the executable just made.
        let loaded = unsafe { self.load_into(executable, agent, code) };
        if loaded.is_err() {
            // SAFETY: as above; nobody else knows it.
            unsafe { (self.executable_destroy)(executable) };
        }
        loaded.map(|()| executable)
    }

    /// # Safety
    /// As for [`CodeFunctions::load`]; the executable is not frozen.
    unsafe fn load_into(
        &self,
        executable: Executable,
        agent: Agent,
        code: &[u8],
    ) -> Result<(), (&'static str, Status)> {
        let mut reader = Reader(0);
        // SAFETY: the caller's promise; the bytes outlive the reader, which is destroyed below.
        let status = unsafe { (self.reader_from_memory)(code.as_ptr().cast(), code.len(), &mut reader) };
        if status != SUCCESS {
            return Err(("hsa_code_object_reader_create_from_memory", status));
        }
        // SAFETY: the caller's promise; handles made above.
        let (loaded, frozen) = unsafe {
            let loaded =
                (self.load_agent_code_object)(executable, agent, reader, ptr::null(), ptr::null_mut());
            let frozen = if loaded == SUCCESS { (self.freeze)(executable, ptr::null()) } else { SUCCESS };
            (self.reader_destroy)(reader);
            (loaded, frozen)
        };
        match (loaded, frozen) {
            (SUCCESS, SUCCESS) => Ok(()),
            (SUCCESS, status) => Err(("hsa_executable_freeze", status)),
            (status, _) => Err(("hsa_executable_load_agent_code_object", status)),
        }
    }

    /// Takes an executable out of the runtime.
    ///
    /// # Safety
    /// As for [`CodeFunctions::load`], which made it; no packet that has not completed names a kernel of it, and none will.
    pub(crate) unsafe fn unload(&self, executable: Executable) {
        // SAFETY: the caller's promise.
        unsafe { (self.executable_destroy)(executable) };
    }
}

unsafe extern "C-unwind" fn collect(_: Executable, symbol: Symbol, symbols: *mut c_void) -> Status {
    // SAFETY: `kernels` passes its vector.
    unsafe { &mut *symbols.cast::<Vec<Symbol>>() }.push(symbol);
    SUCCESS
}
