//! A software GPU of one code object, its copy that counts, and some memory.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use object::elf::RelocationType;
use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget,
};
use rpd_gfx9::{Counts, Device, Execution, Progress, Target};

const R_AMDGPU_ABS64: RelocationType = RelocationType(3);
const R_AMDGPU_RELATIVE64: RelocationType = RelocationType(13);
/// A kernel that executes more than so many is taken for one that does not end, as one may that lacks a wait.
const MOST_INSTRUCTIONS: u64 = 1 << 19;

/// Bytes at an address of the GPU.
struct Area {
    address: u64,
    bytes: Box<[AtomicU64]>,
}

/// How far the clock goes each time that it is read: a prime, so that sums of times tell.
pub(crate) const TICK: u64 = 7919;

/// The machine.
pub(crate) struct Machine {
    target: Target,
    areas: Vec<Area>,
    clock: AtomicU64,
    /// Bytes of private memory of each work-item.
    private: u32,
    is_late: bool,
}

// SAFETY: pointers lead into boxed atomics, which may be written through shared references and live as long as the device; the bounds are
// checked.
unsafe impl Device for Machine {
    fn translate(&self, address: u64, length: usize) -> Option<*mut u8> {
        let area = self.areas.iter().find(|area| area.holds(address, length))?;
        Some(area.bytes.as_ptr().cast::<u8>().cast_mut().wrapping_add((address - area.address) as usize))
    }

    fn clock(&self) -> u64 {
        self.clock.fetch_add(TICK, Ordering::Relaxed)
    }

    fn send_message(&self, _: u32, _: u32) {}

    fn target(&self) -> Target {
        self.target
    }
}

impl Area {
    fn holds(&self, address: u64, length: usize) -> bool {
        let size = self.bytes.len() as u64 * 8;
        address.checked_sub(self.address).is_some_and(|into| into + length as u64 <= size)
    }
}

impl Machine {
    pub(crate) fn new(target: Target) -> Machine {
        Machine { target, areas: Vec::new(), clock: AtomicU64::new(1 << 40), private: 16384, is_late: true }
    }

    /// One whose memory is not late and does not take long to make: what a run takes is what executing its instructions takes.
    pub(crate) fn prompt(target: Target) -> Machine {
        Machine { private: 256, is_late: false, ..Machine::new(target) }
    }

    /// Memory at an address, all zero.
    pub(crate) fn area(&mut self, address: u64, length: usize) {
        let bytes = (0..length.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        self.areas.push(Area { address, bytes });
    }

    /// Loads a code object with its virtual address 0 at `base`.
    pub(crate) fn load(&mut self, object: &[u8], base: u64) {
        let elf = ElfFile64::<LittleEndian>::parse(object).expect("an ELF file");
        let end = elf.segments().map(|load| load.address() + load.size()).max().expect("segments");
        assert!(elf.segments().is_sorted_by_key(|load| load.address()));
        self.area(base, end as usize + 64);
        for load in elf.segments() {
            self.write(base + load.address(), load.data().expect("bytes"));
        }
        let symbols = elf.dynamic_symbol_table().expect("symbols");
        for (offset, relocation) in elf.dynamic_relocations().expect("symbols") {
            let symbol = match relocation.target() {
                RelocationTarget::Symbol(number) => {
                    symbols.symbol_by_index(number).expect("a symbol").address()
                }
                _ => 0,
            };
            let addend = relocation.addend().cast_unsigned();
            let value = match relocation.flags() {
                RelocationFlags::Elf { r_type: R_AMDGPU_RELATIVE64, .. } => base + addend,
                RelocationFlags::Elf { r_type: R_AMDGPU_ABS64, .. } => base + symbol + addend,
                other => panic!("relocation {other:?}"),
            };
            self.write(base + offset, &value.to_le_bytes());
        }
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) {
        let place = self.translate(address, bytes.len()).expect("memory");
        for (at, byte) in bytes.iter().enumerate() {
            // SAFETY: `translate` has checked the bounds; the bytes belong to atomics.
            unsafe { AtomicU8::from_ptr(place.wrapping_add(at)) }.store(*byte, Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self, address: u64, length: usize) -> Vec<u8> {
        let place = self.translate(address, length).expect("memory");
        // SAFETY: as in `write`.
        (0..length)
            .map(|at| unsafe { AtomicU8::from_ptr(place.wrapping_add(at)) }.load(Ordering::Relaxed))
            .collect()
    }

    pub(crate) fn read_u64(&self, address: u64, count: usize) -> Vec<u64> {
        let bytes = self.read(address, count * 8);
        bytes
            .chunks_exact(8)
            .map(|eight| u64::from_le_bytes(eight.try_into().expect("eight bytes")))
            .collect()
    }

    /// Runs the kernel of a descriptor to its end; returns what was executed. Memory is as late as its waits allow, where it is late.
    pub(crate) fn run(
        &self,
        descriptor: u64,
        arguments: u64,
        groups: u32,
        items: u16,
    ) -> Result<Counts, String> {
        let mut packet = [0; 64];
        packet[4..6].copy_from_slice(&items.to_le_bytes());
        packet[12..16].copy_from_slice(&(groups * u32::from(items) - 5).to_le_bytes());
        packet[24..28].copy_from_slice(&self.private.to_le_bytes());
        packet[28..32].copy_from_slice(&4096u32.to_le_bytes());
        packet[32..40].copy_from_slice(&descriptor.to_le_bytes());
        packet[40..48].copy_from_slice(&arguments.to_le_bytes());
        let mut execution = Execution::start(&packet, self).map_err(|trap| trap.to_string())?;
        execution.count();
        if self.is_late {
            execution.delay_memory();
        }
        while execution.advance(self, 1 << 16).map_err(|trap| trap.to_string())? == Progress::Running {
            if execution.instructions() > MOST_INSTRUCTIONS {
                return Err("it does not end".to_string());
            }
        }
        Ok(execution.counts().expect("they were asked for").clone())
    }
}
