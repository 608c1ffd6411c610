//! The layout of the memory that device and host share (dh_comms, main of 2025: dh_comms_dev.h, data_headers.h). All
//! numbers are little-endian.

use bytemuck::{Pod, Zeroable};

/// What the last argument of an instrumented kernel points to. Addresses are those that the device uses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Descriptor {
    /// How many sub-buffers there are; a workgroup uses the one of its flat index modulo this.
    pub sub_buffer_count: u64,
    /// Bytes of each.
    pub sub_buffer_capacity: u64,
    /// All of them, one after the other: memory of the host that the device reaches.
    pub buffer: u64,
    /// Bytes that are used of each: as many u64, memory of the host.
    pub sub_buffer_sizes: u64,
    /// Bit 0 is set where a message did not fit into an empty sub-buffer: one u32, memory of the host.
    pub error_bits: u64,
    /// Locks by which waves take turns: as many bytes, memory of the device.
    pub locks: u64,
    /// 1 where a wave waits for the host: as many bytes, memory of the host.
    pub full_flags: u64,
}

/// What is in front of each message.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct WaveHeader {
    /// Which lanes were active.
    pub exec: u64,
    /// Bytes behind this header in bits 0 to 61; see [`WaveHeader::VECTOR`] and [`WaveHeader::LANE_HEADERS`].
    pub data_size: u64,
    /// The device's clock.
    pub timestamp: u64,
    /// [`crate::file_name_hash()`] of the file of the source.
    pub file: u64,
    /// Line of the source, `u32::MAX` or 0 where it is not known.
    pub line: u32,
    /// Column, `u32::MAX` where it is not known.
    pub column: u32,
    /// What kind of message this is.
    pub kind: u32,
    /// Its meaning depends on the kind.
    pub detail: u32,
    /// The workgroup, the lower 16 bits of each dimension.
    pub block: [u16; 3],
    /// Wave of the workgroup (bits 0-3), XCC (4-7), SE (8-10) and CU (11-14).
    pub wave: u16,
    /// How many lanes were active.
    pub lanes: u8,
    /// The processor: 1 gfx906, 2 gfx908, 3 gfx90a, 4 gfx940, 5 gfx941, 6 gfx942, 0 another.
    pub arch: u8,
    /// Nothing.
    pub padding: [u8; 6],
}

impl WaveHeader {
    /// In `data_size`: every active lane has data of its own.
    pub const VECTOR: u64 = 1 << 62;
    /// In `data_size`: a word for each active lane says which work-item it is.
    pub const LANE_HEADERS: u64 = 1 << 63;
}

const _: () = assert!(size_of::<Descriptor>() == 56 && size_of::<WaveHeader>() == 64);
