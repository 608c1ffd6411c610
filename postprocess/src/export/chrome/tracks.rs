//! What viewers show beside each other: processes with their threads, GPUs with their queues.
//!
//! Viewers know a process by one number and a thread by two, and GPUs are processes to them. Here a process, a thread or a GPU has a number
//! of its own: processes of two containers may have equal ids, and a GPU's index may be a process id too.

use std::collections::BTreeSet;

use anyhow::Result;
use rpd_schema::{SessionInfo, session_fact};
use rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};

use super::elements::{Elements, digits};
use crate::export::texts::escape_into;
use crate::text;

/// GPU n has this number and n. Process ids are smaller, those of the hundred hosts of a merged trace too.
const FIRST_GPU: i64 = 1_000_000_000;

/// Numbers of processes whose id is taken by another.
const FURTHER_PROCESS: i64 = 500_000_000;

/// Numbers of further tracks of threads.
const FURTHER_THREAD: i64 = 1_000_000_000;

/// Numbers of what else has counters: sensors of processors.
const FIRST_OTHER: i64 = 2_000_000_000;

/// Viewers have 32 bits for a number.
const LARGEST: i64 = i32::MAX as i64;

/// GPUs stand below the processes.
const GPU_ORDER: usize = 1_000_000;

/// Columns of a command in the name of its process.
const COMMAND_WIDTH: usize = 120;

/// What a track of a queue shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// What ran for a marker.
    Marker,
    /// Launches of graphs.
    Graph,
    /// Operations.
    Op,
}

/// A process of the program.
struct HostProcess {
    /// Its first session, and its id.
    identity: (i64, i64),
    number: i64,
}

struct HostThread {
    process: usize,
    tid: i64,
}

struct Gpu {
    gpu: i64,
    number: i64,
    /// How many tracks it has.
    tracks: i64,
    has_counters: bool,
}

struct Queue {
    gpu: usize,
    queue: i64,
    /// Numbers of its tracks, by [`Kind`].
    lanes: [Vec<i64>; 3],
}

/// Something that is neither a process nor a GPU, with sensors.
struct Other {
    name: String,
    number: i64,
}

/// All tracks that there are.
pub(super) struct Tracks {
    pub(super) hosts: Hosts,
    pub(super) gpus: Gpus,
}

/// Numbers of processes and GPUs.
#[derive(Default)]
struct Numbers {
    taken: FxHashSet<i64>,
}

/// Processes and their threads.
pub(super) struct Hosts {
    processes: Vec<HostProcess>,
    threads: Vec<HostThread>,
    process_of: FxHashMap<(i64, i64), usize>,
    thread_of: FxHashMap<(usize, i64), u32>,
    /// The last thread that was asked for: rows of one follow each other.
    last: Option<((i64, i64, i64), u32)>,
    sessions: Vec<SessionInfo>,
}

/// Numbers of the tracks of threads.
pub(super) struct ThreadLanes {
    of_thread: Vec<Vec<i64>>,
    next: i64,
}

/// GPUs with their queues, and what else has sensors.
pub(super) struct Gpus {
    gpus: Vec<Gpu>,
    queues: Vec<Queue>,
    others: Vec<Other>,
    gpu_at: FxHashMap<i64, usize>,
    queue_at: FxHashMap<(i64, i64), u32>,
    /// The last queue that was asked for.
    last: Option<((i64, i64), u32)>,
    numbers: Numbers,
    names: FxHashMap<i64, String>,
}

impl Tracks {
    /// None yet, with what the trace says of sessions and GPUs.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of(trace: &Connection) -> Result<Tracks> {
        let names = rpd_schema::gpus(trace)?.into_iter().filter_map(|gpu| {
            let name = gpu.get(session_fact::GPU_NAME)?.to_string();
            Some((i64::from(gpu.gpu), name))
        });
        Ok(Tracks {
            hosts: Hosts {
                processes: Vec::new(),
                threads: Vec::new(),
                process_of: FxHashMap::default(),
                thread_of: FxHashMap::default(),
                last: None,
                sessions: rpd_schema::sessions(trace)?,
            },
            gpus: Gpus {
                gpus: Vec::new(),
                queues: Vec::new(),
                others: Vec::new(),
                gpu_at: FxHashMap::default(),
                queue_at: FxHashMap::default(),
                last: None,
                numbers: Numbers::default(),
                names: names.collect(),
            },
        })
    }

    /// The thread of a process, which is known by its first session.
    pub(super) fn thread(&mut self, process: i64, pid: i64, tid: i64) -> u32 {
        let Hosts { processes, threads, process_of, thread_of, last, .. } = &mut self.hosts;
        let key = (process, pid, tid);
        if let Some((_, thread)) = last.filter(|(last, _)| *last == key) {
            return thread;
        }
        let process = *process_of.entry((process, pid)).or_insert_with(|| {
            let wanted = Some(pid).filter(|pid| *pid < FURTHER_PROCESS);
            let number = self.gpus.numbers.take(wanted, FURTHER_PROCESS);
            processes.push(HostProcess { identity: (process, pid), number });
            processes.len() - 1
        });
        let thread = *thread_of.entry((process, tid)).or_insert_with(|| {
            threads.push(HostThread { process, tid });
            threads.len() as u32 - 1
        });
        *last = Some((key, thread));
        thread
    }
}

impl Numbers {
    /// A free number: `wanted` if it is one, otherwise one from `further` on.
    fn take(&mut self, wanted: Option<i64>, further: i64) -> i64 {
        let wanted = wanted.filter(|number| (1..=LARGEST).contains(number) && !self.taken.contains(number));
        let number = wanted
            .unwrap_or_else(|| (further..).find(|number| !self.taken.contains(number)).unwrap_or(further));
        self.taken.insert(number);
        number
    }
}

impl Gpus {
    /// The queue of a GPU.
    pub(super) fn queue(&mut self, gpu: i64, queue: i64) -> u32 {
        let key = (gpu, queue);
        if let Some((_, found)) = self.last.filter(|(last, _)| *last == key) {
            return found;
        }
        let gpu = self.gpu(gpu);
        let queues = &mut self.queues;
        let found = *self.queue_at.entry(key).or_insert_with(|| {
            queues.push(Queue { gpu, queue, lanes: Default::default() });
            queues.len() as u32 - 1
        });
        self.last = Some((key, found));
        found
    }

    fn gpu(&mut self, gpu: i64) -> usize {
        if let Some(found) = self.gpu_at.get(&gpu) {
            return *found;
        }
        let wanted = (0..FIRST_GPU).contains(&gpu).then_some(FIRST_GPU + gpu);
        let number = self.numbers.take(wanted, FIRST_OTHER);
        self.gpus.push(Gpu { gpu, number, tracks: 0, has_counters: false });
        self.gpu_at.insert(gpu, self.gpus.len() - 1);
        self.gpus.len() - 1
    }

    /// The number of a queue's GPU among the GPUs.
    pub(super) fn gpu_of(&self, queue: u32) -> usize {
        self.queues[queue as usize].gpu
    }

    /// The index of a queue's GPU in the trace, and the queue's.
    pub(super) fn place(&self, queue: u32) -> (i64, i64) {
        let queue = &self.queues[queue as usize];
        (self.gpus[queue.gpu].gpu, queue.queue)
    }

    /// The numbers of a queue's track.
    pub(super) fn queue_lane(&mut self, queue: u32, kind: Kind, lane: u32) -> (i64, i64) {
        let Queue { gpu, lanes, .. } = &mut self.queues[queue as usize];
        let gpu = &mut self.gpus[*gpu];
        let lanes = &mut lanes[kind as usize];
        while lanes.len() <= lane as usize {
            gpu.tracks += 1;
            lanes.push(gpu.tracks);
        }
        (gpu.number, lanes[lane as usize])
    }

    /// The number of a GPU that has counters, by its number among the GPUs.
    pub(super) fn counted_gpu(&mut self, gpu: usize) -> i64 {
        self.gpus[gpu].has_counters = true;
        self.gpus[gpu].number
    }

    /// The number of a device that has sensors.
    pub(super) fn sensed(&mut self, device_type: &str, device: i64) -> i64 {
        if device_type == "gpu" {
            let gpu = self.gpu(device);
            return self.counted_gpu(gpu);
        }
        let name = format!("{device_type} {device}");
        if let Some(known) = self.others.iter().find(|other| other.name == name) {
            return known.number;
        }
        let number = self.numbers.take(None, FIRST_OTHER);
        self.others.push(Other { name, number });
        number
    }

    /// Writes names and order of the GPUs and queues that were used, and of what else has sensors.
    ///
    /// # Errors
    /// When the output has failed.
    pub(super) fn write_names(&self, elements: &mut Elements) -> Result<()> {
        let mut gpus: Vec<usize> = (0..self.gpus.len()).collect();
        gpus.sort_by_key(|at| self.gpus[*at].gpu);
        let mut queues: Vec<&Queue> = self.queues.iter().collect();
        queues.sort_by_key(|queue| (self.gpus[queue.gpu].gpu, queue.queue));
        for (place, at) in gpus.into_iter().enumerate() {
            let Gpu { gpu, number, tracks, has_counters } = self.gpus[at];
            if tracks == 0 && !has_counters {
                continue;
            }
            let name = match self.names.get(&gpu) {
                Some(name) => format!("GPU {gpu} {name}"),
                None => format!("GPU {gpu}"),
            };
            write_name(elements, "process", (number, None), &name, GPU_ORDER + place)?;
            let mut order = 0;
            for queue in queues.iter().filter(|queue| queue.gpu == at) {
                for (kind, what) in [(Kind::Marker, " markers"), (Kind::Graph, " graphs"), (Kind::Op, "")] {
                    for (lane, track) in queue.lanes[kind as usize].iter().enumerate() {
                        order += 1;
                        let name = format!("queue {}{what}{}", queue.queue, lane_suffix(lane));
                        write_name(elements, "thread", (number, Some(*track)), &name, order)?;
                    }
                }
            }
        }
        for (place, other) in self.others.iter().enumerate() {
            let order = 2 * GPU_ORDER + place;
            write_name(elements, "process", (other.number, None), &other.name, order)?;
        }
        Ok(())
    }
}

impl ThreadLanes {
    /// None yet.
    pub(super) fn of(hosts: &Hosts) -> ThreadLanes {
        ThreadLanes { of_thread: vec![Vec::new(); hosts.threads.len()], next: FURTHER_THREAD }
    }

    /// The numbers of a thread's track.
    pub(super) fn place(&mut self, hosts: &Hosts, thread: u32, lane: u32) -> (i64, i64) {
        let HostThread { process, tid } = hosts.threads[thread as usize];
        let lanes = &mut self.of_thread[thread as usize];
        while lanes.len() <= lane as usize {
            let own = Some(tid).filter(|tid| lanes.is_empty() && (1..FURTHER_THREAD).contains(tid));
            lanes.push(own.unwrap_or_else(|| {
                self.next += 1;
                self.next - 1
            }));
        }
        (hosts.processes[process].number, lanes[lane as usize])
    }
}

impl Hosts {
    /// Process and thread id of a thread, as the trace has them.
    pub(super) fn ids(&self, thread: u32) -> (i64, i64) {
        let thread = &self.threads[thread as usize];
        (self.processes[thread.process].identity.1, thread.tid)
    }

    /// Writes names and order of the processes and threads that were used.
    ///
    /// # Errors
    /// When the output has failed.
    pub(super) fn write_names(&self, lanes: &ThreadLanes, elements: &mut Elements) -> Result<()> {
        let mut threads: Vec<(&HostThread, &Vec<i64>)> =
            self.threads.iter().zip(&lanes.of_thread).filter(|(_, lanes)| !lanes.is_empty()).collect();
        threads.sort_by_key(|(thread, _)| {
            let (process, pid) = self.processes[thread.process].identity;
            (pid, process, thread.tid)
        });
        let mut named = BTreeSet::new();
        let mut order = 0;
        for (thread, lanes) in threads {
            let HostProcess { number, identity: (_, pid) } = self.processes[thread.process];
            if named.insert(number) {
                let name = self.process_name(&self.processes[thread.process]);
                write_name(elements, "process", (number, None), &name, named.len())?;
            }
            let main = if thread.tid == pid { "main thread" } else { "thread" };
            for (lane, track) in lanes.iter().enumerate() {
                order += 1;
                let name = format!("{main} {}{}", thread.tid, lane_suffix(lane));
                write_name(elements, "thread", (number, Some(*track)), &name, order)?;
            }
        }
        Ok(())
    }

    /// Rank and command where they are known, and what tells it from another with the same id.
    fn process_name(&self, process: &HostProcess) -> String {
        let (session, pid) = process.identity;
        let known = self.sessions.iter().find(|info| i64::from(info.session) == session);
        let command = known.and_then(SessionInfo::command);
        let mut name = match command {
            Some(command) => text::shorten(command, COMMAND_WIDTH).into_owned(),
            None => format!("process {pid}"),
        };
        if let Some(rank) = known.and_then(SessionInfo::rank) {
            name = format!("rank {rank}: {name}");
        }
        if process.number != pid {
            name = format!("{name} (pid {pid}, session {session})");
        }
        name
    }
}

/// What tells further tracks of one thread or queue apart.
fn lane_suffix(lane: usize) -> String {
    if lane == 0 { String::new() } else { format!(" ({})", lane + 1) }
}

/// Writes the name and place of a process or of a thread.
fn write_name(
    elements: &mut Elements,
    what: &str,
    (process, thread): (i64, Option<i64>),
    name: &str,
    order: usize,
) -> Result<()> {
    for (fact, key) in [("name", "name"), ("sort_index", "sort_index")] {
        let bytes = elements.next()?;
        bytes.extend_from_slice(format!("{{\"ph\":\"M\",\"name\":\"{what}_{fact}\",\"pid\":").as_bytes());
        digits(bytes, process);
        if let Some(thread) = thread {
            bytes.extend_from_slice(b",\"tid\":");
            digits(bytes, thread);
        }
        bytes.extend_from_slice(format!(",\"args\":{{\"{key}\":").as_bytes());
        if fact == "name" {
            bytes.push(b'"');
            escape_into(bytes, name);
            bytes.push(b'"');
        } else {
            digits(bytes, order as i64);
        }
        bytes.extend_from_slice(b"}}");
    }
    Ok(())
}
