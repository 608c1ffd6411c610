//! The sensors of a GPU of NVIDIA's, by its management library (NVML API reference, nvml.h of CUDA 12).
//!
//! The library's state is the process's: the program may use it too, before, beside and behind us. So it is initialised once and never shut
//! down, on a thread that shares the program's descriptors, and not used in a process that was forked after that.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::process;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use std::{fs, path::Path};

use rpd_preload::clock::{self, Clock};
use rpd_preload::loaded::Loaded;
use rpd_preload::lock::{lock, lock_within};
use rpd_transport::source::GpuFacts;

use super::device::Reading;
use super::metric::{Metric, Micro, ONE, shown};
use super::processes::ProcessTree;

/// nvmlReturn_t.
type Answer = c_int;
const SUCCESS: Answer = 0;

const FIELDS: &str = "nvmlDeviceGetFieldValues";
const MEMORY: &str = "nvmlDeviceGetMemoryInfo";
const SAMPLES: &str = "nvmlDeviceGetSamples";
const PROCESSES: &str = "nvmlDeviceGetComputeRunningProcesses_v3";

/// nvmlDevice_t.
type Handle = NonNull<c_void>;

/// nvmlMemory_t, bytes.
#[repr(C)]
#[derive(Default)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// nvmlUtilization_t, percent.
#[repr(C)]
#[derive(Default)]
struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

/// nvmlFieldValue_t.
#[repr(C)]
#[derive(Default)]
struct FieldValue {
    field: c_uint,
    scope: c_uint,
    /// Microseconds since the epoch.
    time: i64,
    latency: i64,
    kind: c_int,
    answer: Answer,
    value: u64,
}

const _: () = assert!(size_of::<FieldValue>() == 40);

/// nvmlPciInfo_t.
#[repr(C)]
#[derive(Default)]
struct PciInfo {
    legacy: [u8; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    ids: [c_uint; 2],
    bus_id: [u8; 32],
}

const _: () = assert!(size_of::<PciInfo>() == 68);

/// nvmlProcessInfo_t, the second version of it and later ones.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ProcessInfo {
    pid: c_uint,
    /// Bytes, or [`UNKNOWN`].
    memory: u64,
    instances: [c_uint; 2],
}

const _: () = assert!(size_of::<ProcessInfo>() == 24);

/// nvmlSample_t.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sample {
    /// Microseconds since the epoch.
    time: u64,
    value: u64,
}

const _: () = assert!(size_of::<Sample>() == 16);

/// NVML_VALUE_NOT_AVAILABLE.
const UNKNOWN: u64 = u64::MAX;
/// NVML_ERROR_INVALID_ARGUMENT.
const INVALID_ARGUMENT: Answer = 2;
/// NVML_ERROR_NOT_SUPPORTED.
const NOT_SUPPORTED: Answer = 3;
/// NVML_ERROR_INSUFFICIENT_SIZE.
const TOO_SMALL: Answer = 7;
/// NVML_ERROR_NOT_FOUND: no sample is that new.
const NONE_NEWER: Answer = 6;
/// NVML_TOTAL_POWER_SAMPLES.
const TOTAL_POWER: c_int = 0;
/// As many as are read at once: the driver keeps fewer.
const MOST_SAMPLES: usize = 256;
/// More processes than a GPU has.
const MOST_PROCESSES: usize = 4096;

/// NVML_VALUE_TYPE_UNSIGNED_INT, of which only the low half of the value is written.
const UNSIGNED_INT: c_int = 1;
/// NVML_FI_DEV_MEMORY_TEMP.
const MEMORY_TEMPERATURE: c_uint = 82;
/// NVML_FI_DEV_POWER_INSTANT: what it is now, where nvmlDeviceGetPowerUsage has an average.
const POWER_NOW: c_uint = 186;
/// NVML_CLOCK_SM and NVML_CLOCK_MEM.
const CLOCK_SM: c_int = 1;
const CLOCK_MEMORY: c_int = 2;
/// NVML_TEMPERATURE_GPU.
const TEMPERATURE_GPU: c_int = 0;

/// The counter of energy changes every 100 ms, and the driver takes milliseconds to answer.
const ENERGY_EVERY: Duration = Duration::from_millis(100);

/// The driver keeps samples of power for a second or two, so that it need not be asked each time: that halves the recorder's CPU on an H100.
const SAMPLES_EVERY: Duration = Duration::from_millis(50);
/// The driver samples power each 20 ms. Where it has had nothing for so long, it does not.
const SAMPLES_WITHIN: Duration = Duration::from_millis(500);
/// How far back the first sample is looked for: it holds until the next one.
const FIRST_WITHIN_US: u64 = 100_000;

type Number = unsafe extern "C" fn(Handle, *mut c_uint) -> Answer;
type NumberOf = unsafe extern "C" fn(Handle, c_int, *mut c_uint) -> Answer;

/// Functions of the library, which stays loaded.
struct Nvml {
    handle: unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> Answer,
    power: Number,
    energy: unsafe extern "C" fn(Handle, *mut u64) -> Answer,
    memory: unsafe extern "C" fn(Handle, *mut Memory) -> Answer,
    clock: NumberOf,
    temperature: NumberOf,
    utilization: unsafe extern "C" fn(Handle, *mut Utilization) -> Answer,
    count: unsafe extern "C" fn(*mut c_uint) -> Answer,
    by_index: unsafe extern "C" fn(c_uint, *mut *mut c_void) -> Answer,
    pci: unsafe extern "C" fn(Handle, *mut PciInfo) -> Answer,
    name: unsafe extern "C" fn(Handle, *mut c_char, c_uint) -> Answer,
    uuid: unsafe extern "C" fn(Handle, *mut c_char, c_uint) -> Answer,
    capability: unsafe extern "C" fn(Handle, *mut c_int, *mut c_int) -> Answer,
    /// From R510 on.
    processes: Option<unsafe extern "C" fn(Handle, *mut c_uint, *mut ProcessInfo) -> Answer>,
    samples: Option<unsafe extern "C" fn(Handle, c_int, u64, *mut c_int, *mut c_uint, *mut Sample) -> Answer>,
    /// From R418 on.
    fields: Option<unsafe extern "C" fn(Handle, c_int, *mut FieldValue) -> Answer>,
    error: unsafe extern "C" fn(Answer) -> *const c_char,
}

/// The process that initialised the library, and what came of it.
static NVML: OnceLock<(u32, Result<Nvml, String>)> = OnceLock::new();

/// Held by the thread that samples while it is in the library: whether the process has come to its end.
static ENDED: Mutex<bool> = Mutex::new(false);

/// The process ends, and with it what the library needs: from now on no thread of ours is in there. Waits so long for one that is.
pub(super) fn leave(patience: Duration) {
    let is_ours = NVML.get().is_some_and(|(pid, _)| *pid == process::id());
    if is_ours && let Some(mut ended) = lock_within(&ENDED, patience) {
        *ended = true;
    }
}

impl Nvml {
    /// The library, initialised.
    fn get() -> Result<&'static Nvml, String> {
        let (pid, nvml) = NVML.get_or_init(|| (process::id(), Nvml::open()));
        match nvml {
            _ if *pid != process::id() => {
                Err("NVML is not used in a process that was forked behind its start".into())
            }
            Ok(nvml) => Ok(nvml),
            Err(why) => Err(why.clone()),
        }
    }

    fn open() -> Result<Nvml, String> {
        const NAME: &CStr = c"libnvidia-ml.so.1";
        // SAFETY: NVIDIA's driver has installed it; its constructors set up no more than itself.
        let loaded = unsafe { Loaded::open(NAME, libc::RTLD_LAZY) };
        let loaded = loaded.ok_or("libnvidia-ml.so.1, which has its sensors, cannot be loaded")?;
        // SAFETY: functions of these names have these types in every version (nvml.h).
        let found = unsafe { Nvml::functions(loaded) };
        let (init, nvml) = found.ok_or("libnvidia-ml.so.1 lacks functions that have its sensors")?;
        // SAFETY: it may be called at any time, and as often as anybody likes.
        match unsafe { init() } {
            SUCCESS => Ok(nvml),
            answer => Err(format!("NVML cannot be initialised: {}", nvml.text(answer))),
        }
    }

    /// # Safety
    /// The library is NVML.
    unsafe fn functions(loaded: Loaded) -> Option<(unsafe extern "C" fn() -> Answer, Nvml)> {
        // SAFETY: the caller's promise.
        unsafe {
            let nvml = Nvml {
                handle: loaded.function(c"nvmlDeviceGetHandleByPciBusId_v2")?,
                power: loaded.function(c"nvmlDeviceGetPowerUsage")?,
                energy: loaded.function(c"nvmlDeviceGetTotalEnergyConsumption")?,
                memory: loaded.function(c"nvmlDeviceGetMemoryInfo")?,
                clock: loaded.function(c"nvmlDeviceGetClockInfo")?,
                temperature: loaded.function(c"nvmlDeviceGetTemperature")?,
                utilization: loaded.function(c"nvmlDeviceGetUtilizationRates")?,
                count: loaded.function(c"nvmlDeviceGetCount_v2")?,
                by_index: loaded.function(c"nvmlDeviceGetHandleByIndex_v2")?,
                pci: loaded.function(c"nvmlDeviceGetPciInfo_v3")?,
                name: loaded.function(c"nvmlDeviceGetName")?,
                uuid: loaded.function(c"nvmlDeviceGetUUID")?,
                capability: loaded.function(c"nvmlDeviceGetCudaComputeCapability")?,
                processes: loaded.function(c"nvmlDeviceGetComputeRunningProcesses_v3"),
                samples: loaded.function(c"nvmlDeviceGetSamples"),
                fields: loaded.function(c"nvmlDeviceGetFieldValues"),
                error: loaded.function(c"nvmlErrorString")?,
            };
            Some((loaded.function(c"nvmlInit_v2")?, nvml))
        }
    }

    /// What a function puts into the place that it gets.
    fn asked<T: Default>(&self, function: &str, ask: impl FnOnce(&mut T) -> Answer) -> Result<T, String> {
        let mut place = T::default();
        match ask(&mut place) {
            SUCCESS => Ok(place),
            answer => Err(format!("{function}: {}", self.text(answer))),
        }
    }

    /// A GPU that the library numbers so, its own number in place of the file's.
    fn gpu(&self, index: c_uint) -> Option<GpuFacts> {
        let mut handle = ptr::null_mut();
        // SAFETY: a place for the handle.
        let answer = unsafe { (self.by_index)(index, &raw mut handle) };
        let handle = NonNull::new(handle).filter(|_| answer == SUCCESS)?;
        let mut pci = PciInfo::default();
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the device's handle, and places for the answers.
        let answers = unsafe {
            [(self.pci)(handle, &raw mut pci), (self.capability)(handle, &raw mut major, &raw mut minor)]
        };
        let PciInfo { domain, bus, device, .. } = pci;
        (answers == [SUCCESS; 2]).then(|| GpuFacts {
            index,
            name: text_of(|place, length| {
                // SAFETY: the device's handle, and a place for so many bytes.
                unsafe { (self.name)(handle, place, length) }
            }),
            target: format!("sm_{major}{minor}"),
            bdf: format!("{domain:04x}:{bus:02x}:{device:02x}.0"),
            uuid: text_of(|place, length| {
                // SAFETY: as above.
                unsafe { (self.uuid)(handle, place, length) }
            }),
        })
    }

    fn text(&self, answer: Answer) -> String {
        // SAFETY: a text of the library's own, for any number.
        let text = unsafe { (self.error)(answer) };
        if text.is_null() {
            return format!("error {answer}");
        }
        // SAFETY: NUL-terminated, and it stays.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// A NUL-terminated text that a function puts into a place; empty where it has none.
fn text_of(ask: impl FnOnce(*mut c_char, c_uint) -> Answer) -> String {
    let mut place = [0_u8; 96];
    let answer = ask(place.as_mut_ptr().cast(), place.len() as c_uint);
    let text = CStr::from_bytes_until_nul(&place).ok().filter(|_| answer == SUCCESS);
    text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

/// All GPUs that the library knows, in the order of their PCI addresses; none without the library.
pub(super) fn gpus() -> Vec<GpuFacts> {
    let ended = lock(&ENDED);
    let Some(nvml) = (!*ended).then(Nvml::get).and_then(Result::ok) else { return Vec::new() };
    // SAFETY: a place for the number.
    let count = nvml.asked("", |count: &mut c_uint| unsafe { (nvml.count)(count) }).unwrap_or(0);
    let mut gpus: Vec<GpuFacts> = (0..count).filter_map(|index| nvml.gpu(index)).collect();
    gpus.sort_by(|one, other| one.bdf.cmp(&other.bdf));
    gpus
}

pub(super) struct NvmlDevice {
    nvml: &'static Nvml,
    handle: Handle,
    sensors: Vec<Sensor>,
    processes: ProcessTree,
    power: Buffer,
}

/// The driver's own samples of power: one each 20 ms, where its other values change each 100 ms.
#[derive(Debug, Default)]
struct Buffer {
    is_refused: bool,
    /// Since when samples are wanted, ns of CLOCK_MONOTONIC, and the driver's time of the last one, us since the epoch.
    since: Option<(u64, u64)>,
    /// When the driver was last asked.
    asked: Option<Instant>,
    /// When there was one.
    last: Option<Instant>,
}

struct Sensor {
    metric: Metric,
    /// The function that had the last value.
    used: Option<&'static str>,
    /// When it was last asked, and what it said.
    last: Option<(Instant, Reading)>,
}

impl std::fmt::Debug for NvmlDevice {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("NvmlDevice").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl NvmlDevice {
    /// The one at that PCI address.
    ///
    /// # Errors
    /// Why it cannot be found.
    pub(super) fn find(bdf: &str, metrics: &[Metric], processes: &ProcessTree) -> Result<NvmlDevice, String> {
        let ended = lock(&ENDED);
        if *ended {
            return Err("the process ends".into());
        }
        let nvml = Nvml::get()?;
        let address = CString::new(bdf).map_err(|_| "no PCI address")?;
        let mut handle = ptr::null_mut();
        // SAFETY: a NUL-terminated text, and a place for the handle.
        let answer = unsafe { (nvml.handle)(address.as_ptr(), &raw mut handle) };
        let handle = NonNull::new(handle).filter(|_| answer == SUCCESS);
        let handle = handle.ok_or_else(|| format!("NVML does not find it: {}", nvml.text(answer)))?;
        let sensors = metrics.iter().map(|metric| Sensor { metric: *metric, used: None, last: None });
        Ok(NvmlDevice {
            nvml,
            handle,
            sensors: sensors.collect(),
            processes: processes.clone(),
            power: Buffer::default(),
        })
    }

    /// Reads all of it; `take` gets the place of the sensor among those asked for, and what it reads.
    pub(super) fn sample(&mut self, mut take: impl FnMut(usize, Reading)) {
        for place in 0..self.sensors.len() {
            let reading = {
                let ended = lock(&ENDED);
                if *ended {
                    return;
                }
                self.read(place)
            };
            take(place, reading);
        }
    }

    /// See [`Device::skip`](super::device::Device::skip).
    pub(super) fn skip(&mut self) {
        self.power.since = None;
    }

    /// Which function had the last value of that sensor.
    pub(super) fn origin(&self, place: usize) -> Option<&'static str> {
        self.sensors.get(place)?.used
    }

    /// All of its memory, bytes.
    pub(super) fn vram_total(&self) -> Option<u64> {
        let ended = lock(&ENDED);
        let memory = (!*ended).then(|| self.memory())?.ok()?;
        Some(memory.total).filter(|total| *total > 0)
    }

    fn read(&mut self, place: usize) -> Reading {
        let Sensor { metric, last, .. } = &self.sensors[place];
        if let (Metric::Energy, Some((time, reading))) = (metric, last)
            && time.elapsed() < ENERGY_EVERY
        {
            return reading.clone();
        }
        let metric = *metric;
        if metric == Metric::Power
            && let Some(samples) = self.power_samples()
        {
            self.sensors[place].used = Some(SAMPLES);
            return Reading::Samples(samples);
        }
        let (used, reading) = match self.value(metric) {
            Ok((used, value)) if metric.can_be(value) => (Some(used), Reading::Value(value)),
            Ok((used, value)) => {
                let why = format!("{used}: {} {} is more or less than there is", shown(value), metric.unit());
                (None, Reading::Nothing(why))
            }
            Err(why) => (None, Reading::Nothing(why)),
        };
        let sensor = &mut self.sensors[place];
        (sensor.used, sensor.last) = (used, Some((Instant::now(), reading.clone())));
        reading
    }

    /// The driver's samples of power since the last ones. None where it takes none.
    fn power_samples(&mut self) -> Option<Vec<(u64, Micro)>> {
        let samples = self.nvml.samples.filter(|_| !self.power.is_refused)?;
        let is_recent = self.power.asked.is_some_and(|asked| asked.elapsed() < SAMPLES_EVERY);
        if is_recent {
            return self.power.since.map(|_| Vec::new());
        }
        self.power.asked = Some(Instant::now());
        let (now, wall_us) = (clock::monotonic(), clock::read(Clock::Realtime) / 1000);
        let (since, mut seen) = self.power.since.unwrap_or((now, wall_us.saturating_sub(FIRST_WITHIN_US)));
        let mut found = Vec::new();
        loop {
            let mut places = [Sample::default(); MOST_SAMPLES];
            let (mut count, mut kind) = (MOST_SAMPLES as c_uint, UNSIGNED_INT);
            // SAFETY: the device's handle, and so many places.
            let answer = unsafe {
                samples(self.handle, TOTAL_POWER, seen, &raw mut kind, &raw mut count, places.as_mut_ptr())
            };
            let count = match answer {
                SUCCESS if kind == UNSIGNED_INT => (count as usize).min(MOST_SAMPLES),
                NONE_NEWER => 0,
                _ => {
                    // What is busy now may answer the next time.
                    self.power.is_refused = [SUCCESS, NOT_SUPPORTED, INVALID_ARGUMENT].contains(&answer);
                    return None;
                }
            };
            let before = seen;
            for Sample { time, value } in places[..count].iter().filter(|sample| sample.time > before) {
                let ago = wall_us.saturating_sub(*time).saturating_mul(1000);
                let milliwatts = Micro::from(*value & u64::from(u32::MAX));
                found.push((now.saturating_sub(ago).max(since), milliwatts * (ONE / 1000)));
                seen = seen.max(*time);
            }
            if count < MOST_SAMPLES || seen == before {
                break;
            }
        }
        found.retain(|(_, value)| Metric::Power.can_be(*value));
        if !found.is_empty() {
            self.power.last = Some(Instant::now());
        }
        let is_going_on = self.power.last.is_some_and(|last| last.elapsed() < SAMPLES_WITHIN);
        // Where the machine's clock was set back, samples look older than they are.
        self.power.since = is_going_on.then_some((since, seen));
        is_going_on.then_some(found)
    }

    /// What a sensor reads, and the function that says so.
    fn value(&mut self, metric: Metric) -> Result<(&'static str, Micro), String> {
        let (nvml, handle) = (self.nvml, self.handle);
        let whole = |number: u64| Micro::from(number) * ONE;
        // Milliwatts, millijoules.
        let thousandths = |number: u64| Micro::from(number) * (ONE / 1000);
        match metric {
            Metric::Power => {
                if let Ok(milliwatts) = self.field(POWER_NOW) {
                    return Ok((FIELDS, thousandths(milliwatts)));
                }
                const NAME: &str = "nvmlDeviceGetPowerUsage";
                // SAFETY: the device's handle, which stays, and a place for the number.
                let milliwatts =
                    nvml.asked(NAME, |number: &mut u32| unsafe { (nvml.power)(handle, number) })?;
                Ok((NAME, thousandths(milliwatts.into())))
            }
            Metric::Energy => {
                const NAME: &str = "nvmlDeviceGetTotalEnergyConsumption";
                // SAFETY: as above.
                let millijoules =
                    nvml.asked(NAME, |number: &mut u64| unsafe { (nvml.energy)(handle, number) })?;
                Ok((NAME, thousandths(millijoules)))
            }
            Metric::Vram => Ok((MEMORY, whole(self.memory()?.used))),
            Metric::VramProcess => {
                let ask = |procfs: &Path, members: &[u32]| held(nvml, handle, procfs, members);
                Ok((PROCESSES, self.processes.memory(ask)?))
            }
            Metric::Sclk | Metric::Mclk => {
                const NAME: &str = "nvmlDeviceGetClockInfo";
                let clock = if metric == Metric::Sclk { CLOCK_SM } else { CLOCK_MEMORY };
                // SAFETY: as above.
                let megahertz =
                    nvml.asked(NAME, |number: &mut u32| unsafe { (nvml.clock)(handle, clock, number) })?;
                Ok((NAME, whole(megahertz.into())))
            }
            Metric::TempEdge => {
                const NAME: &str = "nvmlDeviceGetTemperature";
                // SAFETY: as above.
                let ask = |number: &mut u32| unsafe { (nvml.temperature)(handle, TEMPERATURE_GPU, number) };
                Ok((NAME, whole(nvml.asked(NAME, ask)?.into())))
            }
            Metric::TempMem => Ok((FIELDS, whole(self.field(MEMORY_TEMPERATURE)?))),
            Metric::TempHotspot => Err("NVML has no such sensor".into()),
            Metric::GpuUtil | Metric::MemUtil => {
                const NAME: &str = "nvmlDeviceGetUtilizationRates";
                // SAFETY: as above.
                let ask = |rates: &mut Utilization| unsafe { (nvml.utilization)(handle, rates) };
                let rates = nvml.asked(NAME, ask)?;
                let percent = if metric == Metric::GpuUtil { rates.gpu } else { rates.memory };
                Ok((NAME, whole(percent.into())))
            }
        }
    }

    fn memory(&self) -> Result<Memory, String> {
        // SAFETY: the device's handle, and a place for the numbers.
        let ask = |memory: &mut Memory| unsafe { (self.nvml.memory)(self.handle, memory) };
        self.nvml.asked(MEMORY, ask)
    }

    fn field(&self, field: c_uint) -> Result<u64, String> {
        let fields = self.nvml.fields.ok_or_else(|| format!("this NVML has no {FIELDS}"))?;
        let ask = |value: &mut FieldValue| {
            value.field = field;
            // SAFETY: the device's handle, and one value to be filled.
            match unsafe { fields(self.handle, 1, value) } {
                SUCCESS => value.answer,
                answer => answer,
            }
        };
        let FieldValue { kind, value, .. } = self.nvml.asked(FIELDS, ask)?;
        Ok(if kind == UNSIGNED_INT { value & u64::from(u32::MAX) } else { value })
    }
}

/// How much of the device's memory these processes hold, bytes.
fn held(nvml: &Nvml, handle: Handle, procfs: &Path, members: &[u32]) -> Result<u64, String> {
    let processes = nvml.processes.ok_or_else(|| format!("this NVML has no {PROCESSES}"))?;
    let mut places = vec![ProcessInfo::default(); 64];
    let count = loop {
        let mut count = places.len() as c_uint;
        // SAFETY: the device's handle, and so many places.
        match unsafe { processes(handle, &raw mut count, places.as_mut_ptr()) } {
            SUCCESS => break (count as usize).min(places.len()),
            TOO_SMALL if places.len() < MOST_PROCESSES => {
                places.resize(MOST_PROCESSES, ProcessInfo::default());
            }
            answer => return Err(format!("{PROCESSES}: {}", nvml.text(answer))),
        }
    };
    let found = &places[..count];
    let mine = found.iter().filter(|process| members.contains(&process.pid));
    let mine: Vec<u64> = mine.map(|process| process.memory).collect();
    if mine.contains(&UNKNOWN) {
        return Err(format!("{PROCESSES}: the driver does not say how much"));
    }
    let is_here = |process: &ProcessInfo| fs::exists(procfs.join(process.pid.to_string())).unwrap_or(false);
    if mine.is_empty() && !found.is_empty() && !found.iter().any(is_here) {
        return Err(format!("{PROCESSES} has the numbers of processes outside of this container"));
    }
    Ok(mine.into_iter().fold(0, u64::saturating_add))
}
