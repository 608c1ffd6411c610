//! Functions of ours in place of the program's, where this library came too late for the dynamic loader to find them first: by NVTX's
//! injection or as a tool of the HSA runtime, without LD_PRELOAD.
//!
//! What the loaded libraries have bound, or will bind lazily, stands in their global offset tables. Libraries that are loaded later
//! find the C library's functions: their calls are not seen.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One function to be replaced.
pub struct GotEntry {
    /// Its name.
    pub name: &'static CStr,
    /// What the program finds under that name.
    pub theirs: usize,
    /// What it is to find.
    pub ours: usize,
}

// Elf64_Dyn, Elf64_Rela and Elf64_Sym (System V ABI, x86-64 supplement).
#[repr(C)]
struct DynamicEntry {
    tag: u64,
    value: u64,
}
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

mod tag {
    pub(super) const PLT_SIZE: u64 = 2;
    pub(super) const STRINGS: u64 = 5;
    pub(super) const SYMBOLS: u64 = 6;
    pub(super) const RELOCATIONS: u64 = 7;
    pub(super) const SIZE: u64 = 8;
    pub(super) const PLT: u64 = 23;
}
const GLOB_DAT: u64 = 6;
const JUMP_SLOT: u64 = 7;
/// SHN_UNDEF: the library has no such symbol itself.
const UNDEFINED: u16 = 0;

/// Puts functions of ours into the tables of all libraries that are loaded.
pub fn replace(replacements: &[GotEntry]) {
    unsafe extern "C" fn each(module: *mut libc::dl_phdr_info, _: usize, replacements: *mut c_void) -> c_int {
        // SAFETY: what is passed below, and the loader's own description of a library that stays while this runs.
        unsafe {
            let replacements = &*replacements.cast::<&[GotEntry]>();
            replace_in(&*module, replacements);
        }
        0
    }
    let mut given = replacements;
    // SAFETY: `each` has the callback's type and gets the slice it expects, only during the call.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut given).cast()) };
}

/// # Safety
/// The description of a library that is loaded and stays.
unsafe fn replace_in(module: &libc::dl_phdr_info, replacements: &[GotEntry]) {
    let base = module.dlpi_addr;
    // SAFETY: the loader's own table.
    let headers = unsafe { std::slice::from_raw_parts(module.dlpi_phdr, module.dlpi_phnum.into()) };
    let range = |header: &libc::Elf64_Phdr| base + header.p_vaddr..base + header.p_vaddr + header.p_memsz;
    let code: Vec<Range<u64>> = headers
        .iter()
        .filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_X != 0)
        .map(range)
        .collect();
    // The loader has made whole pages of it read-only.
    let read_only = headers.iter().find(|header| header.p_type == libc::PT_GNU_RELRO).map(range);
    let read_only = read_only.map(|range| page_of(range.start)..page_of(range.end));
    let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else { return };
    // Our own calls, and those of the library that has the functions, are theirs.
    let is_in = |address: usize| code.iter().any(|range| range.contains(&(address as u64)));
    if replacements.iter().any(|replacement| is_in(replacement.ours) || is_in(replacement.theirs)) {
        return;
    }
    let entries = (base + dynamic.p_vaddr) as *const DynamicEntry;
    let count = dynamic.p_memsz as usize / size_of::<DynamicEntry>();
    // SAFETY: the library's dynamic section.
    let entries = unsafe { std::slice::from_raw_parts(entries, count) };
    let entry = |tag| entries.iter().find(|entry| entry.tag == tag).map(|entry| entry.value);
    // The loader has made addresses of these, except where the section is read-only.
    let address = |tag| entry(tag).map(|value| if value < base { base + value } else { value });
    let (Some(strings), Some(symbols)) = (address(tag::STRINGS), address(tag::SYMBOLS)) else { return };
    for (table, size) in [(tag::RELOCATIONS, tag::SIZE), (tag::PLT, tag::PLT_SIZE)] {
        let (Some(table), Some(size)) = (address(table), entry(size)) else { continue };
        let count = size as usize / size_of::<Relocation>();
        // SAFETY: the library's relocations, which the loader has worked through.
        for relocation in unsafe { std::slice::from_raw_parts(table as *const Relocation, count) } {
            let kind = relocation.info & 0xffff_ffff;
            if kind != GLOB_DAT && kind != JUMP_SLOT {
                continue;
            }
            // SAFETY: a symbol of that library, as its relocation says, and its name.
            let (symbol, name) = unsafe {
                let symbol = &*(symbols as *const Symbol).add((relocation.info >> 32) as usize);
                (symbol, CStr::from_ptr((strings as *const c_char).add(symbol.name as usize)))
            };
            let Some(replacement) = replacements.iter().find(|replacement| replacement.name == name) else {
                continue;
            };
            let slot = base + relocation.offset;
            // SAFETY: a word of the library's table, which others change as a whole too.
            let bound = unsafe { &*(slot as *const AtomicUsize) };
            let now = bound.load(Ordering::Relaxed);
            // Not bound yet, it leads into the library's own code; so does one that is bound to a function of the library's own.
            let is_unbound = kind == JUMP_SLOT && symbol.section == UNDEFINED && is_in(now);
            if now == replacement.theirs || is_unbound {
                let locked = read_only.as_ref().is_some_and(|range| range.contains(&slot));
                put(bound, replacement.ours, locked);
            }
        }
    }
}

/// `locked`: the loader has made the place read-only. Who has made it writable since finds it so afterwards.
fn put(place: &AtomicUsize, function: usize, locked: bool) {
    let address = ptr::from_ref(place).addr() as u64;
    let is_writable = || {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        maps.lines().find_map(|line| protection(line, address)).map(|flags| flags.contains('w'))
    };
    match if locked { is_writable() } else { Some(true) } {
        Some(true) => place.store(function, Ordering::Relaxed),
        Some(false) => {
            let page = page_of(address) as *mut c_void;
            let size = page_size() as usize;
            // SAFETY: the page of a table that everybody only reads: it stays readable throughout.
            unsafe {
                if libc::mprotect(page, size, libc::PROT_READ | libc::PROT_WRITE) == 0 {
                    place.store(function, Ordering::Relaxed);
                    libc::mprotect(page, size, libc::PROT_READ);
                }
            }
        }
        None => {}
    }
}

/// What may be done with the memory at `address`, if this line of /proc/self/maps is about it: `r--p`.
fn protection(line: &str, address: u64) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let range = u64::from_str_radix(begin, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
    words.next().filter(|_| range.contains(&address))
}

fn page_of(address: u64) -> u64 {
    address / page_size() * page_size()
}

fn page_size() -> u64 {
    // SAFETY: no pointers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_memory_map_tells_what_may_be_done_there() {
        let line = "7f12a000-7f12c000 r--p 00003000 08:01 42   /usr/lib/a library.so";
        assert_eq!(protection(line, 0x7f12_b008), Some("r--p"));
        assert_eq!(protection(line, 0x7f12_c000), None);
        assert_eq!(protection("", 0), None);
    }
}
