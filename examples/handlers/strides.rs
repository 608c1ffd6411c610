//! A handler for rpd probe: how far apart the addresses of neighbouring lanes are, for each line of the source.
//!
//!     rustc -O --crate-type cdylib -o strides.so strides.rs
//!     rpd probe -i -a ./strides.so -- ./app

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};

// As rpd_handler.h has them, up to the last field that is of use here.
#[repr(C)]
pub struct Dispatch {
    size: u32,
    process: u32,
    number: u64,
    kernel: *const c_char,
}

#[repr(C)]
pub struct Message {
    size: u32,
    kind: u32,
    detail: u32,
    lanes: u32,
    exec: u64,
    timestamp: u64,
    file: *const c_char,
    line: u32,
    column: u32,
    workgroup: [u16; 3],
    wave: u16,
    place: [u32; 3],
    address_count: u32,
    addresses: *const u64,
}

#[repr(C)]
pub struct Output {
    size: u32,
    completed: u32,
    context: *mut c_void,
    print: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
    value: unsafe extern "C" fn(*mut c_void, *const c_char, f64),
}

struct Strides {
    kernel: String,
    lines: BTreeMap<(String, u32), Vec<u64>>,
}

unsafe fn text(text: *const c_char) -> String {
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[unsafe(no_mangle)]
pub extern "C" fn rpd_handler_version() -> u32 {
    1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_handler_create(dispatch: *const Dispatch) -> *mut c_void {
    let kernel = unsafe { text((*dispatch).kernel) };
    Box::into_raw(Box::new(Strides { kernel, lines: BTreeMap::new() })).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_handler_message(handler: *mut c_void, message: *const Message) {
    let (strides, message) = unsafe { (&mut *handler.cast::<Strides>(), &*message) };
    if message.kind == 0 && message.address_count > 1 {
        let (file, addresses) = unsafe { (text(message.file), std::slice::from_raw_parts(message.addresses, 2)) };
        let file = file.rsplit('/').next().unwrap_or_default().to_string();
        strides.lines.entry((file, message.line)).or_default().push(addresses[1].abs_diff(addresses[0]));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_handler_finish(handler: *mut c_void, output: *const Output) {
    let (strides, output) = unsafe { (Box::from_raw(handler.cast::<Strides>()), &*output) };
    for ((file, line), apart) in &strides.lines {
        let average = apart.iter().sum::<u64>() as f64 / apart.len() as f64;
        let report = format!("{}: {file}:{line}: {average:.0} bytes from lane to lane\n", strides.kernel);
        let name = CString::new(format!("stride {file}:{line}")).unwrap();
        unsafe {
            (output.print)(output.context, report.as_ptr().cast(), report.len());
            (output.value)(output.context, name.as_ptr(), average);
        }
    }
}
