//! RPDT_MONITOR: what sensors read while a program runs, from a directory that stands for /sys. The files are as the driver amdgpu has
//! them; a test changes them while the program waits for it. NVIDIA's library is a stand-in (fixtures/simcuda), which reads a file too.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::cuda::libraries;
use crate::harness::{
    Dir, Loading, Run, Running, Trace, boot_minus_monotonic, monotonic, program, rpd, wait_for,
};

/// PCI address of the first software GPU.
const GPU: &str = "0000:04:00.0";

/// A tree with the sensors of that device.
pub(crate) struct Sysfs<'a> {
    dir: &'a Dir,
}

impl<'a> Sysfs<'a> {
    pub(crate) fn new(dir: &'a Dir) -> Sysfs<'a> {
        let sysfs = Sysfs { dir };
        // The numbers of cards are not those of GPUs.
        sysfs.put("uevent", format!("DRIVER=amdgpu\nPCI_SLOT_NAME={GPU}\n"));
        let card = dir.path("sys/class/drm/card5");
        fs::create_dir_all(&card).unwrap();
        std::os::unix::fs::symlink(sysfs.path(""), card.join("device")).unwrap();
        sysfs.put("power/runtime_status", "active\n");
        sysfs.put("hwmon/hwmon2/power1_average", "237000000\n");
        sysfs.put("mem_info_vram_used", "10240000000\n");
        sysfs
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path("sys/devices/pci0000:00").join(GPU).join(name)
    }

    /// As a whole: who reads sees the old content or the new one.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let part = path.with_extension("part");
        fs::write(&part, content).unwrap();
        fs::rename(part, path).unwrap();
    }

    fn watts(&self, watts: u32) {
        self.put("hwmon/hwmon2/power1_average", format!("{watts}000000\n"));
    }
}

/// The program that does what its arguments say, its sensors sampled every 2 ms.
fn control<'a>(dir: &'a Dir, sensors: &str, acts: &[&str]) -> Run<'a> {
    let run = acts.iter().fold(Run::new(dir, program("control")), |run, act| run.arg(*act));
    let run = run.recorded(Loading::Preload).env("RPDT_SYSFS", dir.path("sys"));
    run.env("RPDT_MONITOR", sensors).env("RPDT_MONITOR_PERIOD", "2ms").env("RPDT_AUTOFLUSH", "20")
}

/// A row: session, start, end, value.
pub(crate) type Row = (i64, i64, i64, String);

/// The rows of a sensor of GPU 0.
#[track_caller]
fn rows(trace: &Trace, sensor: &str) -> Vec<Row> {
    rows_of(trace, 0, sensor)
}

/// The rows of a sensor, in the order of time. They are sound, and no two overlap.
#[track_caller]
pub(crate) fn rows_of(trace: &Trace, gpu: u32, sensor: &str) -> Vec<Row> {
    let sql = format!(
        "select id >> 32, start, \"end\", value from rocpd_monitor where monitorType = '{sensor}' \
         and deviceType = 'gpu' and deviceId = {gpu} order by start"
    );
    let rows = trace.rows(&sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    assert!(rows.iter().all(|(_, start, end, _)| start < end), "{sensor}: {rows:?}");
    assert!(rows.windows(2).all(|pair| pair[0].2 <= pair[1].1), "{sensor}: {rows:?}");
    rows
}

/// The values one after the other.
fn values(rows: &[Row]) -> Vec<&str> {
    let mut values: Vec<&str> = rows.iter().map(|row| row.3.as_str()).collect();
    values.dedup();
    values
}

/// Waits until that value is in the trace.
fn wait_for_value(dir: &Dir, sensor: &str, value: &str) {
    let sql =
        format!("select count(*) from rocpd_monitor where monitorType = '{sensor}' and value = '{value}'");
    dir.wait_for_rows("trace.rpd", &sql, 1);
}

/// Starts it and waits for its first line.
fn ready(run: &Run<'_>) -> Running {
    let mut running = run.start();
    running.wait_for_output("ready");
    running
}

pub(crate) const WAITS: [&str; 4] = ["gpu", "mark=a", "say=ready", "wait=go"];

/// A table of MI200's kind in which nothing is there but these 16-bit numbers and so much energy.
fn table(energy: u64, numbers: &[(usize, u16)]) -> Vec<u8> {
    let mut table = vec![0xff; 120];
    table[..4].copy_from_slice(&[120, 0, 1, 3]);
    table[24..32].copy_from_slice(&energy.to_le_bytes());
    for (place, number) in numbers {
        table[*place..place + 2].copy_from_slice(&number.to_le_bytes());
    }
    table
}

#[test]
fn rows_are_what_the_files_said_and_when() {
    let dir = Dir::new();
    let sysfs = Sysfs::new(&dir);
    sysfs.put("gpu_metrics", table(1 << 16, &[(6, 45), (16, 37), (54, 800)]));
    let running = ready(&control(&dir, "all", &WAITS).env("RPDT_PROCFS", dir.path("proc")));
    wait_for_value(&dir, "power", "237");
    let before = monotonic();
    sysfs.watts(300);
    sysfs.put("gpu_metrics", table(3 << 15, &[(6, 45), (16, 99), (54, 1700)]));
    wait_for_value(&dir, "power", "300");
    wait_for_value(&dir, "energy", "1.5");
    let after = monotonic();
    sysfs.put("hwmon/hwmon2/power1_average", "71230000\n");
    wait_for_value(&dir, "power", "71.23");
    dir.touch("go");
    let ran = running.finish();
    ran.expect(0);
    let trace = dir.whole_trace();
    let power = rows(&trace, "power");
    assert_eq!(values(&power), ["237", "300", "71.23"]);
    let changed = power.iter().find(|row| row.3 == "300").unwrap().1;
    assert!((before..=after).contains(&changed), "{before} {changed} {after}");
    assert!(
        power.windows(2).all(|pair| pair[0].2 == pair[1].1),
        "a run ends where the next begins: {power:?}"
    );
    for (sensor, expected) in [
        ("energy", &["1", "1.5"][..]),
        ("vram", &["10240000000"]),
        ("sclk", &["800", "1700"]),
        ("temp_hotspot", &["45"]),
        ("gpu_util", &["37", "99"]),
    ] {
        assert_eq!(values(&rows(&trace, sensor)), expected, "{sensor}");
    }
    let end = trace.number(
        "select cast(value as integer) from rocpd_metadata where tag = 'session::0::end_monotonic_ns'",
    );
    let last = power.last().unwrap().2;
    assert!(last <= end && end - last < 2_000_000_000, "{last} {end}");
    let facts = trace.metadata("session::0::monitor%");
    let fact = |key: &str| facts.get(&format!("session::0::{key}")).map(String::as_str);
    assert_eq!(fact("monitor_period_ns"), Some("2000000"));
    assert_eq!(fact("monitor_file::0::power"), Some("hwmon/hwmon2/power1_average"));
    assert_eq!(fact("monitor_file::0::energy"), Some("gpu_metrics"));
    assert!(
        fact("monitor").is_some_and(|units| units.starts_with("power=W,energy=J,vram=bytes,")),
        "{facts:?}"
    );
    // What has no sensor is said, a line each.
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 5, "{}", ran.stderr);
    for sensor in ["vram_process", "mclk", "temp_edge", "temp_mem", "mem_util"] {
        let line = format!("sensor {sensor} of GPU 0 cannot be read: ");
        assert!(lines.iter().any(|said| said.contains(&line)), "{sensor}: {}", ran.stderr);
    }
}

#[test]
fn nothing_is_sampled_unless_it_is_asked_for() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    let run = |sensors| control(&dir, sensors, &["gpu", "mark=a", "spin=100", "threads"]).run();
    let without = run("none");
    let trace = dir.succeeded(&without);
    assert_eq!(trace.number("select count(*) from rocpd_monitor"), 0);
    assert!(trace.metadata("%monitor%").is_empty(), "{:?}", trace.metadata("%monitor%"));
    let with = run("power");
    let threads = |stdout: &str| stdout.trim().parse::<u32>().unwrap();
    assert_eq!(threads(&with.expect(0).expect_silent().stdout), threads(&without.stdout) + 1);
    // Without a GPU there is nothing to sample.
    let other = Dir::new();
    Sysfs::new(&other);
    let ran = control(&other, "power", &["mark=a", "spin=100"]).run();
    assert_eq!(other.succeeded(&ran).number("select count(*) from rocpd_monitor"), 0);
}

#[test]
fn what_happens_while_recording_is_stopped_is_in_no_row() {
    let dir = Dir::new();
    let sysfs = Sysfs::new(&dir);
    let acts = [
        "gpu",
        "mark=a",
        "say=ready",
        "wait=first",
        "mark=b",
        "stop",
        "say=stopped",
        "wait=second",
        "start",
        "mark=c",
        "say=started",
        "wait=third",
    ];
    let mut running = ready(&control(&dir, "power", &acts));
    wait_for_value(&dir, "power", "237");
    dir.touch("first");
    running.wait_for_output("stopped");
    sysfs.watts(999);
    std::thread::sleep(Duration::from_millis(300));
    sysfs.watts(100);
    dir.touch("second");
    running.wait_for_output("started");
    wait_for_value(&dir, "power", "100");
    dir.touch("third");
    let trace = dir.succeeded(&running.finish());
    let power = rows(&trace, "power");
    assert_eq!(values(&power), ["237", "100"]);
    let (before, after) = power.iter().partition::<Vec<&Row>, _>(|row| row.3 == "237");
    let last = before.last().unwrap().2;
    assert!(last < after[0].1 - 250_000_000, "{power:?}");
}

#[test]
fn a_flush_brings_what_there_is_into_the_file() {
    // A busy machine may give the thread no turn before the flush: again, then.
    let is_there = |_| {
        let dir = Dir::new();
        Sysfs::new(&dir);
        let acts = ["gpu", "mark=a", "spin=300", "flush", "say=ready", "wait=go"];
        let run = control(&dir, "power", &acts).env("RPDT_AUTOFLUSH", "1");
        let running = ready(&run);
        let sql = "select count(*) from rocpd_monitor where value = '237'";
        let is_there = Trace::count_so_far(&dir.path("trace.rpd"), sql) > 0;
        dir.touch("go");
        running.finish().expect(0);
        assert!(values(&rows(&dir.whole_trace(), "power")).iter().all(|value| *value == "237"));
        is_there
    };
    assert!((0..10).any(is_there), "it is there when the flush returns");
}

#[test]
fn a_sensor_that_fails_is_named_once_and_the_others_go_on() {
    let dir = Dir::new();
    let sysfs = Sysfs::new(&dir);
    sysfs.put("gpu_busy_percent", "\u{1b}[31mlots\n");
    sysfs.put("mem_busy_percent", "-7\n");
    sysfs.put("gpu_metrics", [7; 3]);
    let mut running = ready(&control(&dir, "power,energy,vram,gpu_util,mem_util", &WAITS));
    wait_for_value(&dir, "power", "237");
    // One goes, and comes back.
    fs::remove_file(sysfs.path("hwmon/hwmon2/power1_average")).unwrap();
    running.wait_for_error("sensor power ");
    std::thread::sleep(Duration::from_millis(200));
    sysfs.watts(240);
    wait_for_value(&dir, "power", "240");
    // The whole device goes, and comes back.
    let (device, away) = (sysfs.path(""), dir.path("away"));
    fs::rename(&device, &away).unwrap();
    running.wait_for_error("sensor vram ");
    fs::rename(&away, &device).unwrap();
    sysfs.put("mem_info_vram_used", "4096\n");
    wait_for_value(&dir, "vram", "4096");
    dir.touch("go");
    let ran = running.finish();
    ran.expect(0);
    let trace = dir.whole_trace();
    let power = rows(&trace, "power");
    assert_eq!(values(&power), ["237", "240"]);
    let (last, next) =
        (power.iter().rfind(|row| row.3 == "237").unwrap(), power.iter().find(|row| row.3 == "240"));
    assert!(next.unwrap().1 - last.2 > 100_000_000, "there is no row while there was no value: {power:?}");
    assert_eq!(values(&rows(&trace, "vram")), ["10240000000", "4096"]);
    for sensor in ["energy", "gpu_util", "mem_util"] {
        assert!(rows(&trace, sensor).is_empty(), "{sensor}");
    }
    let mut said: BTreeMap<&str, u32> = BTreeMap::new();
    for line in ran.stderr.lines() {
        assert!(!line.contains('\u{1b}'), "{line:?}");
        let sensor = line.split_once("sensor ").and_then(|(_, rest)| rest.split(' ').next());
        *said.entry(sensor.unwrap_or(line)).or_default() += 1;
    }
    let once = ["energy", "gpu_util", "mem_util", "power", "vram"].map(|sensor| (sensor, 1));
    assert_eq!(said, once.into(), "{}", ran.stderr);
}

#[test]
fn a_device_that_comes_back_file_by_file_has_all_of_its_sensors_again() {
    let dir = Dir::new();
    let sysfs = Sysfs::new(&dir);
    sysfs.put("gpu_metrics", table(1 << 16, &[]));
    let running = ready(&control(&dir, "power,energy,vram", &WAITS));
    wait_for_value(&dir, "energy", "1");
    fs::rename(sysfs.path(""), dir.path("gone")).unwrap();
    // What is read of it ends.
    wait_for("end of its rows", || {
        let later = monotonic();
        std::thread::sleep(Duration::from_millis(300));
        let sql = format!("select count(*) from rocpd_monitor where \"end\" > {later}");
        (Trace::count_so_far(&dir.path("trace.rpd"), &sql) == 0).then_some(())
    });
    sysfs.put("uevent", format!("DRIVER=amdgpu\nPCI_SLOT_NAME={GPU}\n"));
    for (name, content, sensor, value) in [
        ("hwmon/hwmon2/power1_average", b"111000000\n".to_vec(), "power", "111"),
        ("gpu_metrics", table(5 << 16, &[]), "energy", "5"),
        ("mem_info_vram_used", b"77\n".to_vec(), "vram", "77"),
    ] {
        sysfs.put(name, content);
        wait_for_value(&dir, sensor, value);
    }
    dir.touch("go");
    running.finish().expect(0);
}

/// A counter that is seen late would give joules to what ran later.
#[test]
fn a_table_counts_from_its_own_time() {
    let dir = Dir::new();
    let sysfs = Sysfs::new(&dir);
    let made = |energy: u64, ago: i64| {
        let mut table = table(energy << 16, &[]);
        table[32..40].copy_from_slice(&(monotonic() + boot_minus_monotonic() - ago).to_le_bytes());
        table
    };
    sysfs.put("gpu_metrics", made(1, 0));
    let running = ready(&control(&dir, "power,energy", &WAITS));
    wait_for_value(&dir, "power", "237");
    // The driver gives the same table for so long.
    let late = 700_000_000;
    std::thread::sleep(Duration::from_nanos(2 * late as u64));
    let then = monotonic() - late;
    sysfs.put("gpu_metrics", made(2, late));
    let put = monotonic();
    sysfs.watts(300);
    wait_for_value(&dir, "power", "300");
    dir.touch("go");
    running.finish().expect(0);
    let trace = dir.whole_trace();
    let energy = rows(&trace, "energy");
    assert_eq!(values(&energy), ["1", "2"]);
    let changed = energy.iter().find(|row| row.3 == "2").unwrap().1;
    assert!((then..=put - late).contains(&changed), "{then} {changed} {put}: {energy:?}");
    assert!(energy.windows(2).all(|pair| pair[0].2 == pair[1].1), "{energy:?}");
    // What has a file of its own counts from when it is read.
    let changed = rows(&trace, "power").iter().find(|row| row.3 == "300").unwrap().1;
    assert!(changed >= put, "{changed} {put}");
}

#[test]
fn a_device_that_sleeps_has_no_rows_and_one_that_is_not_there_is_named() {
    let dir = Dir::new();
    let sysfs = Sysfs::new(&dir);
    sysfs.put("power/runtime_status", "suspended\n");
    let running = ready(&control(&dir, "power", &WAITS).gpus(2));
    std::thread::sleep(Duration::from_millis(200));
    sysfs.watts(50);
    sysfs.put("power/runtime_status", "active\n");
    wait_for_value(&dir, "power", "50");
    dir.touch("go");
    let ran = running.finish();
    ran.expect(0);
    let trace = dir.whole_trace();
    assert_eq!(values(&rows(&trace, "power")), ["50"]);
    assert_eq!(trace.number("select count(distinct deviceId) from rocpd_monitor"), 1);
    let line = "no device \"0000:05:00.0\" (GPU 1) below ";
    assert_eq!(ran.stderr.matches(line).count(), 1, "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

/// Starts the second, which waits for a file `begin`, when the first has its values in the file.
fn one_after_the_other<'a>(dir: &'a Dir, first: Run<'a>, second: Run<'a>) -> (Running, Running) {
    let mut running = Run::start_all(&[first, second]).into_iter();
    let (mut first, mut second) = (running.next().unwrap(), running.next().unwrap());
    first.wait_for_output("ready");
    wait_for_value(dir, "power", "237");
    dir.touch("begin");
    second.wait_for_output("ready");
    (first, second)
}

#[test]
fn of_processes_with_one_file_one_samples_and_another_takes_its_place() {
    let dir = Dir::new();
    let sysfs = Sysfs::new(&dir);
    let first = control(&dir, "power", &["gpu", "mark=a", "say=ready", "wait=never"]);
    let second = control(&dir, "power", &["wait=begin", "gpu", "mark=b", "say=ready", "wait=go"]);
    let (first, second) = one_after_the_other(&dir, first, second);
    dir.wait_for_rows("trace.rpd", "select count(*) from rocpd_api where id >> 32 = 1", 1);
    sysfs.watts(250);
    wait_for_value(&dir, "power", "250");
    first.signal(libc::SIGKILL);
    first.finish().expect_signal(libc::SIGKILL);
    sysfs.watts(260);
    wait_for_value(&dir, "power", "260");
    dir.touch("go");
    second.finish().expect(0).expect_silent();
    let power = rows(&dir.whole_trace(), "power");
    // The second may find what the first has read before its end.
    assert_eq!(values(&power), ["237", "250", "260"]);
    let of = |value: &str| power.iter().find(|row| row.3 == value).map(|row| row.0);
    assert_eq!(["237", "250", "260"].map(of), [Some(0), Some(0), Some(1)], "{power:?}");
    assert!(power.is_sorted_by_key(|row| row.0), "the second after the first: {power:?}");
}

#[test]
fn a_process_that_takes_a_place_has_no_rows_of_the_time_before() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    // Values go into the file each second.
    let slow = |acts: &[&str]| control(&dir, "power", acts).env("RPDT_AUTOFLUSH", "1");
    let first = slow(&["gpu", "mark=a", "say=ready", "wait=never"]);
    let second = slow(&["wait=begin", "gpu", "mark=b", "say=ready", "wait=go"]);
    let (first, second) = one_after_the_other(&dir, first, second);
    let began = "select count(*) from rocpd_metadata where tag = 'session::1::pid'";
    dir.wait_for_rows("trace.rpd", began, 1);
    std::thread::sleep(Duration::from_millis(500));
    first.signal(libc::SIGKILL);
    first.finish().expect_signal(libc::SIGKILL);
    let of_second = "select count(*) from rocpd_monitor where id >> 32 = 1";
    dir.wait_for_rows("trace.rpd", of_second, 1);
    dir.touch("go");
    second.finish().expect(0);
    // Which asserts that none overlap.
    assert_eq!(values(&rows(&dir.whole_trace(), "power")), ["237"]);
}

/// RPDT_AUTOFLUSH says when values are written, not from when on.
#[test]
fn sampling_begins_before_the_next_transaction() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    // The writer begins with the first mark. A second later, when it would look again, the program has ended.
    let acts = ["mark=before", "gpu", "mark=a", "spin=900"];
    control(&dir, "power", &acts).env("RPDT_AUTOFLUSH", "1").run().expect(0);
    assert_eq!(values(&rows(&dir.whole_trace(), "power")), ["237"]);
}

#[test]
fn a_card_with_several_gpus_is_sampled_once() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    for (node, location) in [(1, 0x400_u32), (2, 0x1000_0400)] {
        let node = dir.path(&format!("sys/class/kfd/kfd/topology/nodes/{node}"));
        fs::create_dir_all(&node).unwrap();
        fs::write(node.join("gpu_id"), "1234\n").unwrap();
        let properties =
            format!("simd_count 440\nlocation_id {location}\ndomain 0\ngfx_target_version 90402\n");
        fs::write(node.join("properties"), properties).unwrap();
    }
    let ran = rpd_monitor(&dir, &["--all", "--sensors", "power:60s", "--", "true"]).run();
    let line = "GPU 1 is on the card of GPU 0: its sensors are recorded as that one's";
    assert!(ran.expect(0).stderr.contains(line), "{ran}");
    let trace = dir.trace("monitor.rpd");
    assert_eq!(values(&rows_of(&trace, 0, "power")), ["237"]);
    assert!(rows_of(&trace, 1, "power").is_empty());
}

#[test]
fn a_forked_child_samples_only_where_nobody_else_does() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    let acts =
        ["gpu", "mark=a", "spin=200", "fork", "mark=b", "spin=300", "file=other.rpd", "mark=c", "spin=300"];
    control(&dir, "power", &acts).run().expect(0).expect_silent();
    let here = rows(&dir.whole_trace(), "power");
    assert!(!here.is_empty() && here.iter().all(|row| row.0 == 0), "{here:?}");
    // Parent and child went to another file, one after the other.
    let there = rows(&dir.trace("other.rpd"), "power");
    let mut sessions: Vec<i64> = there.iter().map(|row| row.0).collect();
    sessions.dedup();
    assert_eq!(sessions, [0, 1], "{there:?}");
}

#[test]
fn rpd_record_asks_for_it_and_the_program_s_descriptors_are_its_own() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    let run = WAITS.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
    let run = run.recorded(Loading::RpdRecord).env("RPDT_SYSFS", dir.path("sys"));
    let mut running = run.record_option("--monitor=power,vram:1ms").start();
    running.wait_for_output("ready");
    wait_for_value(&dir, "power", "237");
    // Below rpd record.
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let pid = wait_for("the program", || {
        fs::read_to_string(&children).ok()?.split_whitespace().next().map(str::to_string)
    });
    let mut tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let samples = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm == "rpd-monitor\n")
    };
    let thread = tasks.find(samples).expect("a thread that samples");
    let files = fs::read_dir(thread.path().join("fd")).unwrap().flatten();
    let files: Vec<PathBuf> = files.filter_map(|file| fs::read_link(file.path()).ok()).collect();
    assert!(files.iter().all(|file| file.starts_with(dir.path("sys"))), "{files:?}");
    dir.touch("go");
    running.finish().expect(0);
    let trace = dir.whole_trace();
    assert_eq!(values(&rows(&trace, "power")), ["237"]);
    assert_eq!(values(&rows(&trace, "vram")), ["10240000000"]);
    assert_eq!(
        trace.metadata("session::0::monitor_period_ns").into_values().collect::<Vec<_>>(),
        ["1000000"]
    );
}

/// `rpd record` has the last line, whether or not the recorder came to look for the sensors.
#[test]
fn rpd_record_says_where_no_sensor_was_read() {
    let none = "; no sensor was read\n";
    let ended = |acts: &[&str], asked: &str| {
        let dir = Dir::new();
        fs::create_dir(dir.path("sys")).unwrap();
        let run = acts.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
        let run = run.recorded(Loading::RpdRecord).env("RPDT_SYSFS", dir.path("sys"));
        run.record_option(asked).run().expect(0).stderr.clone()
    };
    for acts in [&["gpu", "mark=a"][..], &["gpu", "mark=a", "spin=300"], &["mark=a"]] {
        for asked in ["--monitor=power,energy", "--monitor=available"] {
            let said = ended(acts, asked);
            assert!(
                said.ends_with(none) && said.matches("no sensor was read").count() == 1,
                "{acts:?} {asked}: {said}"
            );
        }
        let said = ended(acts, "--stackframes");
        assert!(!said.contains("no sensor"), "{acts:?}: {said}");
    }
    let dir = Dir::new();
    Sysfs::new(&dir);
    let run = WAITS.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
    let run = run.recorded(Loading::RpdRecord).env("RPDT_SYSFS", dir.path("sys"));
    let mut running = run.record_option("--monitor=power:2ms").start();
    running.wait_for_output("ready");
    wait_for_value(&dir, "power", "237");
    dir.touch("go");
    let said = running.finish();
    assert!(!said.expect(0).stderr.contains("no sensor was read"), "{said}");
}

/// Its number: the software GPU comes first.
const NVIDIA: u32 = 1;

/// work.c doing `what` on the stand-ins for NVIDIA's libraries; sensors read what `readings` says.
fn nvidia<'a>(dir: &'a Dir, sensors: &str, readings: &str, what: &str) -> Run<'a> {
    let folder = libraries(dir, 130_001);
    let nvml = folder.join("libnvidia-ml.so.1");
    if !nvml.exists() {
        std::os::unix::fs::symlink(program("libnvidia-ml.so.1"), nvml).unwrap();
    }
    say(dir, readings);
    let run = what.split(' ').fold(Run::new(dir, program("cuda_work")), |run, word| run.arg(word));
    let run = run.recorded(Loading::Preload).env("LD_LIBRARY_PATH", folder).env("SIMNVML", dir.path("nvml"));
    run.env("RPDT_MONITOR", sensors).env("RPDT_MONITOR_PERIOD", "2ms").env("RPDT_AUTOFLUSH", "20")
}

/// The sensors of NVIDIA's GPU read that from now on.
fn say(dir: &Dir, readings: &str) {
    fs::write(dir.path("nvml.part"), readings.replace(", ", "\n") + "\n").unwrap();
    fs::rename(dir.path("nvml.part"), dir.path("nvml")).unwrap();
}

#[test]
fn sensors_of_nvidias_gpus_come_from_their_library() {
    let dir = Dir::new();
    let readings = "power 237500, average 111000, energy 1234567, total 85899345920, used 1024, sm 1980, mem 2619, \
        temperature 41, hbm 52, gpu 98, memory 7";
    let running = nvidia(&dir, "all", readings, "launch=10 sleep=6000 launch=10").start();
    wait_for_value(&dir, "energy", "1234.567");
    let before = monotonic();
    say(&dir, "average 111000, energy 1234667, used 2048, total 85899345920, gpu !999");
    wait_for_value(&dir, "power", "111");
    wait_for_value(&dir, "energy", "1234.667");
    let after = monotonic();
    let ran = running.finish();
    ran.expect(0);
    let trace = dir.whole_trace();
    for (sensor, expected) in [
        ("power", &["237.5", "111"][..]),
        ("energy", &["1234.567", "1234.667"]),
        ("vram", &["1024", "2048"]),
        ("sclk", &["1980"]),
        ("mclk", &["2619"]),
        ("temp_edge", &["41"]),
        ("temp_mem", &["52"]),
        ("gpu_util", &["98"]),
        ("mem_util", &["7"]),
        ("temp_hotspot", &[]),
    ] {
        assert_eq!(values(&rows_of(&trace, NVIDIA, sensor)), expected, "{sensor}");
    }
    let changed = rows_of(&trace, NVIDIA, "power").iter().find(|row| row.3 == "111").unwrap().1;
    assert!((before..=after).contains(&changed), "{before} {changed} {after}");
    let facts = trace.metadata("session::0::monitor_%::1%");
    let fact = |key: &str| facts.get(&format!("session::0::monitor_{key}")).map(String::as_str);
    assert_eq!(fact("file::1::energy"), Some("nvmlDeviceGetTotalEnergyConsumption"), "{facts:?}");
    assert_eq!(fact("vram_total::1"), Some("85899345920"));
    // Said once of each sensor that has no value, or has none any more.
    let said = |what: &str| ran.stderr.matches(what).count();
    assert_eq!(said("sensor temp_hotspot of GPU 1 cannot be read: NVML has no such sensor"), 1, "{ran}");
    let line = "sensor gpu_util of GPU 1 cannot be read: nvmlDeviceGetUtilizationRates: Unknown Error";
    assert_eq!(said(line), 1, "{ran}");
    assert_eq!(said("sensor "), 8, "{ran}");
}

/// The driver samples power more often than its other values change, and than it is asked.
#[test]
fn power_of_nvidias_gpus_has_each_sample_of_the_drivers_buffer() {
    let dir = Dir::new();
    let readings = "samples 100000, power 237500";
    let running = nvidia(&dir, "power", readings, "launch=10 sleep=1500 launch=10");
    let ran = running.env("RPDT_MONITOR_PERIOD", "100ms").run();
    ran.expect(0).expect_silent();
    let trace = dir.whole_trace();
    let rows = rows_of(&trace, NVIDIA, "power");
    assert!(rows.len() > 20, "{rows:?}");
    for (one, next) in rows.iter().zip(&rows[1..]) {
        let watts: u64 = one.3.parse().unwrap();
        let follows = if one.3 == next.3 { watts } else { 100 + (watts + 1) % 5 };
        assert_eq!((next.1, next.3.parse()), (one.2, Ok(follows)), "{one:?} {next:?}");
    }
    let facts = trace.metadata("session::0::monitor_file::1::power");
    assert_eq!(facts.values().collect::<Vec<_>>(), ["nvmlDeviceGetSamples"]);
    // Where the buffer has nothing, the sensor is asked.
    let dir = Dir::new();
    let ran = nvidia(&dir, "power", "samples !6, power 237500", "launch=10 sleep=500 launch=10").run();
    ran.expect(0).expect_silent();
    assert_eq!(values(&rows_of(&dir.whole_trace(), NVIDIA, "power")), ["237.5"]);
}

#[test]
fn an_nvml_that_does_not_answer_is_named_once() {
    for (readings, why) in [
        ("init !999", "NVML cannot be initialised: Unknown Error"),
        ("handle !6", "NVML does not find it: Not Found"),
    ] {
        let dir = Dir::new();
        let ran = nvidia(&dir, "power", readings, "launch=10 sleep=1500 launch=10").run();
        ran.expect(0);
        let line = format!("]: GPU {NVIDIA} (0000:0a:00.0): {why}: its sensors are not recorded\n");
        assert!(ran.stderr.ends_with(&line) && ran.stderr.lines().count() == 1, "{ran}");
        assert_eq!(dir.whole_trace().number("select count(*) from op"), 20);
    }
    let (dir, other) = (Dir::new(), Dir::new());
    let run = nvidia(&dir, "power", "", "launch=10 sleep=600000");
    let mut running = run.env("LD_LIBRARY_PATH", libraries(&other, 130_001)).start();
    running.wait_for_error("libnvidia-ml.so.1, which has its sensors, cannot be loaded");
    running.signal(libc::SIGKILL);
    running.finish().expect_signal(libc::SIGKILL);
}

/// The stand-in aborts where it is called after its own end, and in a process that has not initialised it.
#[test]
fn nobody_is_in_nvml_when_the_process_ends_or_behind_a_fork() {
    for (end, status) in [("sleep=0", 0), ("exit", 6), ("_exit", 5), ("fork=3", 0), ("fork-marks=3", 0)] {
        let is_sampled = |round| {
            let dir = Dir::new();
            let what = format!("launch=10 sleep={} {end}", 200 + round);
            let ran = nvidia(&dir, "energy,power", "power 5000, energy 1000", &what).run();
            ran.expect(status).expect_silent();
            let rows = rows_of(&dir.whole_trace(), NVIDIA, "energy");
            assert!(rows.iter().all(|row| row.3 == "1"), "{end}: {rows:?}");
            !rows.is_empty()
        };
        // A busy machine may give the thread no turn in one of them.
        assert!((0..5).filter(|round| is_sampled(*round)).count() > 0, "{end}");
    }
}

#[test]
fn the_memory_of_the_program_and_its_children_is_a_sensor() {
    let dir = Dir::new();
    let sysfs = Sysfs::new(&dir);
    let node = dir.path("sys/class/kfd/kfd/topology/nodes/1");
    fs::create_dir_all(&node).unwrap();
    fs::write(node.join("gpu_id"), "51\n").unwrap();
    fs::write(node.join("properties"), "location_id 1024\ndomain 0\n").unwrap();
    fs::create_dir_all(dir.path("sys/class/kfd/kfd/proc")).unwrap();
    let held = |pid: &str, bytes: &str| {
        let folder = dir.path("sys/class/kfd/kfd/proc").join(pid);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("vram_51"), bytes).unwrap();
    };
    held("1", "7");
    let run = WAITS.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
    let run = run.recorded(Loading::RpdRecord).env("RPDT_SYSFS", dir.path("sys")).env("RPDT_AUTOFLUSH", "20");
    let mut running = run.record_option("--monitor=vram_process,vram").start();
    running.wait_for_output("ready");
    wait_for_value(&dir, "vram_process", "0");
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let children = fs::read_to_string(children).unwrap();
    held(children.split_whitespace().next().unwrap(), "4096");
    wait_for_value(&dir, "vram_process", "4096");
    // It is read no more often than it can be, and the others go on meanwhile.
    sysfs.put("mem_info_vram_used", "8192\n");
    wait_for_value(&dir, "vram", "8192");
    dir.touch("go");
    running.finish().expect(0);
    let trace = dir.whole_trace();
    assert_eq!(values(&rows(&trace, "vram_process")), ["0", "4096"]);
    assert_eq!(
        trace.metadata("session::0::monitor_file::0::vram_process").into_values().next().as_deref(),
        Some("class/kfd/kfd/proc")
    );
}

/// `rpd monitor` with these arguments, on the files below sys, where NVIDIA's library is not.
fn rpd_monitor<'a>(dir: &'a Dir, arguments: &[&str]) -> Run<'a> {
    let run = Run::new(dir, rpd()).env("LD_PRELOAD", "").env("RPDT_SYSFS", dir.path("sys"));
    let run = run.env("RPDT_PROCFS", "/proc").env("RPDT_AUTOFLUSH", "20").arg("monitor");
    arguments.iter().fold(run, |run, argument| run.arg(*argument))
}

#[test]
fn rpd_monitor_samples_until_the_command_ends_which_is_not_recorded() {
    let dir = Dir::new();
    let sysfs = Sysfs::new(&dir);
    sysfs.put("gpu_busy_percent", "38\n");
    let say = "env > environment; echo out; read line; echo \"$line\"; exit 7";
    let running =
        rpd_monitor(&dir, &["-o", "%%m%p.rpd", "--sensors", "available:2ms", "--", "sh", "-c", say]).start();
    let trace = format!("%m{}.rpd", running.pid());
    dir.wait_for_rows(
        &trace,
        "select count(*) from rocpd_monitor where monitorType = 'gpu_util' and value = '38'",
        1,
    );
    let ran = running.finish();
    ran.expect(7);
    assert_eq!(ran.stdout, "out\n\n");
    let line = format!("rpd: {trace}: 1 GPU, ");
    assert!(ran.stderr.starts_with(&line) && ran.stderr.lines().count() == 1, "{ran}");
    let environment = fs::read_to_string(dir.path("environment")).unwrap();
    assert!(!environment.contains("rpd_tracer") && !environment.contains("RPDT_MONITOR"), "{environment}");
    let trace = dir.trace(&trace);
    for (sensor, value) in [("power", "237"), ("vram", "10240000000"), ("gpu_util", "38")] {
        assert_eq!(values(&rows(&trace, sensor)), [value], "{sensor}");
    }
    assert_eq!(
        trace.number("select count(*) from rocpd_op") + trace.number("select count(*) from rocpd_api"),
        0
    );
    assert_eq!(trace.metadata("gpu::0::bdf").into_values().collect::<Vec<_>>(), [GPU]);
}

#[test]
fn rpd_monitor_ends_by_a_signal_or_after_a_time() {
    for arguments in [&["--sensors", "power"][..], &["--sensors", "power", "--duration", "300ms"]] {
        let dir = Dir::new();
        Sysfs::new(&dir);
        let running = rpd_monitor(&dir, arguments).start();
        if arguments.len() == 2 {
            dir.wait_for_rows("monitor.rpd", "select count(*) from rocpd_monitor", 1);
            // As `timeout` does.
            running.signal(libc::SIGTERM);
            std::thread::sleep(Duration::from_millis(1));
            running.signal(libc::SIGTERM);
        }
        let ran = running.finish();
        ran.expect(0);
        assert!(ran.stderr.starts_with("rpd: ") && ran.stderr.contains("monitor.rpd: "), "{ran}");
        let trace = dir.trace("monitor.rpd");
        let power = rows(&trace, "power");
        assert!(power.iter().all(|row| row.3 == "237"), "{power:?}");
        // What is there is not overwritten.
        let again = rpd_monitor(&dir, arguments).run();
        assert!(again.expect(1).stderr.contains("already holds a recording: --append adds to it"), "{again}");
    }
}

#[test]
fn rpd_monitor_knows_nvidias_gpus_and_says_which_are_not_there() {
    let (dir, amd) = (Dir::new(), Dir::new());
    let sysfs = Sysfs::new(&amd);
    sysfs.watts(100);
    let command = ["--sensors=available:2ms", "--", "sh", "-c", "exec sleep 2"];
    let nvidia = |arguments: &[&str]| {
        let folder = libraries(&dir, 130_001);
        let nvml = folder.join("libnvidia-ml.so.1");
        if !nvml.exists() {
            std::os::unix::fs::symlink(program("libnvidia-ml.so.1"), nvml).unwrap();
        }
        rpd_monitor(&dir, arguments).env("LD_LIBRARY_PATH", folder).env("SIMNVML", dir.path("nvml"))
    };
    say(&dir, "power 237500, held 4096, pid 1");
    let running = nvidia(&command).env("RPDT_SYSFS", amd.path("sys")).start();
    say(&dir, &format!("power 237500, held 4096, pid {}", running.pid()));
    dir.wait_for_rows(
        "monitor.rpd",
        "select count(*) from rocpd_monitor where monitorType = 'vram_process' and value = '4096'",
        1,
    );
    let ran = running.finish();
    ran.expect(0);
    let trace = dir.trace("monitor.rpd");
    // No recording has a number for AMD's: it has no KFD. So it comes last.
    assert_eq!(values(&rows_of(&trace, 0, "power")), ["237.5"]);
    assert_eq!(values(&rows_of(&trace, 1, "power")), ["100"]);
    assert_eq!(trace.metadata("gpu::0::bdf").into_values().collect::<Vec<_>>(), ["0000:0a:00.0"]);
    assert_eq!(trace.metadata("gpu::0::target").into_values().collect::<Vec<_>>(), ["sm_90"]);
    let chosen = |gpus: &str| {
        nvidia(&["-o", "other.rpd", "--gpu", gpus, "--sensors=power:2ms", "--duration", "500ms"])
    };
    let chosen = |gpus: &str| chosen(gpus).env("RPDT_SYSFS", amd.path("sys")).run();
    chosen("1").expect(0);
    assert!(values(&rows_of(&dir.trace("other.rpd"), 0, "power")).is_empty());
    fs::remove_file(dir.path("other.rpd")).unwrap();
    let ran = chosen("0,7");
    assert!(ran.expect(1).stderr.contains("of the GPUs 0, 7 only 1 can be sampled: "), "{ran}");
    assert!(!dir.path("other.rpd").exists(), "nothing is left of it");
    // On a machine without any.
    let none = Dir::new();
    let ran = rpd_monitor(&none, &["--", "touch", "ran"]).run();
    assert!(ran.expect(1).stderr.contains("no GPU to sample: "), "{ran}");
    assert!(none.names().is_empty(), "the command has not run, and there is no file: {:?}", none.names());
    let ran = rpd_monitor(&amd, &["--", "no-such-command"]).run();
    assert!(ran.expect(127).stderr.contains("cannot run no-such-command: command not found"), "{ran}");
    let ran = rpd_monitor(&amd, &["--sensors=powr"]).run();
    assert!(ran.expect(2).stderr.contains("there is no sensor \"powr\"; did you mean power?"), "{ran}");
}

#[test]
fn rpd_monitor_has_values_of_the_shortest_command() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    let ran = rpd_monitor(&dir, &["--sensors", "power:60s", "--", "true"]).env("RPDT_DURATION", "1ns").run();
    assert!(ran.expect(0).stderr.contains("monitor.rpd: 1 GPU, 1 sensor, "), "{ran}");
    assert!(ran.stderr.contains(" 0 records lost, "), "{ran}");
    assert_eq!(values(&rows(&dir.trace("monitor.rpd"), "power")), ["237"]);
}

#[test]
fn rpd_monitor_replaces_no_trace_for_nothing() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    rpd_monitor(&dir, &["--sensors", "power", "--", "true"]).run().expect(0);
    let before = fs::read(dir.path("monitor.rpd")).unwrap();
    fs::write(dir.path("script"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(dir.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let nothing = Dir::new();
    let forced =
        |arguments: &[&str]| rpd_monitor(&dir, &[&["--force", "--sensors", "power"], arguments].concat());
    for (ran, status, why) in [
        (forced(&["--gpu", "7"]).run(), 1, "there is no GPU 7: "),
        (forced(&[]).env("RPDT_SYSFS", nothing.path("sys")).run(), 1, "no GPU to sample: "),
        (forced(&["--", "./script"]).run(), 127, "cannot run ./script: the interpreter that it names"),
        (forced(&["--", "./none"]).run(), 127, "cannot run ./none: command not found"),
    ] {
        assert!(ran.expect(status).stderr.contains(why), "{ran}");
        assert_eq!(fs::read(dir.path("monitor.rpd")).unwrap(), before, "{ran}");
    }
    // The first GPU, in other words.
    let ran = forced(&["--gpu", " 0, 0", "--", "true"]).run();
    assert!(ran.expect(0).stderr.contains("monitor.rpd: 1 GPU, 1 sensor, "), "{ran}");
}

#[test]
fn two_rpd_monitors_do_not_share_a_gpu_in_one_file() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    let first = rpd_monitor(&dir, &["--sensors", "power:5ms"]).start();
    dir.wait_for_rows("monitor.rpd", "select count(*) from rocpd_monitor", 1);
    let second = ["--append", "--sensors", "vram", "--", "touch", "ran"];
    let ran = rpd_monitor(&dir, &second).start_beside().finish();
    assert!(ran.expect(1).stderr.contains("another process samples these GPUs into "), "{ran}");
    assert!(!dir.path("ran").exists());
    first.signal(libc::SIGTERM);
    first.finish().expect(0);
    let ran = rpd_monitor(&dir, &second).run();
    assert!(ran.expect(0).stderr.contains("monitor.rpd: 1 GPU, 1 sensor, "), "{ran}");
    assert!(dir.path("ran").exists());
}

#[test]
fn rpd_monitor_brings_its_file_to_an_end_when_its_command_has_ended() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    // A signal comes as soon as nobody forwards it any more.
    let command = "(while kill -0 $$; do :; done; kill -TERM $PPID) </dev/null >/dev/null 2>&1 & exit 3";
    let ran = rpd_monitor(&dir, &["--sensors", "power:5ms", "--", "sh", "-c", command]).run();
    assert!(ran.expect(3).stderr.contains("monitor.rpd: 1 GPU, 1 sensor, "), "{ran}");
    assert!(!dir.path("monitor.rpd-journal").exists());
}

#[test]
fn rpd_monitor_does_not_begin_a_command_behind_a_signal() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    rpd_monitor(&dir, &["--sensors", "power", "--", "true"]).run().expect(0);
    // The file is another's for a while, which the recorder waits for.
    let other = rusqlite::Connection::open(dir.path("monitor.rpd")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let running = rpd_monitor(&dir, &["--append", "--sensors", "power", "--", "touch", "ran"]).start();
    let has_handler = || {
        let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        (caught & 1 << (libc::SIGTERM - 1) != 0).then_some(())
    };
    wait_for("a handler of SIGTERM", has_handler);
    running.signal(libc::SIGTERM);
    std::thread::sleep(Duration::from_millis(200));
    drop(other);
    running.finish().expect_signal(libc::SIGTERM);
    assert!(!dir.path("ran").exists());
}

#[test]
fn a_recording_without_a_row_is_one() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    // Its only row comes at its end.
    let first = rpd_monitor(&dir, &["--sensors", "power:60s"]).start();
    dir.wait_for_rows(
        "monitor.rpd",
        "select count(*) from rocpd_metadata where tag like 'session::%::pid'",
        1,
    );
    for (options, why) in [
        (&[][..], "monitor.rpd already holds a recording: "),
        (&["--force"], "monitor.rpd is being recorded into by process "),
    ] {
        let refused = rpd_monitor(&dir, &[options, &["--sensors", "power", "--", "touch", "ran"]].concat());
        let ran = refused.start_beside().finish();
        assert!(ran.expect(1).stderr.contains(why), "{ran}");
        assert!(!dir.path("ran").exists());
    }
    assert_eq!(dir.trace("monitor.rpd").session_count(), 1);
    let forced = rpd_monitor(&dir, &["--force", "--force", "--sensors", "power", "--", "touch", "ran"]);
    forced.start_beside().finish().expect(0);
    assert_eq!(values(&rows(&dir.trace("monitor.rpd"), "power")), ["237"]);
    assert!(dir.path("ran").exists());
    first.signal(libc::SIGTERM);
    first.finish();
}

#[test]
fn rpd_monitor_does_not_run_a_command_where_no_gpu_has_the_sensors() {
    let dir = Dir::new();
    let sysfs = Sysfs::new(&dir);
    for (sensors, why) in [
        (
            "energy",
            "rpd: no sensor to sample: no GPU has energy; --sensors available samples those that there are\n",
        ),
        (
            "energy,mclk:5ms",
            "rpd: no sensor to sample: no GPU has energy or mclk; --sensors available samples ",
        ),
    ] {
        let ran = rpd_monitor(&dir, &["--sensors", sensors, "--", "touch", "ran"]).run();
        assert!(ran.expect(1).stderr.contains(why), "{ran}");
        assert!(ran.stderr.contains("]: no sampled GPU has the sensor energy: "), "{ran}");
        assert_eq!(ran.stderr.lines().count(), 1 + sensors.split(',').count(), "{ran}");
    }
    let ran = rpd_monitor(&dir, &["--sensors", "energy", "--gpu", "0"]).run();
    assert!(ran.expect(1).stderr.contains("none of the GPUs 0 has energy; "), "{ran}");
    assert_eq!(dir.names(), ["sys"], "the command has not run, and there is no file");
    // A trace that is there stays.
    rpd_monitor(&dir, &["--sensors", "power", "--", "true"]).run().expect(0);
    let before = fs::read(dir.path("monitor.rpd")).unwrap();
    let ran = rpd_monitor(&dir, &["--force", "--sensors", "energy", "--", "touch", "ran"]).run();
    ran.expect(1);
    assert_eq!(fs::read(dir.path("monitor.rpd")).unwrap(), before, "{ran}");
    // Nothing at all.
    fs::remove_file(sysfs.path("hwmon/hwmon2/power1_average")).unwrap();
    fs::remove_file(sysfs.path("mem_info_vram_used")).unwrap();
    let ran = rpd_monitor(&dir, &["-o", "other.rpd", "--", "touch", "ran"]).run();
    let why = "rpd: no sensor to sample: no GPU has one that can be read; --sensors all says why\n";
    assert_eq!(ran.expect(1).stderr, why);
    // What processes have is read where the GPU says what all have.
    for sensors in ["vram_process", "energy,vram_process"] {
        let arguments = ["--force", "--sensors", sensors, "--", "touch", "ran"];
        rpd_monitor(&dir, &arguments).run().expect(1);
        assert_eq!(fs::read(dir.path("monitor.rpd")).unwrap(), before);
    }
    // One that sleeps is not woken to see what it has.
    sysfs.put("power/runtime_status", "suspended\n");
    let ran = rpd_monitor(&dir, &["-o", "other.rpd", "--sensors", "energy", "--", "touch", "ran"]).run();
    ran.expect(0);
    assert!(ran.stderr.contains("no sensor had a value; rpd does not wake a GPU that sleeps"), "{ran}");
    assert!(dir.path("ran").exists());
}

#[test]
fn rpd_monitor_names_sensors_that_no_gpu_has_once() {
    let dir = Dir::new();
    Sysfs::new(&dir);
    // A second GPU, which has nothing but a counter of joules.
    let device = dir.path("sys/devices/pci0000:00/0000:05:00.0");
    fs::create_dir_all(&device).unwrap();
    fs::write(device.join("uevent"), "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:05:00.0\n").unwrap();
    fs::write(device.join("gpu_metrics"), table(1 << 16, &[])).unwrap();
    let card = dir.path("sys/class/drm/card7");
    fs::create_dir_all(&card).unwrap();
    std::os::unix::fs::symlink(&device, card.join("device")).unwrap();
    let ran = rpd_monitor(&dir, &["--sensors", "power,energy,temp_edge", "--", "touch", "ran"]).run();
    assert!(ran.expect(0).stderr.contains("monitor.rpd: 2 GPUs, 2 sensors, "), "{ran}");
    assert!(dir.path("ran").exists());
    for line in [
        "]: no sampled GPU has the sensor temp_edge: GPU 0: ",
        "]: sensor energy of GPU 0 cannot be read: ",
        "]: sensor power of GPU 1 cannot be read: ",
    ] {
        assert_eq!(ran.stderr.matches(line).count(), 1, "{ran}");
    }
    assert_eq!(ran.stderr.lines().count(), 4, "no more is said of temp_edge: {ran}");
    assert_eq!(values(&rows_of(&dir.trace("monitor.rpd"), 1, "energy")), ["1"]);
    // What processes use is known once there are any.
    let ran = rpd_monitor(&dir, &["-o", "other.rpd", "--sensors", "vram_process", "--", "true"]).run();
    ran.expect(0);
    assert!(!ran.stderr.contains("no sampled GPU has"), "{ran}");
}
