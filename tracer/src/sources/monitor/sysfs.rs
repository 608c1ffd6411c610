//! The sensors of a GPU of AMD's: which files have them, and what those say. Files are opened for each reading, because a device may go and
//! come back; nothing is written, and a device that sleeps is not woken.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rpd_preload::clock::{self, Clock};

use super::device::Reading;
use super::gpu_metrics::GpuMetrics;
use super::metric::{Metric, Micro, ONE};
use super::processes::{self, ProcessTree};

/// More than any of these files has.
const MOST_BYTES: usize = 8192;
/// The clock of a table that says that it is older is not believed, ns.
const OLDEST: u64 = 10_000_000_000;
/// Of a text that is no number, so much is repeated.
const SHOWN: usize = 32;

/// Where a sensor's value is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// A file with one number, in so many millionths of the unit.
    Number(PathBuf, Micro),
    /// A file with a line for each clock: `1: 800Mhz *` is the present one.
    Clocks(PathBuf),
    /// The table of all sensors.
    Table,
    /// What the driver says of processes.
    Processes,
}

/// One sensor: the places that may have its value, the best first.
#[derive(Debug)]
pub(super) struct SysfsSensor {
    pub(super) metric: Metric,
    places: Vec<Place>,
    /// The place that had the last value.
    used: Option<usize>,
}

#[derive(Debug)]
pub(super) struct SysfsDevice {
    directory: PathBuf,
    sensors: Vec<SysfsSensor>,
    memory: ProcessMemory,
    /// The last table, if it said when it was made.
    table: Option<GpuMetrics>,
}

/// The table as it was read, and when its values were there.
#[derive(Clone, Copy, Debug)]
struct ReadTable {
    metrics: GpuMetrics,
    moment: TableMoment,
}

/// When values were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableMoment {
    /// Now: nothing else is known.
    Now,
    /// Then, ns of CLOCK_MONOTONIC.
    At(u64),
    /// They are those that were read before.
    Same,
}

/// The memory of processes on one GPU.
#[derive(Debug)]
struct ProcessMemory {
    /// Stands for /sys.
    root: PathBuf,
    bdf: String,
    /// The GPU's name in ROCm's part of the driver.
    gpu_id: Option<String>,
    processes: ProcessTree,
}

impl SysfsDevice {
    /// The one at that PCI address, below `root`; none where the kernel shows none there.
    pub(super) fn find(
        root: &Path,
        bdf: &str,
        metrics: &[Metric],
        processes: &ProcessTree,
    ) -> Option<SysfsDevice> {
        let directory = directory(root, bdf)?;
        let hwmon = entries(&directory.join("hwmon"), "hwmon").into_iter().next();
        let sensor = |metric: &Metric| SysfsSensor {
            metric: *metric,
            places: places(*metric, &directory, hwmon.as_deref()),
            used: None,
        };
        let sensors = metrics.iter().map(sensor).collect();
        let memory = ProcessMemory {
            root: root.into(),
            bdf: bdf.into(),
            gpu_id: gpu_id(&root.join("class/kfd/kfd/topology/nodes"), bdf),
            processes: processes.clone(),
        };
        Some(SysfsDevice { directory, sensors, memory, table: None })
    }

    /// Looks for files that were not there before. A device that comes back makes one after the other, perhaps in another place.
    pub(super) fn look_again(&mut self) {
        let metrics: Vec<Metric> = self.sensors.iter().map(|sensor| sensor.metric).collect();
        let ProcessMemory { root, bdf, processes, .. } = &self.memory;
        if let Some(found) = SysfsDevice::find(root, bdf, &metrics, processes) {
            *self = SysfsDevice { table: self.table, ..found };
        }
    }

    /// Reads all of it; `take` gets the place of the sensor among those asked for, and what it reads.
    pub(super) fn sample(&mut self, mut take: impl FnMut(usize, Reading)) {
        if self.is_asleep() {
            return (0..self.sensors.len()).for_each(|place| take(place, Reading::Asleep));
        }
        let mut table = None;
        let SysfsDevice { directory, sensors, memory, table: last } = self;
        for (place, sensor) in sensors.iter_mut().enumerate() {
            let mut read = || table.get_or_insert_with(|| read_table(directory, last)).clone();
            take(place, sensor.read(directory, &mut read, memory));
        }
    }

    /// Which file, below the device's directory, had the last value of that sensor.
    pub(super) fn origin(&self, place: usize) -> Option<String> {
        let sensor = self.sensors.get(place)?;
        let path = match &sensor.places[sensor.used?] {
            Place::Number(path, _) | Place::Clocks(path) => path.strip_prefix(&self.directory).ok()?,
            Place::Table => Path::new("gpu_metrics"),
            Place::Processes => return Some(self.memory.origin().into()),
        };
        Some(path.to_string_lossy().into_owned())
    }

    /// All of its memory, bytes.
    pub(super) fn vram_total(&self) -> Option<u64> {
        let total = number(&self.directory.join("mem_info_vram_total")).ok()?;
        u64::try_from(total).ok().filter(|total| *total > 0)
    }

    /// Some readings would wake it, and it would then be said to have been busy.
    fn is_asleep(&self) -> bool {
        let status = bytes(&self.directory.join("power/runtime_status")).unwrap_or_default();
        [&b"suspended"[..], b"suspending"].contains(&status.trim_ascii())
    }
}

impl ProcessMemory {
    fn read(&mut self) -> Result<Micro, String> {
        let ProcessMemory { root, bdf, gpu_id, processes } = self;
        processes.memory(|procfs, members| processes::on_amd(root, (gpu_id.as_deref(), bdf), procfs, members))
    }

    /// The files that have it.
    fn origin(&self) -> &'static str {
        if self.gpu_id.is_some() { "class/kfd/kfd/proc" } else { "/proc/PID/fdinfo" }
    }
}

impl SysfsSensor {
    fn read(
        &mut self,
        directory: &Path,
        table: &mut dyn FnMut() -> Result<ReadTable, String>,
        memory: &mut ProcessMemory,
    ) -> Reading {
        let mut wrong = Vec::new();
        for (place, at) in self.places.iter().enumerate() {
            let mut moment = TableMoment::Now;
            let value = match at {
                Place::Number(path, unit) => number(path).map(|number| Some(number * unit)),
                Place::Clocks(path) => clock(path).map(Some),
                Place::Processes => memory.read().map(Some),
                Place::Table => table().map(|table| {
                    moment = table.moment;
                    in_table(self.metric, &table.metrics)
                }),
            };
            match value {
                Ok(Some(value)) if self.metric.can_be(value) => {
                    self.used = Some(place);
                    return match moment {
                        TableMoment::At(then) => Reading::Of(then, value),
                        TableMoment::Same => Reading::Unchanged(value),
                        TableMoment::Now => Reading::Value(value),
                    };
                }
                Ok(Some(value)) => {
                    let value = super::metric::shown(value);
                    wrong.push(format!("{value} {} is more or less than there is", self.metric.unit()));
                }
                Ok(None) => {}
                Err(why) => wrong.push(why),
            }
        }
        self.used = None;
        let nothing = || format!("{} has no such sensor", directory.display());
        Reading::Nothing(if wrong.is_empty() { nothing() } else { wrong.join("; ") })
    }
}

/// Reads the table of a device. `last` is the one before, if it said when it was made.
fn read_table(directory: &Path, last: &mut Option<GpuMetrics>) -> Result<ReadTable, String> {
    let path = directory.join("gpu_metrics");
    let bytes = bytes(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let metrics = GpuMetrics::parse(&bytes).map_err(|why| format!("{}: {why}", path.display()))?;
    let (now, driver_now) = (clock::monotonic(), clock::read(Clock::Boottime));
    let age =
        metrics.made.and_then(|made| driver_now.checked_sub(made)).filter(|age| *age <= OLDEST.min(now));
    let moment = match age {
        // The driver says the time at which it was asked, whether the firmware has sampled meanwhile or not.
        _ if last.is_some_and(|last| metrics.is_same_sample(&last)) => TableMoment::Same,
        Some(age) => TableMoment::At(now - age),
        None => TableMoment::Now,
    };
    *last = Some(metrics).filter(|_| moment != TableMoment::Now);
    Ok(ReadTable { metrics, moment })
}

/// The directory of the device with that PCI address.
fn directory(root: &Path, bdf: &str) -> Option<PathBuf> {
    let is_it = |directory: &PathBuf| {
        let text = bytes(&directory.join("uevent")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let slot = text.lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME="));
        slot.is_some_and(|slot| slot.trim().eq_ignore_ascii_case(bdf))
    };
    let cards = entries(&root.join("class/drm"), "card");
    cards.into_iter().map(|card| card.join("device")).find(is_it).or_else(|| {
        let directory = root.join("bus/pci/devices").join(bdf);
        (!bdf.is_empty() && is_it(&directory)).then_some(directory)
    })
}

/// PCI addresses of the cards of AMD's driver, ascending.
pub(super) fn cards(root: &Path) -> Vec<String> {
    let address = |card: PathBuf| {
        let text = bytes(&card.join("device/uevent")).ok()?;
        let text = String::from_utf8_lossy(&text);
        let is_amd = text.lines().any(|line| line.trim() == "DRIVER=amdgpu");
        let slot = text.lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME="))?;
        is_amd.then(|| slot.trim().to_lowercase())
    };
    let mut cards: Vec<String> =
        entries(&root.join("class/drm"), "card").into_iter().filter_map(address).collect();
    cards.sort_unstable();
    cards
}

/// The name that ROCm's part of the driver has for the GPU at that PCI address: 0, which CPUs have too, is none.
fn gpu_id(nodes: &Path, bdf: &str) -> Option<String> {
    let is_it = |node: &PathBuf| node_bdf(node).is_some_and(|found| found.eq_ignore_ascii_case(bdf));
    let node = entries(nodes, "").into_iter().find(is_it)?;
    let id = String::from_utf8(bytes(&node.join("gpu_id")).ok()?).ok()?;
    Some(id.trim().to_string()).filter(|id| id.parse::<u64>().is_ok_and(|id| id > 0))
}

/// The PCI address of a node of the topology.
pub(super) fn node_bdf(node: &Path) -> Option<String> {
    let location = node_property(node, "location_id")?;
    let domain = node_property(node, "domain").unwrap_or(0);
    Some(format!("{domain:04x}:{:02x}:{:02x}.{}", location >> 8 & 0xff, location >> 3 & 0x1f, location & 7))
}

/// What a node of the topology says of itself under that name.
pub(super) fn node_property(node: &Path, name: &str) -> Option<u32> {
    let properties = String::from_utf8(bytes(&node.join("properties")).ok()?).ok()?;
    let of = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u32>().ok();
    properties.lines().find_map(of)
}

/// Entries of that name with a number behind it, in order.
fn entries(directory: &Path, name: &str) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(directory) else { return Vec::new() };
    let mut numbered: Vec<(u32, PathBuf)> = found
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix(name)?.parse().ok()?;
            Some((number, entry.path()))
        })
        .collect();
    numbered.sort();
    numbered.into_iter().map(|(_, path)| path).collect()
}

/// The places that there are for a sensor.
fn places(metric: Metric, device: &Path, hwmon: Option<&Path>) -> Vec<Place> {
    let of_device = |name: &str, unit| Some(Place::Number(device.join(name), unit));
    let of_hwmon = |name: &str, unit| hwmon.map(|hwmon| Place::Number(hwmon.join(name), unit));
    // m°C and Hz.
    let labelled = |kind: &str, labels: &[&str], unit| {
        let hwmon = hwmon?;
        let number = (1..=16).find(|number| {
            let label = bytes(&hwmon.join(format!("{kind}{number}_label"))).unwrap_or_default();
            labels.iter().any(|known| label.trim_ascii() == known.as_bytes())
        })?;
        of_hwmon(&format!("{kind}{number}_input"), unit)
    };
    let temperature = |label| labelled("temp", &[label], 1000);
    let clocks = |name| Some(Place::Clocks(device.join(name)));
    let table = Some(Place::Table);
    let places = match metric {
        // An average on some chips, what it is now on others.
        Metric::Power => vec![of_hwmon("power1_average", 1), of_hwmon("power1_input", 1), table],
        Metric::Energy => vec![table],
        Metric::Vram => vec![of_device("mem_info_vram_used", ONE)],
        Metric::VramProcess => vec![Some(Place::Processes)],
        Metric::Sclk => vec![labelled("freq", &["sclk"], 1), table, clocks("pp_dpm_sclk")],
        Metric::Mclk => vec![labelled("freq", &["mclk"], 1), table, clocks("pp_dpm_mclk")],
        Metric::TempEdge => vec![temperature("edge")],
        Metric::TempHotspot => vec![temperature("junction"), table],
        Metric::TempMem => vec![temperature("mem"), table],
        Metric::GpuUtil => vec![of_device("gpu_busy_percent", ONE), table],
        Metric::MemUtil => vec![of_device("mem_busy_percent", ONE), table],
    };
    let is_there = |place: &Place| match place {
        Place::Number(path, _) | Place::Clocks(path) => path.exists(),
        Place::Table => device.join("gpu_metrics").exists(),
        Place::Processes => true,
    };
    places.into_iter().flatten().filter(is_there).collect()
}

/// What the table has of a sensor.
fn in_table(metric: Metric, table: &GpuMetrics) -> Option<Micro> {
    let whole = |number: Option<u64>| number.map(|number| Micro::from(number) * ONE);
    match metric {
        Metric::Power => whole(table.power),
        Metric::Energy => whole(table.energy).map(|energy| energy >> 16),
        Metric::Sclk => whole(table.gfx_clock),
        Metric::Mclk => whole(table.mem_clock),
        Metric::TempHotspot => whole(table.temp_hotspot),
        Metric::TempMem => whole(table.temp_mem),
        Metric::GpuUtil => whole(table.gfx_activity),
        Metric::MemUtil => whole(table.mem_activity),
        Metric::Vram | Metric::VramProcess | Metric::TempEdge => None,
    }
}

/// What is in a file, up to a length; never waits for what is no file. The driver gives all of it at once.
fn bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let mut bytes = [0; MOST_BYTES];
    let count = file.read(&mut bytes)?;
    Ok(bytes[..count].to_vec())
}

fn number(path: &Path) -> Result<Micro, String> {
    let bytes = bytes(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8_lossy(bytes.trim_ascii());
    text.parse::<i64>().map(Micro::from).map_err(|_| not_a_number(path, &text))
}

/// The present clock of a list.
fn clock(path: &Path) -> Result<Micro, String> {
    let bytes = bytes(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let present = text.lines().find_map(|line| line.trim_end().strip_suffix('*'));
    let number = present.and_then(|line| {
        let digits = line.split_once(':')?.1.trim();
        let digits = digits.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        digits.parse::<u32>().ok()
    });
    number.map(|number| Micro::from(number) * ONE).ok_or_else(|| not_a_number(path, &text))
}

fn not_a_number(path: &Path, text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    format!("{}: {start:?} is not a number", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is not there.
    fn nobody() -> ProcessTree {
        ProcessTree::of(Path::new("/nowhere"), 0)
    }

    /// A device at 0000:03:00.0 with these files.
    fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("devices/0000:03:00.0");
        fs::create_dir_all(root.path().join("class/drm/card7")).unwrap();
        fs::create_dir_all(root.path().join("class/drm/card7-DP-1")).unwrap();
        for (name, content) in
            [("uevent", &b"DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n"[..])].iter().chain(files)
        {
            let path = device.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        std::os::unix::fs::symlink(&device, root.path().join("class/drm/card7/device")).unwrap();
        root
    }

    fn read(root: &tempfile::TempDir, metrics: &[Metric]) -> Vec<Reading> {
        let mut device = SysfsDevice::find(root.path(), "0000:03:00.0", metrics, &nobody()).unwrap();
        let mut readings = Vec::new();
        device.sample(|_, reading| readings.push(reading));
        readings
    }

    fn value(whole: Micro) -> Reading {
        Reading::Value(whole * ONE)
    }

    /// A table of MI200's kind, as a driver would give it: 236 W, 10^6 units of energy, 37 %, 800 MHz.
    const TABLE: [u8; 120] = {
        let mut table = [0xff; 120];
        let put = [
            (0, 120),
            (1, 0),
            (2, 1),
            (3, 3),
            (6, 45),
            (7, 0),
            (8, 43),
            (9, 0),
            (16, 37),
            (17, 0),
            (18, 12),
            (19, 0),
            (22, 236),
            (23, 0),
            (24, 0x40),
            (25, 0x42),
            (26, 0x0f),
            (27, 0),
            (28, 0),
            (29, 0),
            (30, 0),
            (31, 0),
            (54, 0x20),
            (55, 3),
            (58, 0x40),
            (59, 6),
        ];
        let mut next = 0;
        while next < put.len() {
            table[put[next].0] = put[next].1;
            next += 1;
        }
        table
    };

    #[test]
    fn the_driver_s_own_files_come_before_the_table() {
        let root = tree(&[
            ("hwmon/hwmon3/power1_average", b"237000000\n"),
            ("hwmon/hwmon3/freq1_label", b"sclk\n"),
            ("hwmon/hwmon3/freq1_input", b"801000000\n"),
            ("hwmon/hwmon3/temp2_label", b"junction\n"),
            ("hwmon/hwmon3/temp2_input", b"-4500\n"),
            ("mem_info_vram_used", b"10240000000\n"),
            ("gpu_busy_percent", b"38\n"),
            ("gpu_metrics", &TABLE),
        ]);
        use Metric::*;
        let asked = [Power, Energy, Vram, Sclk, Mclk, TempHotspot, TempMem, GpuUtil, MemUtil];
        assert_eq!(
            read(&root, &asked),
            [
                value(237),
                Reading::Value(15_258_789),
                value(10_240_000_000),
                value(801),
                value(1600),
                Reading::Value(-4_500_000),
                value(43),
                value(38),
                value(12),
            ]
        );
        let mut device = SysfsDevice::find(root.path(), "0000:03:00.0", &asked, &nobody()).unwrap();
        device.sample(|_, _| {});
        assert_eq!(device.origin(0).as_deref(), Some("hwmon/hwmon3/power1_average"));
        assert_eq!(device.origin(1).as_deref(), Some("gpu_metrics"));
    }

    #[test]
    fn newer_chips_say_what_power_is_now() {
        let root = tree(&[
            ("hwmon/hwmon0/power1_input", b"717000000\n"),
            ("pp_dpm_sclk", b"0: 500Mhz \n1: 800Mhz *\n"),
        ]);
        assert_eq!(read(&root, &[Metric::Power, Metric::Sclk]), [value(717), value(800)]);
    }

    #[test]
    fn what_is_wrong_is_said_and_the_next_place_is_asked() {
        for (content, why) in [
            (&b""[..], "\"\" is not a number"),
            (b"N/A\n", "\"N/A\" is not a number"),
            (b"-1\n", "-1 % is more or less than there is"),
            (b"101\n", "101 % is more or less than there is"),
            (b"99999999999999999999\n", "is not a number"),
            (b"\x1b[31m\xff\x00\n", "\\u{1b}[31m"),
            (&[b'7'; 20_000], "\"77777777777777777777777777777777\" is not a number"),
        ] {
            let root = tree(&[("gpu_busy_percent", content)]);
            let readings = read(&root, &[Metric::GpuUtil]);
            let [Reading::Nothing(said)] = &readings[..] else { panic!("{content:?}: {readings:?}") };
            assert!(said.contains(why), "{said}");
            let root = tree(&[("gpu_busy_percent", content), ("gpu_metrics", &TABLE)]);
            assert_eq!(read(&root, &[Metric::GpuUtil]), [value(37)]);
        }
        let root = tree(&[("gpu_metrics", &[0, 1, 3, 0, 0])]);
        let readings = read(&root, &[Metric::Energy, Metric::Vram]);
        let [Reading::Nothing(energy), Reading::Nothing(vram)] = &readings[..] else {
            panic!("{readings:?}")
        };
        assert!(energy.ends_with("gpu_metrics: layout v3_0 is not known"), "{energy}");
        assert!(vram.ends_with("has no such sensor"), "{vram}");
    }

    #[test]
    fn what_is_no_file_holds_nothing_up() {
        let root = tree(&[]);
        let path = root.path().join("devices/0000:03:00.0/gpu_busy_percent");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(matches!(&read(&root, &[Metric::GpuUtil])[..], [Reading::Nothing(_)]));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(&read(&root, &[Metric::GpuUtil])[..], [Reading::Nothing(_)]));
    }

    /// As a driver makes it again.
    #[test]
    fn files_that_come_later_are_read_too() {
        use Metric::*;
        let root = tree(&[("gpu_busy_percent", b"38\n")]);
        let asked = [GpuUtil, Power, Energy, TempEdge];
        let mut device = SysfsDevice::find(root.path(), "0000:03:00.0", &asked, &nobody()).unwrap();
        let read = |device: &mut SysfsDevice| {
            let mut readings = Vec::new();
            device.sample(|_, reading| readings.push(reading));
            readings
        };
        assert!(matches!(
            &read(&mut device)[1..],
            [Reading::Nothing(_), Reading::Nothing(_), Reading::Nothing(_)]
        ));
        let directory = root.path().join("devices/0000:03:00.0");
        fs::write(directory.join("gpu_metrics"), TABLE).unwrap();
        device.look_again();
        let readings = read(&mut device);
        assert_eq!(readings[..3], [value(38), value(236), Reading::Value(15_258_789)]);
        fs::create_dir_all(directory.join("hwmon/hwmon9")).unwrap();
        for (name, content) in
            [("power1_average", "237000000\n"), ("temp1_label", "edge\n"), ("temp1_input", "41000\n")]
        {
            fs::write(directory.join("hwmon/hwmon9").join(name), content).unwrap();
        }
        device.look_again();
        assert_eq!(read(&mut device), [value(38), value(237), Reading::Value(15_258_789), value(41)]);
        // While it is gone it is looked for in vain.
        fs::remove_dir_all(&directory).unwrap();
        device.look_again();
        assert!(read(&mut device).iter().all(|reading| matches!(reading, Reading::Nothing(_))));
    }

    #[test]
    fn a_table_has_a_moment_of_its_own() {
        let root = tree(&[]);
        let path = root.path().join("devices/0000:03:00.0/gpu_metrics");
        let ago = |ns: u64| clock::read(Clock::Boottime) - ns;
        let put = |made: u64, sampled: u64, energy: u8| {
            let mut table = TABLE;
            table[26] = energy;
            table[32..40].copy_from_slice(&made.to_le_bytes());
            table[96..104].copy_from_slice(&sampled.to_le_bytes());
            fs::write(&path, table).unwrap();
        };
        put(ago(2_000_000_000), 1, 1);
        let mut device =
            SysfsDevice::find(root.path(), "0000:03:00.0", &[Metric::Energy], &nobody()).unwrap();
        let mut read = || {
            let mut read = Reading::Asleep;
            device.sample(|_, reading| read = reading);
            read
        };
        let expect = |reading: Reading, age: u64| {
            let Reading::Of(then, _) = reading else { panic!("{reading:?}") };
            let passed = clock::monotonic() - then;
            assert!((age..age + 1_000_000_000).contains(&passed), "{passed}");
        };
        expect(read(), 2_000_000_000);
        assert!(matches!(read(), Reading::Unchanged(_)));
        // The driver asks the firmware, which has nothing new.
        put(ago(0), 1, 1);
        assert!(matches!(read(), Reading::Unchanged(_)));
        // Where values change, a clock of the firmware that stands still says nothing.
        put(ago(1_000_000_000), 1, 2);
        expect(read(), 1_000_000_000);
        put(ago(0), 2, 2);
        expect(read(), 0);
        // Clocks of another start of the machine.
        for wrong in [ago(0) + 3_600_000_000_000, 0] {
            put(wrong, 3, 3);
            assert!(matches!(read(), Reading::Value(_)));
            assert!(matches!(read(), Reading::Value(_)));
        }
    }

    #[test]
    fn a_device_that_sleeps_is_left_alone() {
        let root = tree(&[("power/runtime_status", b"suspended\n"), ("gpu_busy_percent", b"38\n")]);
        assert_eq!(read(&root, &[Metric::GpuUtil]), [Reading::Asleep]);
        let root = tree(&[("power/runtime_status", b"active\n"), ("gpu_busy_percent", b"38\n")]);
        assert_eq!(read(&root, &[Metric::GpuUtil]), [value(38)]);
    }

    #[test]
    fn a_device_is_known_by_its_pci_address_alone() {
        let root = tree(&[]);
        assert!(SysfsDevice::find(root.path(), "0000:03:00.1", &[], &nobody()).is_none());
        assert!(SysfsDevice::find(root.path(), "", &[], &nobody()).is_none());
        assert!(SysfsDevice::find(Path::new("/nowhere"), "0000:03:00.0", &[], &nobody()).is_none());
        let bus = root.path().join("bus/pci/devices");
        fs::create_dir_all(&bus).unwrap();
        fs::rename(root.path().join("devices/0000:03:00.0"), bus.join("0000:03:00.0")).unwrap();
        assert!(SysfsDevice::find(root.path(), "0000:03:00.0", &[], &nobody()).is_some());
    }
}
