//! The tracks that viewers show beside each other: processes with their threads, GPUs with their queues.
//!
//! Viewers know a process by one number and a thread by two, and GPUs are processes to them. Here a process, a thread or a GPU has a number
//! of its own: processes of two containers may have equal ids, and a GPU's index may be a process id too.

use anyhow::Result;
use rpd_schema::{SessionInfo, session_fact};
use rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};

use super::events::{Events, Owner, Place, Process, Track, TrackOwner};
use crate::text;

/// GPU n has this number and n where a format does not say otherwise. Process ids are smaller, those of the hundred hosts of a merged trace too.
pub(in crate::export) const FIRST_GPU: i64 = 1_000_000_000;

/// Numbers of processes whose id is taken by another.
const FURTHER_PROCESS: i64 = 500_000_000;

/// Numbers of further tracks of threads.
const FURTHER_THREAD: i64 = 1_000_000_000;

/// Numbers of what else has counters: sensors of processors.
const FIRST_OTHER: i64 = 2_000_000_000;

/// Viewers have 32 bits for a number.
const LARGEST: i64 = i32::MAX as i64;

/// GPUs are below the processes.
const GPU_ORDER: i64 = 1_000_000;

/// Places of the tracks of one thread, or of one kind of a queue's.
const MOST_SUBTRACKS: i64 = 1 << 10;

/// Columns of a command in the name of its process.
const COMMAND_WIDTH: usize = 120;

/// What a track of a queue shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueTrackKind {
    /// What ran for a marker.
    Marker,
    /// Launches of graphs.
    Graph,
    /// Operations.
    Op,
}

impl QueueTrackKind {
    /// What the names of such tracks have behind that of the queue.
    fn suffix(self) -> &'static str {
        match self {
            QueueTrackKind::Marker => " markers",
            QueueTrackKind::Graph => " graphs",
            QueueTrackKind::Op => "",
        }
    }
}

/// A process of the program.
struct HostProcess {
    /// Its first session, and its id.
    identity: (i64, i64),
    number: i64,
    /// Its place among the processes.
    order: i64,
    /// Whether any of its calls is in the region.
    is_shown: bool,
}

struct HostThread {
    process: usize,
    tid: i64,
    /// Its place among the threads.
    order: i64,
}

struct Gpu {
    gpu: i64,
    number: i64,
    /// How many tracks it has.
    tracks: i64,
    /// Its place among the GPUs.
    order: i64,
    is_named: bool,
}

struct Queue {
    gpu: usize,
    queue: i64,
    /// Numbers of its tracks, by [`QueueTrackKind`].
    subtracks: [Vec<i64>; 3],
    /// Its place among the queues of its GPU.
    order: i64,
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
pub(super) struct ThreadTracks {
    of_thread: Vec<Vec<i64>>,
    next: i64,
    /// Which processes are named.
    is_named: Vec<bool>,
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
    first_gpu: i64,
    names: FxHashMap<i64, String>,
}

impl Tracks {
    /// None yet, with what the trace says of sessions and GPUs. GPU 0 has the number `first_gpu`.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of(trace: &Connection, first_gpu: i64) -> Result<Tracks> {
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
                first_gpu,
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
            let wanted = Some(pid).filter(|pid| (1..FURTHER_PROCESS).contains(pid));
            let number = self.gpus.numbers.take(wanted, FURTHER_PROCESS);
            processes.push(HostProcess { identity: (process, pid), number, order: 0, is_shown: false });
            processes.len() - 1
        });
        let thread = *thread_of.entry((process, tid)).or_insert_with(|| {
            threads.push(HostThread { process, tid, order: 0 });
            threads.len() as u32 - 1
        });
        *last = Some((key, thread));
        thread
    }

    /// A call of the thread is in the region.
    pub(super) fn show(&mut self, thread: u32) {
        let process = self.hosts.threads[thread as usize].process;
        self.hosts.processes[process].is_shown = true;
    }

    /// Gives everything that is known its place: processes and GPUs by id, threads and queues too.
    pub(super) fn arrange(&mut self) {
        let Hosts { processes, threads, .. } = &mut self.hosts;
        let mut order: Vec<usize> = (0..processes.len()).collect();
        order.sort_by_key(|at| {
            let (process, pid) = processes[*at].identity;
            (pid, process)
        });
        order.into_iter().zip(1..).for_each(|(at, place)| processes[at].order = place);
        let mut order: Vec<usize> = (0..threads.len()).collect();
        order.sort_by_key(|at| (processes[threads[*at].process].order, threads[*at].tid));
        order.into_iter().zip(0..).for_each(|(at, place)| threads[at].order = place);
        let Gpus { gpus, queues, .. } = &mut self.gpus;
        let mut order: Vec<usize> = (0..gpus.len()).collect();
        order.sort_by_key(|at| gpus[*at].gpu);
        order.into_iter().zip(0..).for_each(|(at, place)| gpus[at].order = place);
        let mut order: Vec<usize> = (0..queues.len()).collect();
        order.sort_by_key(|at| (gpus[queues[*at].gpu].order, queues[*at].queue));
        order.into_iter().zip(0..).for_each(|(at, place)| queues[at].order = place);
    }
}

impl Numbers {
    /// A free number: `wanted` if it is one, otherwise one from `further` on.
    fn take(&mut self, wanted: Option<i64>, further: i64) -> i64 {
        let wanted = wanted.filter(|number| (0..=LARGEST).contains(number) && !self.taken.contains(number));
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
            queues.push(Queue { gpu, queue, subtracks: Default::default(), order: 0 });
            queues.len() as u32 - 1
        });
        self.last = Some((key, found));
        found
    }

    fn gpu(&mut self, gpu: i64) -> usize {
        if let Some(found) = self.gpu_at.get(&gpu) {
            return *found;
        }
        let wanted = (0..FIRST_GPU).contains(&gpu).then(|| self.first_gpu + gpu);
        let number = self.numbers.take(wanted, FIRST_OTHER);
        let order = self.gpus.len() as i64;
        self.gpus.push(Gpu { gpu, number, tracks: 0, order, is_named: false });
        self.gpu_at.insert(gpu, self.gpus.len() - 1);
        self.gpus.len() - 1
    }

    /// GPUs with their names, in their order.
    pub(super) fn listed(&self) -> Vec<(i64, Option<String>)> {
        let mut gpus: Vec<&Gpu> = self.gpus.iter().collect();
        gpus.sort_by_key(|gpu| gpu.order);
        gpus.into_iter().map(|gpu| (gpu.gpu, self.names.get(&gpu.gpu).cloned())).collect()
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

    /// A queue's track, which is named if it is new.
    ///
    /// # Errors
    /// When the output has failed.
    pub(super) fn queue_track(
        &mut self,
        queue: u32,
        kind: QueueTrackKind,
        subtrack: u32,
        events: &mut impl Events,
    ) -> Result<Place> {
        let at = self.queues[queue as usize].gpu;
        let process = self.gpus[at].number;
        let known = self.queues[queue as usize].subtracks[kind as usize].len() as u32;
        for subtrack in known..=subtrack {
            self.name_gpu(at, events)?;
            let (gpu, queue) = (&mut self.gpus[at], &mut self.queues[queue as usize]);
            gpu.tracks += 1;
            queue.subtracks[kind as usize].push(gpu.tracks);
            events.track(&Track {
                place: Place { process, track: gpu.tracks, subtrack },
                owner: TrackOwner::Queue,
                name: &format!("queue {}{}", queue.queue, kind.suffix()),
                order: (queue.order * 3 + kind as i64) * MOST_SUBTRACKS
                    + i64::from(subtrack).min(MOST_SUBTRACKS - 1),
            })?;
        }
        let track = self.queues[queue as usize].subtracks[kind as usize][subtrack as usize];
        Ok(Place { process, track, subtrack })
    }

    /// Names all GPUs. Their numbers, by their numbers among the GPUs.
    ///
    /// # Errors
    /// When the output has failed.
    pub(super) fn name_all(&mut self, events: &mut impl Events) -> Result<Vec<i64>> {
        (0..self.gpus.len()).try_for_each(|at| self.name_gpu(at, events))?;
        Ok(self.gpus.iter().map(|gpu| gpu.number).collect())
    }

    fn name_gpu(&mut self, at: usize, events: &mut impl Events) -> Result<()> {
        let Gpu { gpu, number, order, is_named, .. } = self.gpus[at];
        if is_named {
            return Ok(());
        }
        self.gpus[at].is_named = true;
        let name = match self.names.get(&gpu) {
            Some(name) => format!("GPU {gpu} {name}"),
            None => format!("GPU {gpu}"),
        };
        events.process(&Process { number, owner: Owner::Gpu(gpu), name: &name, order: GPU_ORDER + order })
    }

    /// The number of a device that has sensors.
    ///
    /// # Errors
    /// When the output has failed.
    pub(super) fn sensed(&mut self, device_type: &str, device: i64, events: &mut impl Events) -> Result<i64> {
        if device_type == "gpu" {
            let gpu = self.gpu(device);
            self.name_gpu(gpu, events)?;
            return Ok(self.gpus[gpu].number);
        }
        let name = format!("{device_type} {device}");
        if let Some(known) = self.others.iter().find(|other| other.name == name) {
            return Ok(known.number);
        }
        let number = self.numbers.take(None, FIRST_OTHER);
        let order = 2 * GPU_ORDER + self.others.len() as i64;
        events.process(&Process { number, owner: Owner::Other, name: &name, order })?;
        self.others.push(Other { name, number });
        Ok(number)
    }
}

impl ThreadTracks {
    /// None yet.
    pub(super) fn of(hosts: &Hosts) -> ThreadTracks {
        ThreadTracks {
            of_thread: vec![Vec::new(); hosts.threads.len()],
            next: FURTHER_THREAD,
            is_named: vec![false; hosts.processes.len()],
        }
    }

    /// How many processes are named.
    pub(super) fn processes(&self) -> u64 {
        self.is_named.iter().filter(|named| **named).count() as u64
    }

    /// A thread's track, which is named if it is new.
    ///
    /// # Errors
    /// When the output has failed.
    pub(super) fn place(
        &mut self,
        hosts: &Hosts,
        thread: u32,
        subtrack: u32,
        events: &mut impl Events,
    ) -> Result<Place> {
        let HostThread { process: at, tid, order } = hosts.threads[thread as usize];
        let process = &hosts.processes[at];
        let subtracks = &mut self.of_thread[thread as usize];
        while subtracks.len() <= subtrack as usize {
            if !std::mem::replace(&mut self.is_named[at], true) {
                events.process(&Process {
                    number: process.number,
                    owner: Owner::Process,
                    name: &hosts.process_name(process),
                    order: process.order,
                })?;
            }
            let own = Some(tid).filter(|tid| subtracks.is_empty() && (1..FURTHER_THREAD).contains(tid));
            let track = own.unwrap_or_else(|| {
                self.next += 1;
                self.next - 1
            });
            subtracks.push(track);
            let subtrack = subtracks.len() as u32 - 1;
            let main = if tid == process.identity.1 { "main thread" } else { "thread" };
            events.track(&Track {
                place: Place { process: process.number, track, subtrack },
                owner: TrackOwner::Thread { first: subtracks[0] },
                name: &format!("{main} {tid}"),
                order: order * MOST_SUBTRACKS + i64::from(subtrack).min(MOST_SUBTRACKS - 1),
            })?;
        }
        Ok(Place { process: process.number, track: subtracks[subtrack as usize], subtrack })
    }
}

impl Hosts {
    /// Processes of the region with the first of their sessions, in their order.
    pub(super) fn processes(&self) -> Vec<(i64, Option<&SessionInfo>)> {
        let mut processes: Vec<&HostProcess> =
            self.processes.iter().filter(|process| process.is_shown).collect();
        processes.sort_by_key(|process| process.order);
        processes.into_iter().map(|process| (process.identity.1, self.session(process))).collect()
    }

    fn session(&self, process: &HostProcess) -> Option<&SessionInfo> {
        self.sessions.iter().find(|info| i64::from(info.session) == process.identity.0)
    }

    /// Sessions that say something of themselves.
    pub(super) fn sessions(&self) -> &[SessionInfo] {
        &self.sessions
    }

    /// Process and thread id of a thread, as the trace has them.
    pub(super) fn ids(&self, thread: u32) -> (i64, i64) {
        let thread = &self.threads[thread as usize];
        (self.processes[thread.process].identity.1, thread.tid)
    }

    /// Rank and command where they are known, and what tells it from another with the same id.
    fn process_name(&self, process: &HostProcess) -> String {
        let (session, pid) = process.identity;
        let known = self.session(process);
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
