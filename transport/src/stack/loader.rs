//! The loaded object that an address lies in. Only the dynamic loader knows it at every moment.
//!
//! glibc 2.35 and later answer without a lock and inside signal handlers (`_dl_find_object`). Before that the loader's list is
//! walked under its lock, as the C++ runtime did for every frame of an exception.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::path::PathBuf;

/// An object in memory. Addresses are those of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoadedObject {
    /// First address of its first segment: where its ELF header lies.
    pub(super) start: usize,
    /// One past its last segment.
    pub(super) end: usize,
    /// Address in this process minus address in the file.
    pub(super) bias: usize,
    /// Its `.eh_frame_hdr`, 0 for none.
    pub(super) eh_frame_hdr: usize,
    /// Address of the loader's name of it. To be read only while the object stays loaded.
    name: usize,
}

/// The beginning of the loader's `struct link_map` (link.h).
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const c_char,
}

/// `struct dl_find_object` of x86-64 (dlfcn.h, glibc 2.35).
#[repr(C)]
struct DlFindObject {
    flags: u64,
    start: usize,
    end: usize,
    link_map: *const LinkMap,
    eh_frame_hdr: usize,
    reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut DlFindObject) -> c_int;

/// How the loader is asked.
#[derive(Clone, Copy)]
pub(super) struct DynamicLoader {
    find_object: Option<FindObject>,
}

impl DynamicLoader {
    /// Looks for what this C library offers.
    pub(super) fn new() -> DynamicLoader {
        // SAFETY: a valid name.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        // SAFETY: the only function of that name is glibc's, of that type; null becomes None.
        DynamicLoader { find_object: unsafe { mem::transmute::<*mut c_void, Option<FindObject>>(symbol) } }
    }

    /// One that walks the list, as under an older glibc.
    #[cfg(test)]
    pub(super) fn old() -> DynamicLoader {
        DynamicLoader { find_object: None }
    }

    /// The object that `address` lies in, when it lies in one.
    #[inline]
    pub(super) fn find(self, address: usize) -> Option<LoadedObject> {
        match self.find_object {
            Some(find) => quickly(find, address),
            None => by_list(address).map(|listed| listed.object),
        }
    }
}

#[inline]
fn quickly(find: FindObject, address: usize) -> Option<LoadedObject> {
    let mut found = DlFindObject {
        flags: 0,
        start: 0,
        end: 0,
        link_map: std::ptr::null(),
        eh_frame_hdr: 0,
        reserved: [0; 7],
    };
    // SAFETY: any address may be asked for; the place to fill has the size that x86-64 has had since 2.35.
    if unsafe { find(address as *mut c_void, &mut found) } != 0 {
        return None;
    }
    // SAFETY: the link map of a loaded object.
    let (bias, name) = unsafe { ((*found.link_map).bias, (*found.link_map).name) };
    Some(LoadedObject {
        start: found.start,
        end: found.end,
        bias,
        eh_frame_hdr: found.eh_frame_hdr,
        name: name as usize,
    })
}

fn by_list(address: usize) -> Option<Listed> {
    let mut search = (address, None);
    // SAFETY: the callback gets `search` back and is done with it when the call returns.
    unsafe { libc::dl_iterate_phdr(Some(holds), (&raw mut search).cast()) };
    search.1
}

/// An object as the loader lists it.
struct Listed {
    object: LoadedObject,
    /// Place and number of its program headers.
    headers: (*const libc::Elf64_Phdr, usize),
}

unsafe extern "C" fn holds(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: `by_list` passes its own pair, and the loader a valid description.
    let (search, info) = unsafe { (&mut *search.cast::<(usize, Option<Listed>)>(), &*info) };
    let headers = (info.dlpi_phdr, usize::from(info.dlpi_phnum));
    if headers.0.is_null() {
        return 0;
    }
    // SAFETY: the program headers of a loaded object.
    let all = unsafe { std::slice::from_raw_parts(headers.0, headers.1) };
    let bias = info.dlpi_addr as usize;
    let address = |offset: u64| bias.wrapping_add(offset as usize);
    let loaded = || all.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loaded().map(|header| address(header.p_vaddr)).min().unwrap_or(0);
    let end = loaded().map(|header| address(header.p_vaddr + header.p_memsz)).max().unwrap_or(0);
    if !(start..end).contains(&search.0) {
        return 0;
    }
    let unwind = all.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME);
    let object = LoadedObject {
        // A segment begins anywhere in a page; its mapping begins with the page.
        start: start & !0xfff,
        end,
        bias,
        eh_frame_hdr: unwind.map_or(0, |header| address(header.p_vaddr)),
        name: info.dlpi_name as usize,
    };
    search.1 = Some(Listed { object, headers });
    1
}

impl LoadedObject {
    /// Its program headers; none for an object of another namespace (dlmopen). Takes the loader's lock.
    ///
    /// # Safety
    /// The object is loaded, and stays so as long as the result is used.
    pub(super) unsafe fn headers(&self) -> &'static [libc::Elf64_Phdr] {
        let listed = by_list(self.start).map(|listed| listed.headers);
        // SAFETY: the loader's own, as long as the object is loaded.
        listed.map_or(&[], |(first, count)| unsafe { std::slice::from_raw_parts(first, count) })
    }

    /// The loader's name of it: the path that it was found by, mostly.
    ///
    /// # Safety
    /// The object is loaded, and stays so as long as the result is used.
    pub(super) unsafe fn name(&self) -> &'static CStr {
        match self.name {
            0 => c"",
            // SAFETY: the caller's promise; the loader's names are NUL-terminated.
            name => unsafe { CStr::from_ptr(name as *const c_char) },
        }
    }

    /// Where its file is, or was; a name without a slash is not a file's (the kernel's vDSO).
    ///
    /// # Safety
    /// The object is loaded, and stays so during the call.
    pub(super) unsafe fn path(&self) -> PathBuf {
        // SAFETY: the caller's promise.
        match unsafe { self.name() }.to_string_lossy().as_ref() {
            // The loader has no name for the program itself.
            "" => std::fs::read_link("/proc/self/exe").unwrap_or_default(),
            name if name.contains('/') => std::path::absolute(name).unwrap_or_else(|_| name.into()),
            name => name.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_find_the_same_objects() {
        let here = both_ways_find_the_same_objects as *const () as usize;
        let in_libc = libc::getpid as *const () as usize;
        for address in [here, in_libc] {
            let (new, old) =
                (DynamicLoader::new().find(address).unwrap(), DynamicLoader::old().find(address).unwrap());
            assert!((new.start..new.end).contains(&address));
            assert_eq!((new.start, new.bias, new.eh_frame_hdr), (old.start, old.bias, old.eh_frame_hdr));
            // SAFETY: the test program and the C library stay loaded.
            assert_eq!(unsafe { new.path() }, unsafe { old.path() });
        }
        // SAFETY: as above.
        let path = unsafe { DynamicLoader::new().find(here).unwrap().path() };
        assert_eq!(path, std::env::current_exe().unwrap());
    }

    #[test]
    fn other_memory_is_no_object() {
        let heap = Box::new(0);
        for loader in [DynamicLoader::new(), DynamicLoader::old()] {
            assert_eq!(loader.find(&raw const *heap as usize), None);
            assert_eq!(loader.find(usize::MAX), None);
        }
    }
}
