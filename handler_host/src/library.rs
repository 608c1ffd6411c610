//! A library with the functions of include/rpd_handler.h.

#![allow(unsafe_code)]

use std::error::Error as _;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;

use libloading::Library;
use rpd_analyzers::handler_protocol::HandledDispatch;
use rpd_dh_comms::message::Message;

/// RPD_HANDLER_VERSION.
const VERSION: u32 = 1;

/// `struct rpd_dispatch`.
#[repr(C)]
struct DispatchView {
    size: u32,
    process: u32,
    number: u64,
    kernel: *const c_char,
    target: *const c_char,
    workgroups: [u32; 3],
    waves: u32,
}

/// `struct rpd_message`.
#[repr(C)]
struct MessageView {
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
    data: *const c_void,
    data_size: usize,
}

/// `struct rpd_output`.
#[repr(C)]
struct OutputView {
    size: u32,
    completed: u32,
    context: *mut c_void,
    print: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
    value: unsafe extern "C" fn(*mut c_void, *const c_char, f64),
}

type Create = unsafe extern "C" fn(*const DispatchView) -> *mut c_void;
type TakeMessage = unsafe extern "C" fn(*mut c_void, *const MessageView);
type Finish = unsafe extern "C" fn(*mut c_void, *const OutputView);

/// See the module. It stays loaded for ever.
#[derive(Clone, Copy, Debug)]
pub struct HandlerLibrary {
    create: Create,
    message: TakeMessage,
    finish: Finish,
}

/// What a handler has found.
#[derive(Debug, Default)]
pub struct HandlerFound {
    /// What it printed.
    pub text: String,
    /// Numbers for the trace.
    pub values: Vec<(String, f64)>,
}

impl HandlerLibrary {
    /// Loads it.
    ///
    /// # Errors
    /// Why it is no handler, and what to do.
    pub fn open(path: &Path) -> Result<HandlerLibrary, String> {
        // SAFETY: the user's own code runs, in a process that is there for it.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            // The loader's own words.
            error.source().map_or_else(|| error.to_string(), ToString::to_string)
        })?;
        let library: &'static Library = Box::leak(Box::new(library));
        let symbol = |name: &str| {
            // SAFETY: only looked for.
            unsafe { library.get::<*const c_void>(name.as_bytes()) }.ok().map(|found| *found)
        };
        if symbol("rpd_handler_version").is_none() && symbol("getMessageHandlers").is_some() {
            return Err("it is a handler of omniprobe's for C++, which rpd does not load: give it the functions of rpd_handler.h".into());
        }
        let function = |name: &str| {
            symbol(name)
                .filter(|found| !found.is_null())
                .ok_or(format!("it has no function {name}: rpd_handler.h says what a handler has"))
        };
        // SAFETY: functions of these types, by rpd_handler.h.
        unsafe {
            let version: unsafe extern "C" fn() -> u32 =
                std::mem::transmute(function("rpd_handler_version")?);
            let found = version();
            if found != VERSION {
                return Err(format!(
                    "it is for version {found} of rpd_handler.h, and this rpd has version {VERSION}"
                ));
            }
            Ok(HandlerLibrary {
                create: std::mem::transmute::<*const c_void, Create>(function("rpd_handler_create")?),
                message: std::mem::transmute::<*const c_void, TakeMessage>(function("rpd_handler_message")?),
                finish: std::mem::transmute::<*const c_void, Finish>(function("rpd_handler_finish")?),
            })
        }
    }

    /// Tells it of a dispatch.
    pub fn begin(self, process: u32, dispatch: &HandledDispatch) -> Handling {
        let [kernel, target] = [&dispatch.kernel, &dispatch.target].map(|text| c_text(text));
        let view = DispatchView {
            size: size_of::<DispatchView>() as u32,
            process,
            number: dispatch.number,
            kernel: kernel.as_ptr(),
            target: target.as_ptr(),
            workgroups: dispatch.workgroups,
            waves: dispatch.waves,
        };
        // SAFETY: as rpd_handler.h has it; the texts are kept.
        let data = unsafe { (self.create)(&view) };
        Handling { library: self, data, addresses: Vec::new(), _texts: [kernel, target] }
    }
}

/// A dispatch that a handler knows of.
#[derive(Debug)]
pub struct Handling {
    library: HandlerLibrary,
    data: *mut c_void,
    addresses: Vec<u64>,
    _texts: [CString; 2],
}

impl Handling {
    /// Gives it a message that is about that file.
    pub fn message(&mut self, message: &Message<'_>, file: &CStr) {
        let header = &message.header;
        let known = |number: u32| if number == u32::MAX { 0 } else { number };
        self.addresses.clear();
        self.addresses.extend(message.addresses().map(|(_, address)| address));
        let view = MessageView {
            size: size_of::<MessageView>() as u32,
            kind: header.kind,
            detail: header.detail,
            lanes: header.lanes.into(),
            exec: header.exec,
            timestamp: header.timestamp,
            file: file.as_ptr(),
            line: known(header.line),
            column: known(header.column),
            workgroup: header.block,
            wave: message.wave() as u16,
            place: message.place(),
            address_count: self.addresses.len() as u32,
            addresses: self.addresses.as_ptr(),
            data: message.data().as_ptr().cast(),
            data_size: message.data().len(),
        };
        // SAFETY: as rpd_handler.h has it.
        unsafe { (self.library.message)(self.data, &view) };
    }

    /// No more come.
    pub fn finish(self, completed: bool) -> HandlerFound {
        let mut found = HandlerFound::default();
        let view = OutputView {
            size: size_of::<OutputView>() as u32,
            completed: completed.into(),
            context: (&raw mut found).cast(),
            print,
            value,
        };
        // SAFETY: as rpd_handler.h has it; `found` is only used by the two functions meanwhile.
        unsafe { (self.library.finish)(self.data, &view) };
        found
    }
}

unsafe extern "C" fn print(context: *mut c_void, text: *const c_char, length: usize) {
    // SAFETY: the context that the handler was given, and so many bytes of text.
    let (found, text) =
        unsafe { (&mut *context.cast::<HandlerFound>(), std::slice::from_raw_parts(text.cast(), length)) };
    found.text.push_str(&String::from_utf8_lossy(text));
}

unsafe extern "C" fn value(context: *mut c_void, name: *const c_char, value: f64) {
    // SAFETY: the context that the handler was given, and a text that ends with 0.
    let (found, name) = unsafe { (&mut *context.cast::<HandlerFound>(), CStr::from_ptr(name)) };
    // JSON and SQLite have no other numbers.
    if value.is_finite() {
        found.values.push((name.to_string_lossy().into_owned(), value));
    }
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
