//! docs/mapping.md as code: which ops a device's log must become, and whether a trace has exactly those.

use std::collections::{BTreeMap, BTreeSet};

use rpd_simgpu::execlog::{Direction, Kind, Packet};

use super::clock::boot_minus_monotonic;
use super::tool;
use super::trace::{Api, CopyApi, Launch, Op, Trace};

/// Translated times may differ from the log's by this much, ns.
const TOLERANCE: i64 = 1000;
/// Differences shown of those found.
const SHOWN: usize = 12;

/// The ops that one process's log must become.
pub(crate) struct Expected {
    /// Packets of the application's queues that are ops, by GPU and the log's queue number, in the queue's order.
    queues: BTreeMap<(u32, u32), Vec<Packet>>,
    /// Asynchronous copies, by GPU and start.
    copies: Vec<Transfer>,
    /// Demangled by mangled name.
    names: BTreeMap<String, String>,
}

/// One asynchronous copy: the packets of one call.
#[derive(Debug, Clone)]
struct Transfer {
    gpu: u32,
    op_type: &'static str,
    bytes: u64,
    source: Option<u32>,
    destination: Option<u32>,
    start_ns: u64,
    end_ns: u64,
}

/// What an application's packet is in the file; nothing for a packet that is no op.
fn op_type(packet: &Packet) -> Option<&'static str> {
    if packet.kind != Kind::Dispatch || packet.internal {
        return None;
    }
    Some(match packet.name.strip_prefix("__amd_rocclr_") {
        Some(name) if name.starts_with("copy") => {
            copy_type(packet.direction.unwrap(), name.starts_with("copyBufferRect"))
        }
        Some(name) if name.starts_with("fill") => "FillBuffer",
        _ => "KernelExecution",
    })
}

fn copy_type(direction: Direction, rectangle: bool) -> &'static str {
    match (direction, rectangle) {
        (Direction::HostToDevice, false) => "CopyHostToDevice",
        (Direction::HostToDevice, true) => "CopyHostToDevice2D",
        (Direction::DeviceToHost, false) => "CopyDeviceToHost",
        (Direction::DeviceToHost, true) => "CopyDeviceToHost2D",
        (Direction::DeviceToDevice | Direction::PeerToPeer, false) => "CopyDeviceToDevice",
        (Direction::DeviceToDevice | Direction::PeerToPeer, true) => "CopyDeviceToDevice2D",
        (Direction::HostToHost, _) => panic!("a GPU was asked to copy between two host buffers"),
    }
}

/// The copies of one copy engine's queue: what lies between two decrements of a signal is one call.
fn sdma_copies(packets: &[Packet]) -> Vec<Transfer> {
    let mut copies = vec![];
    for call in packets.split_inclusive(|packet| packet.kind == Kind::SdmaAtomic) {
        let moved: Vec<_> =
            call.iter().filter(|p| matches!(p.kind, Kind::SdmaCopy | Kind::SdmaRect)).collect();
        let stamps: Vec<_> = call.iter().filter(|p| p.kind == Kind::SdmaTimestamp).collect();
        // Only calls that complete have times, and only they end in a decrement.
        let (Some(first), [begin, end], Some(Kind::SdmaAtomic)) =
            (moved.first(), &stamps[..], call.last().map(|p| p.kind))
        else {
            continue;
        };
        copies.push(Transfer {
            gpu: first.device,
            op_type: copy_type(first.direction.unwrap(), first.kind == Kind::SdmaRect),
            bytes: moved.iter().map(|p| p.bytes).sum(),
            source: first.source,
            destination: first.destination,
            start_ns: begin.start_ns,
            end_ns: end.start_ns,
        });
    }
    copies
}

/// A copy that ROCr made with a kernel of its own because a call asked for it. Those that read or write host memory are the
/// loader's: calls go to the copy engines there.
fn blit_copy(packet: &Packet) -> Option<Transfer> {
    let asked = packet.kind == Kind::Dispatch
        && packet.name.starts_with("rocr:copy")
        && matches!(packet.direction, Some(Direction::DeviceToDevice | Direction::PeerToPeer));
    asked.then(|| Transfer {
        gpu: packet.device,
        op_type: copy_type(packet.direction.unwrap(), false),
        bytes: packet.bytes,
        source: packet.source,
        destination: packet.destination,
        start_ns: packet.start_ns,
        end_ns: packet.end_ns,
    })
}

impl Expected {
    /// From the log of one process.
    pub(crate) fn of(log: &[Packet]) -> Expected {
        let mut by_queue = BTreeMap::<_, Vec<Packet>>::new();
        for packet in log {
            by_queue.entry((packet.device, packet.queue)).or_default().push(packet.clone());
        }
        let mut copies: Vec<Transfer> = log.iter().filter_map(blit_copy).collect();
        for packets in by_queue.values_mut() {
            packets.sort_by_key(|packet| packet.index);
            copies.extend(sdma_copies(packets));
            packets.retain(|packet| op_type(packet).is_some());
        }
        by_queue.retain(|_, packets| !packets.is_empty());
        copies.sort_by_key(|copy| (copy.gpu, copy.start_ns));
        let names: BTreeSet<_> = by_queue.values().flatten().map(|packet| packet.name.to_string()).collect();
        Expected { queues: by_queue, copies, names: demangled(names) }
    }

    /// Kernels of the application.
    pub(crate) fn kernels(&self) -> usize {
        self.count(|op_type| op_type == "KernelExecution")
    }

    /// Copies, by engines and by kernels.
    pub(crate) fn copies(&self) -> usize {
        self.copies.len() + self.count(|op_type| op_type.starts_with("Copy"))
    }

    /// Fills.
    pub(crate) fn fills(&self) -> usize {
        self.count(|op_type| op_type == "FillBuffer")
    }

    fn count(&self, is_counted: impl Fn(&str) -> bool) -> usize {
        self.queues.values().flatten().filter_map(op_type).filter(|op_type| is_counted(op_type)).count()
    }

    /// Fails the test unless the ops of `trace`, all of one session, are these.
    #[track_caller]
    pub(crate) fn assert_equals(&self, trace: &Trace) {
        self.assert_equals_ops(trace, &trace.ops());
    }

    /// Fails the test unless `ops` of `trace` are these.
    #[track_caller]
    pub(crate) fn assert_equals_ops(&self, trace: &Trace, ops: &[Op]) {
        let differences = self.differences(trace, ops);
        assert!(
            differences.is_empty(),
            "{} is not what the device did, {} differences:\n{}",
            trace.path.display(),
            differences.len(),
            differences[..differences.len().min(SHOWN)].join("\n")
        );
    }

    /// Every way in which the file differs from the log; one line each.
    pub(crate) fn differences(&self, trace: &Trace, ops: &[Op]) -> Vec<String> {
        let file = File {
            names: &self.names,
            offset: boot_minus_monotonic(),
            dispatches: trace.dispatches(),
            copy_apis: trace.copy_apis(),
            calls: trace.calls_of_ops(),
            apis: trace.apis(),
        };
        let mut differences = vec![];
        let mut queues = BTreeMap::<_, Vec<&Op>>::new();
        let mut copies = vec![];
        for op in ops {
            // Queue 0 is that of the copy engines.
            match op.queue {
                0 => copies.push(op),
                queue => queues.entry((op.gpu, queue)).or_default().push(op),
            }
        }
        let mut left: BTreeMap<_, &Vec<Packet>> =
            self.queues.iter().map(|(key, value)| (*key, value)).collect();
        for ((gpu, queue), ops) in queues {
            let here = left.iter().filter(|((device, _), _)| *device == gpu);
            // A bijection: each of the log's queues is given away once, to the one that agrees with it furthest.
            let best = here.map(|(key, packets)| (file.agreeing(&ops, packets), *key)).max();
            let Some((_, key)) = best else {
                differences
                    .push(format!("GPU {gpu} queue {queue}: {} ops that no queue of the log has", ops.len()));
                continue;
            };
            let packets = left.remove(&key).unwrap();
            differences.extend(
                file.compare_queue(&ops, packets)
                    .into_iter()
                    .map(|difference| format!("GPU {gpu} queue {queue} (the log's {}): {difference}", key.1)),
            );
        }
        for ((gpu, queue), packets) in left {
            differences
                .push(format!("GPU {gpu}: nothing of the log's queue {queue}, {} packets", packets.len()));
        }
        differences.extend(file.compare_copies(copies, &self.copies));
        differences
    }
}

/// What the file says, beside its ops.
struct File<'a> {
    names: &'a BTreeMap<String, String>,
    /// CLOCK_BOOTTIME, the log's, minus CLOCK_MONOTONIC, the file's.
    offset: i64,
    dispatches: BTreeMap<i64, Launch>,
    copy_apis: BTreeMap<i64, CopyApi>,
    calls: BTreeMap<i64, Vec<i64>>,
    apis: BTreeMap<i64, Api>,
}

impl File<'_> {
    /// How many ops from the first on are what the log has.
    fn agreeing(&self, ops: &[&Op], packets: &[Packet]) -> usize {
        ops.iter().zip(packets).take_while(|(op, packet)| self.compare(op, packet).is_ok()).count()
    }

    fn compare_queue(&self, ops: &[&Op], packets: &[Packet]) -> Vec<String> {
        let mut differences = vec![];
        if ops.len() != packets.len() {
            differences.push(format!("{} ops, the log has {}", ops.len(), packets.len()));
        }
        for (op, packet) in ops.iter().zip(packets) {
            differences.extend(self.compare(op, packet).err());
        }
        differences
    }

    /// One packet of an application's queue.
    fn compare(&self, op: &Op, packet: &Packet) -> Result<(), String> {
        let place = format!("place {}, log {}", op.sequence, packet.index);
        let is = |what: &str, file: &dyn std::fmt::Debug, log: &dyn std::fmt::Debug| {
            let (file, log) = (format!("{file:?}"), format!("{log:?}"));
            if file == log { Ok(()) } else { Err(format!("{place}: {what} {file}, log {log}")) }
        };
        let kind = op_type(packet).unwrap();
        is("type", &&*op.op_type, &kind)?;
        self.agrees_with_call(op).map_err(|difference| format!("{place}: {difference}"))?;
        let name = &self.names[&*packet.name];
        if kind == "KernelExecution" {
            is("description", &op.description, name)?;
            let Some(launch) = self.dispatches.get(&op.id) else {
                return Err(format!("{place}: no row in the view dispatch"));
            };
            is("name", &launch.name, name)?;
            is("workgroup", &launch.workgroup, &packet.workgroup)?;
            let groups: [u32; 3] =
                std::array::from_fn(|axis| packet.grid[axis].div_ceil(packet.workgroup[axis].max(1)));
            is("grid", &launch.grid, &groups)?;
        } else {
            is("description", &op.description, &"")?;
        }
        if let Some(ticks) = op.ticks {
            is("ticks", &ticks, &(packet.start_tick, packet.end_tick))?;
        }
        self.near("start", op.start, packet.start_ns).map_err(|e| format!("{place}: {e}"))?;
        self.near("end", op.end, packet.end_ns).map_err(|e| format!("{place}: {e}"))
    }

    /// A copy kernel's buffers are where its call says that they are.
    fn agrees_with_call(&self, op: &Op) -> Result<(), String> {
        let call = match self.calls.get(&op.id).map(Vec::as_slice) {
            Some([id]) if op.op_type.starts_with("Copy") => self.copy_apis.get(id),
            _ => None,
        };
        let Some(call) = call else { return Ok(()) };
        let place = |device: i32| if device < 0 { "Host" } else { "Device" };
        let by_call = format!("Copy{}To{}", place(call.source), place(call.destination));
        if op.op_type.trim_end_matches("2D") == by_call {
            return Ok(());
        }
        Err(format!("type {}, {by_call} by its call", op.op_type))
    }

    /// `file` in ns of CLOCK_MONOTONIC, `log` in ns of CLOCK_BOOTTIME.
    fn near(&self, what: &str, file: i64, log: u64) -> Result<(), String> {
        let error = file - (log as i64 - self.offset);
        if error.abs() <= TOLERANCE { Ok(()) } else { Err(format!("{what} is wrong by {error} ns")) }
    }

    /// Copies of a kind are told apart by their start alone: the file has one queue for all copy engines of a GPU.
    fn compare_copies(&self, mut ops: Vec<&Op>, copies: &[Transfer]) -> Vec<String> {
        let mut differences = vec![];
        if ops.len() != copies.len() {
            differences.push(format!("{} copies by copy engines, the log has {}", ops.len(), copies.len()));
        }
        let mut numbers: Vec<_> = ops.iter().map(|op| (op.gpu, op.id >> 32, op.sequence)).collect();
        numbers.sort_unstable();
        let before = numbers.len();
        numbers.dedup();
        if numbers.len() != before {
            differences.push("two copies of one GPU have one number".into());
        }
        ops.sort_by(|a, b| (a.gpu, &a.op_type, a.start).cmp(&(b.gpu, &b.op_type, b.start)));
        let mut copies: Vec<&Transfer> = copies.iter().collect();
        copies.sort_by(|a, b| (a.gpu, a.op_type, a.start_ns).cmp(&(b.gpu, b.op_type, b.start_ns)));
        let mut moved = BTreeMap::<i64, u64>::new();
        for (op, copy) in ops.iter().zip(copies) {
            differences.extend(
                self.compare_copy(op, copy).err().map(|what| format!("{what}: {op:?}, log {copy:?}")),
            );
            if let Some([call]) = self.calls.get(&op.id).map(Vec::as_slice) {
                *moved.entry(*call).or_default() += copy.bytes;
            }
        }
        // HIP may make several copies of one call, and leave some of it to the CPU.
        for (call, bytes) in moved {
            if self.copy_apis.get(&call).is_some_and(|copy| copy.size < bytes) {
                differences.push(format!("{:?} copied {bytes} bytes", self.copy_apis[&call]));
            }
        }
        differences
    }

    fn compare_copy(&self, op: &Op, copy: &Transfer) -> Result<(), String> {
        if (op.gpu, &*op.op_type, &*op.description) != (copy.gpu, copy.op_type, "") {
            return Err("another GPU or type".into());
        }
        self.near("start", op.start, copy.start_ns)?;
        self.near("end", op.end, copy.end_ns)?;
        let Some([id]) = self.calls.get(&op.id).map(Vec::as_slice) else { return Err("not one call".into()) };
        if self.apis[id].name.starts_with("hipGraphLaunch") {
            return Ok(());
        }
        let Some(call) = self.copy_apis.get(id) else {
            return Err("a copy without its row in rocpd_copyapi".into());
        };
        let device = |gpu: Option<u32>| gpu.map_or(-1, |gpu| gpu as i32);
        let kind = match (copy.source, copy.destination) {
            (None, _) => 1,
            (_, None) => 2,
            _ => 3,
        };
        let places = (device(copy.source), device(copy.destination));
        if self.apis[id].name.starts_with("hip") {
            // 4: the direction follows from the addresses.
            let may_be = [kind, 4].contains(&call.kind) && copy.bytes <= call.size;
            return if may_be && (call.source, call.destination) == places {
                Ok(())
            } else {
                Err(format!("its call {:?} says {call:?}", self.apis[id]))
            };
        }
        if (call.size, (call.source, call.destination), call.kind) != (copy.bytes, places, kind) {
            return Err(format!("its call says {call:?}"));
        }
        if op.op_type.ends_with("2D") != (call.height > 0)
            || call.height > 0 && call.width * call.height != call.size
        {
            return Err(format!("its call is no rectangle of that size: {call:?}"));
        }
        Ok(())
    }
}

/// Names for people, by another demangler than the recorder's.
fn demangled(names: BTreeSet<String>) -> BTreeMap<String, String> {
    if names.is_empty() {
        return BTreeMap::new();
    }
    let mangled: Vec<String> = names.into_iter().collect();
    let text = tool("c++filt", &mangled);
    let demangled: Vec<String> = text.lines().map(str::to_string).collect();
    assert_eq!(mangled.len(), demangled.len(), "{text}");
    mangled.into_iter().zip(demangled).collect()
}
