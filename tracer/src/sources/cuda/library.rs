//! libcuda and libcupti: found, the latter loaded where the program has not done so, and their functions by name.

use std::ffi::{CStr, CString, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, ptr};

use rpd_preload::library;
use rpd_preload::loaded::Loaded;

use super::abi::{self, status};

/// CUPTI, which stays loaded. A list: its functions, as NVIDIA names them, each with the type of its own.
pub(super) struct Cupti {
    /// As cuptiGetVersion has it.
    pub(super) version: u32,
    /// Where it was found.
    pub(super) path: PathBuf,
    pub(super) subscribe: abi::Subscribe,
    /// From 13.0 on: it also says who was first.
    pub(super) subscribe_v2: Option<abi::SubscribeV2>,
    pub(super) unsubscribe: abi::Unsubscribe,
    pub(super) enable_callback: abi::EnableCallback,
    pub(super) callback_name: abi::GetCallbackName,
    pub(super) set_attribute: abi::SetAttribute,
    pub(super) set_thread_id_type: Option<abi::SetThreadIdType>,
    pub(super) register_timestamp: Option<abi::RegisterTimestamp>,
    pub(super) timestamp: Option<abi::GetTimestamp>,
    pub(super) register_callbacks: abi::RegisterCallbacks,
    pub(super) enable: abi::SwitchKind,
    /// Single functions of the driver and of the runtime, from 12.5 on.
    pub(super) enable_api: Option<[abi::EnableApi; 2]>,
    pub(super) get_stream_id: Option<abi::GetStreamId>,
    /// Versions from 12.6 on have it.
    pub(super) tell_allocation_sources: Option<abi::Switch>,
    pub(super) flush_all: abi::FlushAll,
    pub(super) next_record: abi::NextRecord,
    pub(super) dropped: abi::Dropped,
    pub(super) finalize: abi::Finalize,
    result_string: abi::ResultString,
}

/// Why there is no CUPTI to be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoCupti {
    /// None was found.
    NotFound,
    /// What RPDT_CUPTI names could not be loaded, for that reason.
    NotThere(PathBuf, String),
    /// It lacks functions, or does not answer.
    NoLibrary(PathBuf),
    /// Its records are not known.
    TooOld(PathBuf),
}

impl std::fmt::Display for NoCupti {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoCupti::NotFound => write!(
                out,
                "no libcupti.so.13 or .12 was found (the CUDA toolkit has it, and the Python package nvidia-cuda-cupti); RPDT_CUPTI names one"
            ),
            NoCupti::NotThere(path, why) => {
                write!(out, "RPDT_CUPTI: {} cannot be loaded ({why})", path.display())
            }
            NoCupti::NoLibrary(path) => write!(out, "{} is no CUPTI that works", path.display()),
            NoCupti::TooOld(path) => write!(out, "{} is older than CUPTI 12.0", path.display()),
        }
    }
}

impl Cupti {
    /// The library that `wanted` names; otherwise the one that is loaded, or one that suits a driver of CUDA `major`.
    ///
    /// # Errors
    /// There is none that can be used.
    pub(super) fn find(wanted: Option<&Path>, major: u32) -> Result<Cupti, NoCupti> {
        if let Some(path) = wanted {
            // A pipe would keep the loader waiting.
            if path.components().count() > 1 && path.metadata().is_ok_and(|found| !found.is_file()) {
                return Err(NoCupti::NotThere(path.into(), "it is no file".to_string()));
            }
            let loaded = open(path).ok_or_else(|| NoCupti::NotThere(path.into(), Loaded::failure()))?;
            return Cupti::of(loaded, path.into());
        }
        let libraries = library::all();
        let is_it =
            |path: &Path| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libcupti.so"));
        let there = libraries.iter().map(|library| &library.path).find(|path| is_it(path));
        if let Some(path) = there {
            let loaded = open(path).ok_or_else(|| NoCupti::NoLibrary(path.clone()))?;
            return Cupti::of(loaded, path.clone());
        }
        let majors = if major >= 13 { [13, 12] } else { [12, 13] };
        let mut last = NoCupti::NotFound;
        for major in majors {
            let name = format!("libcupti.so.{major}");
            let places = places(&libraries, major);
            let files = places.into_iter().map(|folder| folder.join(&name)).filter(|file| file.exists());
            for file in std::iter::once(PathBuf::from(&name)).chain(files) {
                match open(&file).map(|loaded| Cupti::of(loaded, file)) {
                    Some(Ok(cupti)) => return Ok(cupti),
                    Some(Err(why)) => last = why,
                    None => {}
                }
            }
        }
        Err(last)
    }

    fn of(loaded: Loaded, path: PathBuf) -> Result<Cupti, NoCupti> {
        match Cupti::functions(loaded, &path) {
            None => Err(NoCupti::NoLibrary(path)),
            Some(cupti) if cupti.version < abi::OLDEST_VERSION => Err(NoCupti::TooOld(path)),
            Some(cupti) => Ok(cupti),
        }
    }

    fn functions(loaded: Loaded, path: &Path) -> Option<Cupti> {
        // SAFETY: functions of these names have these types in every version (NVIDIA's headers of 12.0 to 13.5).
        unsafe {
            let get_version: abi::GetVersion = loaded.function(c"cuptiGetVersion")?;
            let mut version = 0;
            if get_version(&raw mut version) != status::SUCCESS {
                return None;
            }
            let single = [c"cuptiActivityEnableDriverApi", c"cuptiActivityEnableRuntimeApi"];
            let single = single.map(|name| loaded.function::<abi::EnableApi>(name));
            Some(Cupti {
                version,
                path: path.into(),
                subscribe: loaded.function(c"cuptiSubscribe")?,
                subscribe_v2: loaded.function(c"cuptiSubscribe_v2"),
                unsubscribe: loaded.function(c"cuptiUnsubscribe")?,
                enable_callback: loaded.function(c"cuptiEnableCallback")?,
                callback_name: loaded.function(c"cuptiGetCallbackName")?,
                set_attribute: loaded.function(c"cuptiActivitySetAttribute")?,
                set_thread_id_type: loaded.function(c"cuptiSetThreadIdType"),
                timestamp: loaded.function(c"cuptiGetTimestamp"),
                register_timestamp: loaded.function(c"cuptiActivityRegisterTimestampCallback"),
                register_callbacks: loaded.function(c"cuptiActivityRegisterCallbacks")?,
                enable: loaded.function(c"cuptiActivityEnable")?,
                enable_api: single[0].zip(single[1]).map(|(driver, runtime)| [driver, runtime]),
                get_stream_id: loaded.function(c"cuptiGetStreamIdEx"),
                tell_allocation_sources: loaded.function(c"cuptiActivityEnableAllocationSource"),
                flush_all: loaded.function(c"cuptiActivityFlushAll")?,
                next_record: loaded.function(c"cuptiActivityGetNextRecord")?,
                dropped: loaded.function(c"cuptiActivityGetNumDroppedRecords")?,
                finalize: loaded.function(c"cuptiFinalize")?,
                result_string: loaded.function(c"cuptiGetResultString")?,
            })
        }
    }

    /// What a status means, in CUPTI's word and number.
    pub(super) fn meaning(&self, status: abi::CuptiStatus) -> String {
        let mut text = ptr::null();
        // SAFETY: a place for a text, which is a literal of CUPTI's.
        let text = unsafe {
            let answer = (self.result_string)(status, &raw mut text);
            if answer == status::SUCCESS && !text.is_null() { CStr::from_ptr(text) } else { c"unknown error" }
        };
        format!("{} ({status})", text.to_string_lossy())
    }

    /// `13.0` and the number that CUPTI gives itself.
    pub(super) fn version_text(&self) -> String {
        let release = match self.version {
            18 => "12.0 or 12.1",
            20 => "12.2",
            21 => "12.3",
            22 => "12.4",
            23 => "12.5",
            24 => "12.6",
            26 => "12.8",
            28 => "12.9",
            number if number >= 130_000 => {
                return format!("{}.{} ({number})", number / 10_000, number / 100 % 100);
            }
            _ => return format!("12 ({})", self.version),
        };
        format!("{release} ({})", self.version)
    }
}

fn open(path: &Path) -> Option<Loaded> {
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: NVIDIA's library, or what the user names as one.
    unsafe { Loaded::open(&name, libc::RTLD_NOW | libc::RTLD_LOCAL) }
}

/// Folders in which a CUPTI of that major version may lie: beside NVIDIA's libraries that the process has loaded, as Python's wheels and the
/// toolkit have it; where the toolkit is installed; among Python's packages.
fn places(libraries: &[library::LoadedLibrary], major: u32) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let folders = libraries.iter().filter(|library| {
        let name = library.path.file_name().unwrap_or_default().as_bytes();
        [&b"libcudart"[..], b"libcublas", b"libnvrtc", b"libcudnn", b"libnccl", b"libtorch_cuda"]
            .iter()
            .any(|start| name.starts_with(start))
    });
    for folder in folders.filter_map(|library| library.path.parent()) {
        places.push(folder.to_path_buf());
        places.push(folder.join("../extras/CUPTI/lib64"));
        // site-packages/nvidia/cuda_runtime/lib, site-packages/torch/lib
        places.push(folder.join("../../cuda_cupti/lib"));
        places.push(folder.join(format!("../../cu{major}/lib")));
        places.push(folder.join("../../nvidia/cuda_cupti/lib"));
        places.push(folder.join(format!("../../nvidia/cu{major}/lib")));
    }
    let variables = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    for toolkit in
        variables.chain([PathBuf::from("/usr/local/cuda"), format!("/usr/local/cuda-{major}").into()])
    {
        places.push(toolkit.join("extras/CUPTI/lib64"));
        places.push(toolkit.join("lib64"));
    }
    for prefix in prefixes() {
        let versions = fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        let is_python = |name: &OsStr| name.as_bytes().starts_with(b"python3");
        for version in versions.filter(|entry| is_python(&entry.file_name())) {
            for packages in ["site-packages", "dist-packages"] {
                let nvidia = version.path().join(packages).join("nvidia");
                places.push(nvidia.join(format!("cu{major}/lib")));
                places.push(nvidia.join("cuda_cupti/lib"));
            }
        }
    }
    places
}

/// Where the packages of the running Python may be installed: of its virtual environment, whether that is activated or Python was called by its
/// path in it; of its own, below which distributions have another place; of the user.
fn prefixes() -> Vec<PathBuf> {
    let of_program = |program: &Path| Some(program.parent()?.parent()?.to_path_buf());
    let command = fs::read("/proc/self/cmdline").unwrap_or_default();
    let command = Path::new(OsStr::from_bytes(command.split(|byte| *byte == 0).next().unwrap_or_default()));
    let found = || {
        std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|folder| folder.join(command))
            .find(|file| file.exists())
    };
    let called = if command.components().count() > 1 { Some(command.to_path_buf()) } else { found() };
    let in_environment = |prefix: &PathBuf| prefix.join("pyvenv.cfg").exists();
    let prefixes = [
        std::env::var_os("VIRTUAL_ENV").map(PathBuf::from),
        called.as_deref().and_then(of_program).filter(in_environment),
        fs::read_link("/proc/self/exe").ok().as_deref().and_then(of_program),
        Some("/usr/local".into()),
        std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local")),
    ];
    prefixes.into_iter().flatten().collect()
}

/// Functions of the driver's library, where the process has loaded it.
pub(super) struct Driver {
    version: abi::DriverVersion,
    count: abi::DeviceCount,
    get: abi::DeviceGet,
    name: abi::DeviceText,
    bus: abi::DeviceText,
    uuid: Option<abi::DeviceUuid>,
    attribute: abi::DeviceAttribute,
    primary_context: Option<abi::PrimaryContextState>,
}

/// A GPU as the driver tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DriverGpu {
    pub(super) name: String,
    /// Such as `sm_90`.
    pub(super) target: String,
    pub(super) bdf: String,
    pub(super) uuid: String,
}

impl Driver {
    /// The library, where the process has loaded it. Its functions are looked up and none is called.
    pub(super) fn find() -> Option<Driver> {
        if !library::is_loaded("libcuda.so") {
            return None;
        }
        let loaded = Loaded::find(c"libcuda.so.1").or_else(|| Loaded::find(c"libcuda.so"))?;
        // SAFETY: functions of these names have these types (CUDA 12.0 to 13.0 cuda.h).
        unsafe {
            Some(Driver {
                version: loaded.function(c"cuDriverGetVersion")?,
                count: loaded.function(c"cuDeviceGetCount")?,
                get: loaded.function(c"cuDeviceGet")?,
                name: loaded.function(c"cuDeviceGetName")?,
                bus: loaded.function(c"cuDeviceGetPCIBusId")?,
                uuid: loaded.function(c"cuDeviceGetUuid_v2").or_else(|| loaded.function(c"cuDeviceGetUuid")),
                attribute: loaded.function(c"cuDeviceGetAttribute")?,
                primary_context: loaded.function(c"cuDevicePrimaryCtxGetState"),
            })
        }
    }

    /// CUDA's version that it is for: 13000 for 13.0. May be asked before cuInit has returned.
    pub(super) fn version(&self) -> u32 {
        let mut version = 0;
        // SAFETY: a place for the number.
        let answer = unsafe { (self.version)(&raw mut version) };
        if answer == 0 { version.max(0) as u32 } else { 0 }
    }

    /// Whether cuInit has been called: the driver refuses to count before it.
    pub(super) fn is_initialised(&self) -> bool {
        self.count().is_some()
    }

    fn count(&self) -> Option<c_int> {
        let mut count = 0;
        // SAFETY: a place for the number.
        (unsafe { (self.count)(&raw mut count) } == 0).then_some(count)
    }

    /// Whether a GPU has a primary context, which is the one that programs of the runtime API use. The driver answers once it has created those that
    /// it is creating.
    pub(super) fn has_primary_context(&self) -> bool {
        let Some(state) = self.primary_context else { return false };
        let mut is_any = false;
        for ordinal in 0..self.count().unwrap_or(0) {
            let (mut device, mut flags, mut is_active) = (0, 0, 0);
            // SAFETY: places for the handle, for the flags and for the answer.
            let answer = unsafe {
                match (self.get)(&raw mut device, ordinal) {
                    0 => state(device, &raw mut flags, &raw mut is_active),
                    refused => refused,
                }
            };
            is_any |= answer == 0 && is_active != 0;
        }
        is_any
    }

    /// The GPUs that this process sees, by CUDA's number.
    pub(super) fn gpus(&self) -> Vec<DriverGpu> {
        (0..self.count().unwrap_or(0)).map(|ordinal| self.gpu(ordinal)).collect()
    }

    fn gpu(&self, ordinal: c_int) -> DriverGpu {
        let mut device = 0;
        // SAFETY: a place for the handle.
        if unsafe { (self.get)(&raw mut device, ordinal) } != 0 {
            return DriverGpu::default();
        }
        let text = |ask: abi::DeviceText| {
            let mut text = [0u8; 256];
            // SAFETY: room for as many bytes as is said.
            let answer = unsafe { ask(text.as_mut_ptr().cast(), text.len() as c_int, device) };
            let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| answer == 0);
            text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let number = |what: c_int| {
            let mut value = 0;
            // SAFETY: a place for the number.
            (unsafe { (self.attribute)(&raw mut value, what, device) } == 0).then_some(value)
        };
        let capability = abi::COMPUTE_CAPABILITY.map(number);
        let target = match capability {
            [Some(major), Some(minor)] => format!("sm_{major}{minor}"),
            _ => String::new(),
        };
        let mut uuid = [0u8; 16];
        // SAFETY: a place for its 16 bytes.
        let has_uuid = self.uuid.is_some_and(|ask| unsafe { ask(&raw mut uuid, device) } == 0);
        DriverGpu {
            name: text(self.name),
            target,
            bdf: text(self.bus).to_lowercase(),
            uuid: if has_uuid { uuid_text(&uuid) } else { String::new() },
        }
    }
}

/// As nvidia-smi writes it.
fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = String::from("GPU-");
    for (place, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&place) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_written_as_nvidia_smi_does() {
        let bytes = std::array::from_fn(|place| place as u8);
        assert_eq!(uuid_text(&bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn a_library_that_is_no_cupti_is_refused() {
        let path = Path::new("libc.so.6");
        let refused = |path: &Path| Cupti::find(Some(path), 13).err();
        assert_eq!(refused(path), Some(NoCupti::NoLibrary(path.into())));
        let path = Path::new("/nowhere/libcupti.so.13");
        assert!(
            matches!(refused(path), Some(NoCupti::NotThere(there, why)) if there == path && why.contains(path.to_str().unwrap()))
        );
    }
}
