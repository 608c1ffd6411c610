//! Functions of the libraries in the process, by the loader's list and their own symbol tables: no look-up that could come back here,
//! allocate, or change what `dlerror` says, and no function that somebody else may have in front of the C library's.

use std::arch::asm;
use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{self, AtomicUsize};

/// Where a search begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The program itself.
    Start,
    /// The library behind this one.
    BehindThis,
}

/// An entry of a dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// What the loader tells debuggers (glibc link.h, struct r_debug), in so far as it is read here.
#[repr(C)]
struct Debug {
    version: c_int,
    first: *const LoadedLibrary,
}

/// A library in the loader's list (glibc link.h, struct link_map).
#[repr(C)]
struct LoadedLibrary {
    base: u64,
    file: *const c_char,
    dynamic: *const Dynamic,
    next: *const LoadedLibrary,
}

// Tags of entries (ELF gABI, and glibc elf.h for those of GNU).
const END: i64 = 0;
const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const GNU_HASH: i64 = 0x6fff_fef5;
const VERSIONS: i64 = 0x6fff_fff0;

/// Type of a symbol that is a function, in the lower half of its info.
const FUNCTION: u8 = 2;
/// A symbol that only those find who ask for its version.
const HIDDEN: u16 = 0x8000;

unsafe extern "C" {
    /// The first byte of this library; the linker's.
    static __ehdr_start: u8;
}

#[derive(Clone, Copy)]
struct HashedName<'a> {
    text: &'a CStr,
    hash: u32,
}

struct SymbolSearch<'a> {
    name: HashedName<'a>,
    begun: bool,
    found: usize,
}

struct Question {
    address: u64,
    /// How many libraries are still to be looked at.
    libraries: usize,
    is_inside: bool,
}

type Look = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;
type Iterate = unsafe extern "C" fn(Look, *mut c_void) -> c_int;

/// The order of two names, by their bytes.
///
/// # Safety
/// Both are NUL-terminated.
pub(crate) unsafe fn compare(one: *const c_char, other: *const c_char) -> Ordering {
    let mut place = 0;
    loop {
        // SAFETY: neither has ended before this place.
        let (byte, its) = unsafe { (*one.add(place).cast::<u8>(), *other.add(place).cast::<u8>()) };
        if byte != its || byte == 0 {
            return byte.cmp(&its);
        }
        place += 1;
    }
}

impl HashedName<'_> {
    fn of(text: &CStr) -> HashedName<'_> {
        let add = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add((*byte).into());
        HashedName { text, hash: text.to_bytes().iter().fold(5381, add) }
    }
}

/// The function called `name` of the first library in the loader's list that has one.
pub(crate) fn function(name: &CStr, from: From) -> Option<usize> {
    let mut search = SymbolSearch { name: HashedName::of(name), begun: from == From::Start, found: 0 };
    // SAFETY: `look` gets the search it expects.
    unsafe { iterate(look, (&raw mut search).cast()) };
    (search.found != 0).then_some(search.found)
}

/// Whether `address` is in the program itself, not in a library.
pub(crate) fn is_of_program(address: usize) -> bool {
    is_in(address, 1)
}

/// Whether `address` is in the program or in a library that is loaded.
pub(crate) fn is_loaded(address: usize) -> bool {
    is_in(address, usize::MAX)
}

/// Whether `address` is in one of the first `libraries` of the loader's list.
fn is_in(address: usize, libraries: usize) -> bool {
    let mut question = Question { address: address as u64, libraries, is_inside: false };
    // SAFETY: `contains` gets the question it expects.
    unsafe { iterate(contains, (&raw mut question).cast()) };
    question.is_inside
}

/// How many libraries have left the process so far.
pub(crate) fn unloaded() -> u64 {
    let mut unloaded = 0_u64;
    // SAFETY: `count` gets the number it expects.
    unsafe { iterate(count_unloaded, (&raw mut unloaded).cast()) };
    unloaded
}

/// Shows `look` the loader's list, of which the program is the first. The list is held meanwhile: by a lock of its own, which nobody keeps
/// while code of others runs.
///
/// # Safety
/// `argument` is what `look` expects.
unsafe fn iterate(look: Look, argument: *mut c_void) {
    static REAL: RealFunction = RealFunction::new(c"dl_iterate_phdr");
    let Some(real) = REAL.get() else { return };
    // SAFETY: that function's type; the caller's promise.
    unsafe { std::mem::transmute::<usize, Iterate>(real)(look, argument) };
}

/// What the loader tells debuggers: the address in this library's own table, where it is zero until the loader has put it there.
#[inline(always)]
fn debug() -> *const Debug {
    let debug: *const Debug;
    // SAFETY: reads the address out of that table.
    unsafe {
        asm!("mov {}, [rip + _r_debug@GOTPCREL]", out(reg) debug, options(pure, readonly, nostack, preserves_flags));
    }
    debug
}

/// Whether the loader has relocated this library. Before that, no function or variable of another crate may be touched: their addresses
/// are in tables that are empty, and so this is a part of its caller.
#[inline(always)]
pub(crate) fn is_relocated() -> bool {
    !debug().is_null()
}

/// The next function of a name: the C library's, or that of somebody else who has one.
pub(crate) struct RealFunction {
    name: &'static CStr,
    /// Zero until it was asked for.
    known: AtomicUsize,
}

impl RealFunction {
    pub(crate) const fn new(name: &'static CStr) -> RealFunction {
        RealFunction { name, known: AtomicUsize::new(0) }
    }

    /// Its address. None while this library is not relocated, which others' resolvers of indirect functions may come before.
    pub(crate) fn get(&self) -> Option<usize> {
        let known = self.known.load(atomic::Ordering::Relaxed);
        if known != 0 {
            return Some(known);
        }
        let found = first_function(self.name)?;
        self.known.store(found, atomic::Ordering::Relaxed);
        Some(found)
    }
}

/// The function of the loader or the C library that is called `name`: that of the first library behind this one that has one. The list is
/// not held, but libraries that the program was started with stay, and the C library is one. None while this library is not relocated.
fn first_function(name: &CStr) -> Option<usize> {
    let debug = debug();
    if debug.is_null() {
        return None;
    }
    let (name, this) = (HashedName::of(name), (&raw const __ehdr_start) as u64);
    // SAFETY: the loader's own list, of which the beginning does not change.
    unsafe {
        let mut library = (*debug).first;
        let mut begun = false;
        while !library.is_null() {
            let LoadedLibrary { base, dynamic, next, .. } = library.read();
            if base == this {
                begun = true;
            } else if begun && let Some(found) = look_up(base, dynamic, name) {
                return Some(found);
            }
            library = next;
        }
    }
    None
}

unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader's own entry, and the search above.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<SymbolSearch<'_>>()) };
    if info.dlpi_addr == (&raw const __ehdr_start) as u64 {
        search.begun = true;
    } else if search.begun {
        // SAFETY: the loader keeps its libraries where they are during the call.
        search.found = unsafe {
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            let section = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC);
            section.and_then(|section| {
                look_up(info.dlpi_addr, (info.dlpi_addr + section.p_vaddr) as *const Dynamic, search.name)
            })
        }
        .unwrap_or(0);
    }
    (search.found != 0).into()
}

unsafe extern "C" fn contains(info: *mut libc::dl_phdr_info, _: usize, question: *mut c_void) -> c_int {
    // SAFETY: the loader's own entry with its program headers, and the question above.
    let (info, question, headers) = unsafe {
        let headers = std::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into());
        (&*info, &mut *question.cast::<Question>(), headers)
    };
    let place = question.address.wrapping_sub(info.dlpi_addr);
    question.is_inside = headers
        .iter()
        .any(|header| header.p_type == libc::PT_LOAD && place.wrapping_sub(header.p_vaddr) < header.p_memsz);
    question.libraries -= 1;
    (question.is_inside || question.libraries == 0).into()
}

unsafe extern "C" fn count_unloaded(info: *mut libc::dl_phdr_info, _: usize, unloaded: *mut c_void) -> c_int {
    // SAFETY: the loader's own entry, and the number above.
    unsafe { *unloaded.cast::<u64>() = (*info).dlpi_subs };
    // All entries have the same.
    1
}

/// The function of the library at `base` with that dynamic section.
///
/// # Safety
/// The library is loaded, and stays; the section is null or its own.
unsafe fn look_up(base: u64, section: *const Dynamic, name: HashedName<'_>) -> Option<usize> {
    if section.is_null() {
        return None;
    }
    let (mut strings, mut symbols, mut table, mut versions) = (0, 0, 0, 0);
    // SAFETY: the section ends with an entry that says so.
    unsafe {
        let mut entry = section;
        while (*entry).tag != END {
            let value = (*entry).value;
            // The loader has made addresses of the offsets, but for those of the kernel's own library.
            let address = if value < base { base + value } else { value };
            match (*entry).tag {
                STRINGS => strings = address,
                SYMBOLS => symbols = address,
                GNU_HASH => table = address,
                VERSIONS => versions = address,
                _ => {}
            }
            entry = entry.add(1);
        }
    }
    if strings == 0 || symbols == 0 || table == 0 {
        return None;
    }
    let table = table as *const u32;
    // SAFETY: the layout of that table: four numbers, the filter's words, a chain's beginning for each bucket, and the symbols' hashes,
    // of which the last one of a chain is odd.
    unsafe {
        let [buckets, first, words, shift] = table.cast::<[u32; 4]>().read();
        let filter = table.add(4).cast::<u64>();
        let word = filter.add((name.hash / 64).checked_rem(words)? as usize).read_unaligned();
        let bits = 1_u64 << (name.hash % 64) | 1_u64 << (name.hash.wrapping_shr(shift) % 64);
        if word & bits != bits {
            return None;
        }
        let starts = filter.add(words as usize).cast::<u32>();
        let hashes = starts.add(buckets as usize);
        let mut index = starts.add(name.hash.checked_rem(buckets)? as usize).read();
        while index >= first {
            let hash = hashes.add((index - first) as usize).read();
            let symbol = &*(symbols as *const libc::Elf64_Sym).add(index as usize);
            let is_default =
                versions == 0 || (versions as *const u16).add(index as usize).read() & HIDDEN == 0;
            if hash | 1 == name.hash | 1
                && symbol.st_shndx != 0
                && symbol.st_info & 15 == FUNCTION
                && is_default
                && compare((strings + u64::from(symbol.st_name)) as *const c_char, name.text.as_ptr()).is_eq()
            {
                return Some((base + symbol.st_value) as usize);
            }
            if hash & 1 == 1 {
                break;
            }
            index += 1;
        }
    }
    None
}
