//! Functions of the libraries in the process, by the loader's list and their own symbol tables: no look-up that could come back here,
//! allocate, or change what `dlerror` says.

use std::ffi::{CStr, c_char, c_int, c_void};

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

struct Search<'a> {
    name: &'a CStr,
    hash: u32,
    begun: bool,
    found: usize,
}

/// The function called `name` of the first library in the loader's list that has one.
pub(crate) fn function(name: &CStr, from: From) -> Option<usize> {
    let hash = name
        .to_bytes()
        .iter()
        .fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add((*byte).into()));
    let mut search = Search { name, hash, begun: from == From::Start, found: 0 };
    // SAFETY: `look` matches the callback's type and gets the search it expects, only during the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    (search.found != 0).then_some(search.found)
}

unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader's own entry, and the search above.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
    if info.dlpi_addr == (&raw const __ehdr_start) as u64 {
        search.begun = true;
    } else if search.begun {
        // SAFETY: the loader keeps its libraries where they are during the call.
        search.found = unsafe { look_up(info, search) }.unwrap_or(0);
    }
    (search.found != 0).into()
}

/// # Safety
/// The library is loaded, and stays.
unsafe fn look_up(info: &libc::dl_phdr_info, search: &Search<'_>) -> Option<usize> {
    let (mut strings, mut symbols, mut table, mut versions) = (0, 0, 0, 0);
    // SAFETY: its program headers, and its dynamic section, which ends with an entry that says so.
    unsafe {
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        let section = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let mut entry = (info.dlpi_addr + section.p_vaddr) as *const Dynamic;
        while (*entry).tag != END {
            let value = (*entry).value;
            // The loader has made addresses of the offsets, but for those of the kernel's own library.
            let address = if value < info.dlpi_addr { info.dlpi_addr + value } else { value };
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
        let word = filter.add((search.hash / 64 % words) as usize).read_unaligned();
        let bits = 1_u64 << (search.hash % 64) | 1_u64 << ((search.hash >> shift) % 64);
        if word & bits != bits {
            return None;
        }
        let starts = filter.add(words as usize).cast::<u32>();
        let hashes = starts.add(buckets as usize);
        let mut index = starts.add((search.hash % buckets) as usize).read();
        while index >= first {
            let hash = hashes.add((index - first) as usize).read();
            let symbol = &*(symbols as *const libc::Elf64_Sym).add(index as usize);
            let is_default =
                versions == 0 || (versions as *const u16).add(index as usize).read() & HIDDEN == 0;
            if hash | 1 == search.hash | 1
                && symbol.st_shndx != 0
                && symbol.st_info & 15 == FUNCTION
                && is_default
                && CStr::from_ptr((strings + u64::from(symbol.st_name)) as *const c_char) == search.name
            {
                return Some((info.dlpi_addr + symbol.st_value) as usize);
            }
            if hash & 1 == 1 {
                break;
            }
            index += 1;
        }
    }
    None
}
