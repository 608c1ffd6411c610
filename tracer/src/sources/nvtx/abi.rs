//! NVTX's own structures (NVTX 3 nvToolsExt.h, nvtxDetail/nvtxTypes.h). On Linux a wchar_t has 32 bits.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `NVTX_ETID_CALLBACKS`.
pub(super) const ETID_CALLBACKS: u32 = 1;

/// Answers with a table of NVTX, null for an id that it does not have.
pub(crate) type GetExportTable = unsafe extern "C-unwind" fn(id: u32) -> *const c_void;
/// The pointer through which NVTX calls a function of the injection library.
pub(super) type Slot = *const c_void;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
pub(super) struct CallbacksTable {
    pub(super) struct_size: usize,
    /// Places of a module's functions by callback id, and how many there are; 0: no such module.
    pub(super) get_module_function_table: Option<
        unsafe extern "C-unwind" fn(module: u32, table: *mut *mut *mut Slot, size: *mut c_uint) -> c_int,
    >,
}

/// `NvtxCallbackModule`.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum CallbackModule {
    /// The default domain.
    Core = 1,
    /// Domains.
    Core2 = 5,
}

/// `nvtxEventAttributes_t` of version 2.
#[repr(C)]
pub(crate) struct EventAttributes {
    pub(super) version: u16,
    /// Bytes of the caller's structure.
    pub(super) size: u16,
    pub(super) category: u32,
    pub(super) color_type: i32,
    pub(super) color: u32,
    pub(super) payload_type: i32,
    pub(super) reserved: i32,
    pub(super) payload: Payload,
    pub(super) message_type: i32,
    pub(super) message: MessageValue,
}

/// `payload_t`; `payload_type` says which.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union Payload {
    pub(super) u64: u64,
    pub(super) i64: i64,
    pub(super) f64: f64,
    pub(super) u32: u32,
    pub(super) i32: i32,
    pub(super) f32: f32,
}

/// `nvtxPayloadType_t`.
pub(super) mod payload_type {
    pub(in crate::sources::nvtx) const U64: i32 = 1;
    pub(in crate::sources::nvtx) const I64: i32 = 2;
    pub(in crate::sources::nvtx) const F64: i32 = 3;
    pub(in crate::sources::nvtx) const U32: i32 = 4;
    pub(in crate::sources::nvtx) const I32: i32 = 5;
    pub(in crate::sources::nvtx) const F32: i32 = 6;
}

/// `nvtxMessageValue_t`; `message_type` says which.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union MessageValue {
    pub(super) ascii: *const c_char,
    pub(super) unicode: *const u32,
    pub(super) registered: *const super::registry::RegisteredText,
}

/// `nvtxMessageType_t`.
pub(super) mod message_type {
    pub(in crate::sources::nvtx) const ASCII: i32 = 1;
    pub(in crate::sources::nvtx) const UNICODE: i32 = 2;
    pub(in crate::sources::nvtx) const REGISTERED: i32 = 3;
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn layout_is_that_of_the_header() {
        assert_eq!(size_of::<EventAttributes>(), 48);
        assert_eq!(offset_of!(EventAttributes, payload), 24);
        assert_eq!(offset_of!(EventAttributes, message_type), 32);
        assert_eq!(offset_of!(EventAttributes, message), 40);
    }
}
