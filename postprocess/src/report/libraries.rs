//! Calls of GPU libraries by configuration: how often, how much time of the GPU, how fast, with which kernels.
//!
//! An operation belongs to a library call if the call that launched it lies inside that call on its thread. Libraries call each other: where
//! a call of rocBLAS is inside one of hipBLAS, both have the operation. ncclGroupEnd launches the collectives since ncclGroupStart: the
//! operation belongs to those on its stream, and several on one stream share its time, and its energy.
//!
//! Of a part of a trace that is about operations (GPUs, queues, streams, kernels), a call counts if one of those asked for belongs to it,
//! however deep the call that launched it lies. The call that launched it need not be the library's, so the part's calls do not say it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::{Processes, Version};
use rusqlite::Connection;
use serde::Serialize;

use super::caused::{CausedOp, CausedOps};
use super::energy::{OpEnergies, SampledTime, StepLengths};
use super::gpu_time::{LeftOut, OpName, OpTexts};
use super::stream::Streams;
use crate::check::rule::are_sound;
use crate::library::arguments::{Arguments, address};
use crate::library::bench;
use crate::library::profile::{self, Atomics};
use crate::library::replay;
use crate::library::trace_csv::Seen;
use crate::library::work::{LibraryWork, executes_plan};
use crate::pass::sorted::Sorter;
use crate::region::Selected;
use crate::trace::has_table;
use crate::trace::ids::Ids;

/// Library calls, and what could not be counted.
#[derive(Debug)]
pub struct Libraries {
    /// Most time of the GPU first, then most time of the CPU.
    pub configurations: Vec<Configuration>,
    /// Calls with impossible times.
    pub impossible: u64,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
    /// Whether any GPU's energy or power was read.
    pub has_sensors: bool,
    /// Where that is so, operations of library calls that ran while no sensor of their GPU was read: they have no joules.
    pub unsampled: u64,
}

/// Calls of one function with equal arguments, but for addresses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Configuration {
    /// The library, such as `rocblas`.
    pub library: String,
    /// The function.
    pub function: String,
    /// Its arguments without addresses, handles and streams.
    pub configuration: String,
    /// How many calls.
    pub calls: u64,
    /// How many of them returned a failure.
    pub failed: u64,
    /// Time in them on their threads, ns.
    pub cpu_ns: u64,
    /// Operations that they launched.
    pub operations: u64,
    /// Sum of the durations of these, ns.
    pub gpu_ns: u64,
    /// Their energy above the idle floor, as [`Energy`](super::energy::Energy) has it; none where no sensor was read, or for less than one of
    /// its steps.
    pub joules: Option<f64>,
    /// Why there are none although a sensor was read.
    pub joules_refused: Option<String>,
    /// Time on the GPU of a call that launched something, us on average; none where none did.
    pub gpu_us: Option<f64>,
    /// Floating point operations of a call over its time on the GPU, 10^9 a second; none where it is not known, and where some of the
    /// operations of its calls were not asked for, as in the two that follow: what these computed is not known.
    pub gflop_per_s: Option<f64>,
    /// Bytes that a call must read and write; of a collective those that each rank has in the end or gives. None where they are not known.
    pub bytes: Option<u64>,
    /// Bytes of a call over its time on the GPU, 10^9 a second; of collectives the algorithm bandwidth.
    pub gb_per_s: Option<f64>,
    /// Of collectives the bus bandwidth, 10^9 bytes a second.
    pub bus_gb_per_s: Option<f64>,
    /// The kernels and copies that they launched, those with most time first.
    pub kernels: Vec<Chosen>,
    /// The command that runs such a call by itself; none where it is not known.
    pub bench: Option<String>,
}

/// A kernel that a library chose.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub operations: u64,
    /// How long, ns.
    pub gpu_ns: u64,
}

/// What becomes of a call beside its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Plain,
    GroupStart,
    GroupEnd,
    Collective,
}

/// How many calls, how many of them returned a failure, and the time in them.
#[derive(Debug, Clone, Copy, Default)]
struct CallSum {
    calls: u64,
    failed: u64,
    cpu_ns: u64,
}

impl CallSum {
    fn add(&mut self, cpu_ns: u64, is_failed: bool) {
        self.calls += 1;
        self.failed += u64::from(is_failed);
        self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
    }
}

/// Calls of one configuration while they are read.
#[derive(Debug)]
struct Growing {
    library: String,
    function: String,
    /// With addresses left out.
    text: String,
    all: CallSum,
    /// Those that launched an operation that was asked for.
    launching: CallSum,
    /// Whether one of these launched another one too.
    is_partial: bool,
    operations: u64,
    gpu_ns: u64,
    joules: f64,
    /// Time of the operations while a sensor was read.
    sampled: SampledTime,
    kernels: BTreeMap<OpName, (u64, u64)>,
}

impl Growing {
    fn new(library: String, function: String, text: String) -> Growing {
        Growing {
            library,
            function,
            text,
            all: CallSum::default(),
            launching: CallSum::default(),
            is_partial: false,
            operations: 0,
            gpu_ns: 0,
            joules: 0.0,
            sampled: SampledTime::default(),
            kernels: BTreeMap::new(),
        }
    }

    /// Adds what a call of it has of a launch.
    fn add(&mut self, launch: &Event, given: &Given) {
        self.is_partial |= given.call.has_launched && given.call.has_unasked;
        if launch.is_unasked != 0 {
            return;
        }
        if given.is_first {
            self.launching.add(given.call.cpu_ns, given.call.is_failed);
        }
        self.operations += 1;
        self.gpu_ns = self.gpu_ns.saturating_add(given.ns);
        self.joules += f64::from_bits(launch.joules) / given.among as f64;
        self.sampled.add(launch.gpu, launch.sampled_ns as f64 / given.among as f64);
        let kernel = self.kernels.entry(launch.name).or_default();
        *kernel = (kernel.0 + 1, kernel.1.saturating_add(given.ns));
    }
}

/// A library call or a launch; ordered as a stack takes them, thread after thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Event {
    thread: [i64; 3],
    start: i64,
    /// 0: a library call; 1: a launch, which is inside of what begins at the same time.
    is_launch: i64,
    /// For a call: the end with all bits turned over, so that of two with one start the longer one is first.
    not_end: i64,
    id: i64,
    /// For a call: its configuration. For a launch: the operation's duration, ns.
    value: i64,
    name: OpName,
    /// Stream of a launch and of a collective, 0 for the default stream.
    stream: u64,
    /// For a call: [`Role`] as a number.
    role: i64,
    /// For a call: whether it returned a failure.
    is_failed: i64,
    /// For a launch: whether the operation is none of those asked for. For a call: whether it may have such, as it goes on behind the part.
    is_unasked: i64,
    /// For a launch: the GPU of the operation.
    gpu: i64,
    /// For a launch: the operation's energy above the idle floor, as bits.
    joules: u64,
    /// For a launch: how long the operation ran while a sensor was read, ns.
    sampled_ns: u64,
}

impl Event {
    /// A library call; `place` is its configuration.
    fn of_call((id, thread): (i64, [i64; 3]), (start, end): (i64, i64), place: i64) -> Event {
        Event { thread, start, not_end: !end, id, value: place, ..Event::zeroed() }
    }

    /// The call on that thread that launched the operation.
    fn of_launch(op: &CausedOp, (process, pid, tid): (i64, i64, i64), start: i64) -> Event {
        Event {
            thread: [process, pid, tid],
            start,
            is_launch: 1,
            id: op.id,
            value: op.duration().min(i64::MAX as u64) as i64,
            name: op.name,
            gpu: op.gpu,
            ..Event::zeroed()
        }
    }
}

/// A launch, ordered by its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct NumberedLaunch {
    op: i64,
    launch: Event,
}

/// Plans of Fourier transforms: their arguments by process and handle, each with the time since which it holds.
type Plans = HashMap<(i64, u64), Vec<(i64, String)>>;

/// One call as the trace has it.
struct CallRow {
    id: i64,
    thread: [i64; 3],
    times: Option<(i64, i64)>,
    library: String,
    function: String,
    arguments: String,
}

/// A library call that is open, or a collective that is not launched yet.
#[derive(Debug, Clone, Copy)]
struct OpenCall {
    id: i64,
    /// Its configuration.
    place: usize,
    end: i64,
    cpu_ns: u64,
    is_failed: bool,
    /// Of a collective.
    stream: u64,
    ends_group: bool,
    /// Whether it has launched an operation that was asked for, and another one.
    has_launched: bool,
    has_unasked: bool,
}

impl OpenCall {
    /// It launches an operation; whether that is the first that was asked for.
    fn launches(&mut self, event: &Event) -> bool {
        if event.is_unasked != 0 {
            self.has_unasked = true;
            return false;
        }
        !std::mem::replace(&mut self.has_launched, true)
    }
}

/// What a library call has of a launch.
#[derive(Debug)]
struct Given {
    call: OpenCall,
    /// Whether it has launched nothing that was asked for before.
    is_first: bool,
    /// Of the operation's duration.
    ns: u64,
    /// How many collectives share it.
    among: u64,
}

/// The calls that are open on a thread, and what is not launched yet.
#[derive(Default)]
struct Open {
    calls: Vec<OpenCall>,
    /// Groups that are open.
    groups: u64,
    /// Collectives of the group.
    pending: Vec<OpenCall>,
}

impl Open {
    fn begin(&mut self, event: &Event) {
        self.pass(event.start);
        let end = !event.not_end;
        let mut call = OpenCall {
            id: event.id,
            place: event.value as usize,
            end,
            cpu_ns: end.abs_diff(event.start),
            is_failed: event.is_failed != 0,
            stream: event.stream,
            ends_group: false,
            has_launched: false,
            has_unasked: event.is_unasked != 0,
        };
        match role(event) {
            Role::GroupStart => {
                if self.groups == 0 {
                    self.pending.clear();
                }
                self.groups += 1;
            }
            Role::GroupEnd => {
                self.groups = self.groups.saturating_sub(1);
                call.ends_group = self.groups == 0;
            }
            Role::Collective if self.groups > 0 => self.pending.push(call),
            Role::Collective | Role::Plain => {}
        }
        self.calls.push(call);
    }

    /// Forgets calls that have ended by `time`.
    fn pass(&mut self, time: i64) {
        self.calls.retain(|call| call.end > time);
    }

    /// Gives an operation to the calls that are open: to each what it has of it.
    fn launch(&mut self, event: &Event, given: &mut Vec<Given>) {
        self.pass(event.start);
        given.clear();
        let duration = event.value.unsigned_abs();
        for call in &mut self.calls {
            let on_stream =
                self.pending.iter().filter(|pending| pending.stream == event.stream).count() as u64;
            if !call.ends_group || on_stream == 0 {
                let is_first = call.launches(event);
                given.push(Given { call: *call, is_first, ns: duration, among: 1 });
                // The call is one, whether it launches by itself or at the end of its group.
                for pending in self.pending.iter_mut().filter(|pending| pending.id == call.id) {
                    *pending = *call;
                }
                continue;
            }
            let mut left = (duration, on_stream);
            for pending in self.pending.iter_mut().filter(|pending| pending.stream == event.stream) {
                let ns = left.0 / left.1;
                left = (left.0 - ns, left.1 - 1);
                let is_first = pending.launches(event);
                given.push(Given { call: *pending, is_first, ns, among: on_stream });
            }
        }
    }
}

/// Hands each launch to `each` with what the library calls around it have of it; none that has no such call around it.
fn each_given(events: Sorter<Event>, mut each: impl FnMut(&Event, &[Given])) -> Result<()> {
    let mut events = events.sorted()?;
    let (mut thread, mut open, mut given) = (None, Open::default(), Vec::new());
    while let Some(event) = events.next()? {
        if thread.replace(event.thread) != Some(event.thread) {
            open = Open::default();
        }
        if event.is_launch == 0 {
            open.begin(&event);
            continue;
        }
        open.launch(&event, &mut given);
        if !given.is_empty() {
            each(&event, &given);
        }
    }
    Ok(())
}

fn role(event: &Event) -> Role {
    match event.role {
        1 => Role::GroupStart,
        2 => Role::GroupEnd,
        3 => Role::Collective,
        _ => Role::Plain,
    }
}

impl Libraries {
    /// Reads the library calls of a part of a trace, and the operations that they launched.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub fn of((trace, version): (&Connection, Version), selected: &Selected) -> Result<Libraries> {
        let mut events = Sorter::new();
        let mut launches = Sorter::new();
        let energies = OpEnergies::of(trace, selected)?;
        let steps = energies.as_ref().map(|energies| energies.steps.clone());
        let ops = CausedOps::of(trace, selected)?;
        let left_out = ops.left_out;
        each_launch((trace, version), ops, |launch| match energies {
            Some(_) => launches.push(NumberedLaunch { op: launch.id, launch }),
            None => events.push(launch),
        })?;
        if let Some(unasked) = selected.unasked() {
            each_launch((trace, version), CausedOps::of(trace, unasked)?, |launch| {
                events.push(Event { is_unasked: 1, ..launch })
            })?;
        }
        if let Some(mut energies) = energies {
            let mut launches = launches.sorted()?;
            while let Some(NumberedLaunch { op, launch }) = launches.next()? {
                let (joules, sampled_ns) = energies.at(op)?;
                events.push(Event { joules: joules.to_bits(), sampled_ns, ..launch })?;
            }
        }
        let plans = plans(trace, version)?;
        let mut configurations: Vec<Growing> = Vec::new();
        let mut places: HashMap<(String, String, String), usize> = HashMap::new();
        let mut impossible = 0;
        each_call(trace, version, |row| {
            if !may_count(selected, row.id) {
                return Ok(());
            }
            let Some((start, end)) = row.times else {
                impossible += 1;
                return Ok(());
            };
            let arguments = Arguments::of(&row.arguments);
            let text = match plan_of(&plans, &row, &arguments) {
                Some(plan) => Arguments::of(plan).configuration(),
                None if row.library == MARKED => row.arguments.clone(),
                None => arguments.configuration(),
            };
            let library = if row.library == MARKED { marked(&row.arguments) } else { &row.library };
            let role = match &*row.function {
                "ncclGroupStart" => 1,
                "ncclGroupEnd" => 2,
                _ if arguments.text("comm").is_some() && arguments.text("datatype").is_some() => 3,
                _ => 0,
            };
            let function = if row.library == MARKED { String::new() } else { row.function };
            let next = configurations.len();
            let place = *places.entry((library.to_string(), function.clone(), text.clone())).or_insert(next);
            if place == next {
                configurations.push(Growing::new(library.to_string(), function, text));
            }
            let is_failed = arguments.text("status").is_some();
            configurations[place].all.add(end.abs_diff(start), is_failed);
            events.push(Event {
                stream: arguments.address("stream").unwrap_or(0),
                role,
                is_failed: i64::from(is_failed),
                is_unasked: i64::from(selected.ends_before(end)),
                ..Event::of_call((row.id, row.thread), (start, end), place as i64)
            })
        })?;
        let mut unsampled = 0;
        each_given(events, |launch, given| {
            let is_read = launch.sampled_ns > 0 || launch.value == 0 || launch.is_unasked != 0;
            unsampled += u64::from(steps.is_some() && !is_read);
            for given in given {
                if let Some(configuration) = configurations.get_mut(given.call.place) {
                    configuration.add(launch, given);
                }
            }
        })?;
        if selected.unasked().is_some() {
            // What launched nothing that was asked for does not count.
            configurations.retain(|grown| grown.launching.calls > 0);
            configurations.iter_mut().for_each(|grown| grown.all = grown.launching);
        }
        let mut texts = OpTexts::of(trace)?;
        let mut configurations: Vec<Configuration> = configurations
            .into_iter()
            .map(|grown| finished(grown, steps.as_ref(), &mut texts))
            .collect::<rusqlite::Result<_>>()?;
        configurations.sort_by(|one, other| {
            let key = |of: &Configuration| (Reverse(of.gpu_ns), Reverse(of.cpu_ns));
            key(one).cmp(&key(other)).then_with(|| {
                (&one.library, &one.function, &one.configuration).cmp(&(
                    &other.library,
                    &other.function,
                    &other.configuration,
                ))
            })
        });
        Ok(Libraries { configurations, impossible, left_out, has_sensors: steps.is_some(), unsampled })
    }
}

/// Whether a library call may count: the operations that the part is about may be launched by other calls inside it.
fn may_count(selected: &Selected, call: i64) -> bool {
    selected.unasked().unwrap_or(selected).has_call(call)
}

/// Hands `each` the launch of each operation that a call on a thread caused.
fn each_launch(
    (trace, version): (&Connection, Version),
    ops: CausedOps<'_>,
    mut each: impl FnMut(Event) -> Result<()>,
) -> Result<()> {
    let mut streams = Streams::of(trace, version)?;
    let mut streams = streams.rows()?;
    ops.each(|op, call| {
        let Some(call) = call else { return Ok(()) };
        let Some((start, _)) = call.times else { return Ok(()) };
        let stream = streams.at(call.id)?.and_then(|stream| address(&stream)).unwrap_or(0);
        each(Event { stream, ..Event::of_launch(op, call.thread, start) })
    })
}

/// `steps`: of the sensors, where any was read.
fn finished(
    grown: Growing,
    steps: Option<&StepLengths>,
    texts: &mut OpTexts<'_>,
) -> rusqlite::Result<Configuration> {
    let arguments = Arguments::of(&grown.text);
    let work = LibraryWork::of(&grown.function, &arguments);
    let ns = grown.gpu_ns as f64;
    let launching = grown.launching.calls;
    let is_known = grown.gpu_ns > 0 && !grown.is_partial;
    let rate = |of_one: f64| is_known.then(|| of_one * launching as f64 / ns);
    let gb_per_s = work.bytes.and_then(|bytes| rate(bytes as f64));
    let mut kernels: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (name, (operations, gpu_ns)) in grown.kernels {
        let known = kernels.entry(texts.name(name)?).or_default();
        *known = (known.0 + operations, known.1 + gpu_ns);
    }
    let chosen = |(name, (operations, gpu_ns))| Chosen { name, operations, gpu_ns };
    let mut kernels: Vec<Chosen> = kernels.into_iter().map(chosen).collect();
    kernels.sort_by_key(|kernel| Reverse(kernel.gpu_ns));
    let bench = match grown.library.as_str() {
        HIPBLASLT if grown.function.is_empty() => {
            Some(grown.text.clone()).filter(|line| replay::is_plain(line))
        }
        library => bench::command(library, &grown.function, &arguments),
    };
    let steps = steps.filter(|_| !grown.sampled.is_empty());
    let joules_refused = steps.and_then(|steps| steps.refusal(&grown.sampled));
    Ok(Configuration {
        joules: (steps.is_some() && joules_refused.is_none()).then_some(grown.joules),
        joules_refused,
        gpu_us: (launching > 0).then(|| ns / 1e3 / launching as f64),
        gflop_per_s: work.flop.and_then(rate),
        bytes: work.bytes,
        gb_per_s,
        bus_gb_per_s: gb_per_s.zip(work.bus_factor).map(|(rate, factor)| rate * factor),
        bench,
        library: grown.library,
        function: grown.function,
        configuration: grown.text,
        calls: grown.all.calls,
        failed: grown.all.failed,
        cpu_ns: grown.all.cpu_ns,
        operations: grown.operations,
        gpu_ns: grown.gpu_ns,
        kernels,
    })
}

/// Adds the configurations of a part of a trace to those of library_trace.csv: commands of rocblas-bench, hipblaslt-bench and MIOpenDriver, lines of
/// rocBLAS's profile, and Tensile's kernels, in the order of time.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read.
pub fn configurations_seen(
    (trace, version): (&Connection, Version),
    selected: &Selected,
    seen: &mut Seen,
) -> Result<()> {
    let mut calls = Vec::new();
    let mut profiled = Vec::new();
    let mut handles = HandleModes::default();
    let mut events = Sorter::new();
    let is_about_operations = selected.unasked().is_some();
    // Calls come in no order of time, so modes are read before the calls that they hold for. Where none is set, nothing is read.
    let sets_modes = "SELECT 1 FROM rocpd_string WHERE string = 'rocblas_set_atomics_mode' LIMIT 1";
    if has_table(trace, "rocpd_string")? && trace.prepare(sets_modes)?.exists([])? {
        each_call(trace, version, |row| {
            handles.note(&row);
            Ok(())
        })?;
        handles.sort();
    }
    each_call(trace, version, |row| {
        let Some(times) = row.times.filter(|_| may_count(selected, row.id)) else { return Ok(()) };
        let arguments = Arguments::of(&row.arguments);
        let atomics = match row.library.as_str() {
            ROCBLAS => handles.mode(row.thread[0], &arguments, times.0),
            _ => Atomics::Allowed,
        };
        if row.library == ROCBLAS
            && let Some(line) = profile::line(&row.function, &arguments, atomics)
        {
            profiled.push((times.0, row.id, row.thread[0], line));
        }
        let command = match row.library.as_str() {
            // What MIOpen's ranges say is no command.
            MARKED => (marked(&row.arguments) == HIPBLASLT).then_some((HIPBLASLT, row.arguments)),
            library => [ROCBLAS, HIPBLASLT, "miopen"]
                .into_iter()
                .find(|known| *known == library)
                .zip(bench::command(library, &row.function, &arguments)),
        };
        let Some((library, mut command)) = command else { return Ok(()) };
        if atomics == Atomics::NotAllowed {
            command.push_str(" --atomics_not_allowed");
        }
        calls.push((times.0, row.id, library, command, row.library == MARKED));
        if is_about_operations {
            events.push(Event::of_call((row.id, row.thread), times, 0))?;
        }
        Ok(())
    })?;
    let mut kernels = Vec::new();
    let mut texts = OpTexts::of(trace)?;
    let mut names: HashMap<OpName, Option<String>> = HashMap::new();
    CausedOps::of(trace, selected)?.each(|op, call| {
        let name = match names.get(&op.name) {
            Some(name) => name,
            None => {
                let name = texts.name(op.name)?;
                let is_tensile = name.starts_with(TENSILE);
                names.entry(op.name).or_insert(is_tensile.then_some(name))
            }
        };
        kernels.extend(name.as_ref().map(|name| (op.start, op.id, name.clone())));
        if let Some((thread, (start, _))) = call.and_then(|call| Some((call.thread, call.times?)))
            && is_about_operations
        {
            events.push(Event::of_launch(op, thread, start))?;
        }
        Ok(())
    })?;
    if is_about_operations {
        let mut launching = Ids::default();
        each_given(events, |_, given| given.iter().for_each(|given| launching.add(given.call.id)))?;
        calls.retain(|(_, id, ..)| launching.has(*id));
        profiled.retain(|(_, id, ..)| launching.has(*id));
    }
    calls.sort();
    // The ranges of hipBLASLt's calls say more than their arguments, in sessions that have them.
    let session = |id: i64| id >> 32;
    let of_ranges = calls.iter().filter(|(.., is_range)| *is_range);
    let with_ranges: HashSet<i64> = of_ranges.map(|(_, id, ..)| session(*id)).collect();
    calls.retain(|(_, id, library, _, is_range)| {
        *is_range || *library != HIPBLASLT || !with_ranges.contains(&session(*id))
    });
    for (_, _, library, command, _) in &calls {
        seen.add(library, command, 1);
    }
    // Each process has a line for each configuration at its end.
    profiled.sort();
    let mut counted: HashMap<(i64, &str), u64> = HashMap::new();
    for (.., process, line) in &profiled {
        *counted.entry((*process, line)).or_default() += 1;
    }
    for (.., process, line) in &profiled {
        if let Some(calls) = counted.remove(&(*process, line.as_str())) {
            seen.add("rocblas_function", &profile::with_calls(line, calls), 1);
        }
    }
    kernels.sort();
    for (_, _, kernel) in &kernels {
        seen.add("tensile", kernel, 1);
    }
    Ok(())
}

/// How the names of Tensile's kernels begin.
const TENSILE: &str = "Cijk_";

/// When which handle of rocBLAS was set to which mode.
#[derive(Default)]
struct HandleModes {
    /// By process and handle.
    set: HashMap<(i64, u64), Vec<(i64, Atomics)>>,
}

impl HandleModes {
    fn note(&mut self, row: &CallRow) {
        let of_new = match row.function.as_str() {
            // The next handle may have the same address.
            "rocblas_create_handle" => Some(Atomics::default()),
            "rocblas_set_atomics_mode" => None,
            _ => return,
        };
        let arguments = Arguments::of(&row.arguments);
        let has_failed = arguments.text("status").is_some();
        let mode = of_new.or_else(|| Atomics::set_by(&arguments).filter(|_| !has_failed));
        if let Some(((mode, handle), (start, _))) = mode.zip(arguments.address("handle")).zip(row.times) {
            self.set.entry((row.thread[0], handle)).or_default().push((start, mode));
        }
    }

    fn sort(&mut self) {
        self.set.values_mut().for_each(|modes| modes.sort_by_key(|(start, _)| *start));
    }

    /// The mode in which a call with these arguments found its handle.
    fn mode(&self, process: i64, arguments: &Arguments<'_>, start: i64) -> Atomics {
        let modes = arguments.address("handle").and_then(|handle| self.set.get(&(process, handle)));
        let set = modes.and_then(|modes| {
            let before = modes.partition_point(|(set, _)| *set <= start);
            modes.get(before.checked_sub(1)?)
        });
        set.map_or_else(Atomics::default, |(_, mode)| *mode)
    }
}

/// Stands for the library of a range that a library has emitted itself.
const MARKED: &str = "";
const ROCBLAS: &str = "rocblas";
const HIPBLASLT: &str = "hipblaslt";
/// How such ranges begin.
const RANGES: [(&str, &str); 2] = [(HIPBLASLT, "hipblaslt-bench "), ("miopen", "s_api = miopen")];

/// Whose range it is.
fn marked(text: &str) -> &'static str {
    RANGES.iter().find(|(_, begin)| text.starts_with(begin)).map_or("", |(library, _)| library)
}

/// The plan that a call executes.
fn plan_of<'a>(plans: &'a Plans, row: &CallRow, arguments: &Arguments<'_>) -> Option<&'a str> {
    if !executes_plan(&row.function) {
        return None;
    }
    let start = row.times?.0;
    let made = plans.get(&(row.thread[0], arguments.address("plan")?))?;
    made.iter().rev().find(|(since, _)| *since <= start).map(|(_, plan)| plan.as_str())
}

fn plans(trace: &Connection, version: Version) -> Result<Plans> {
    let mut plans = Plans::new();
    each_call(trace, version, |row| {
        let makes = ["rocfft_plan_create", "cufftPlan", "cufftMakePlan", "cufftXtMakePlan"]
            .iter()
            .any(|begin| row.function.starts_with(begin));
        let plan = Arguments::of(&row.arguments).address("plan");
        if let (true, Some(plan), Some((_, end))) = (makes, plan, row.times) {
            plans.entry((row.thread[0], plan)).or_default().push((end, row.arguments));
        }
        Ok(())
    })?;
    plans.values_mut().for_each(|made| made.sort());
    Ok(plans)
}

/// The library calls of a trace, and the ranges that libraries have emitted themselves.
fn each_call(
    trace: &Connection,
    version: Version,
    mut each: impl FnMut(CallRow) -> Result<()>,
) -> Result<()> {
    let names = rpd_settings::library::NAMES.map(|name| format!("'{name}'")).join(", ");
    let texts = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
    let columns = "A.id, A.pid, A.tid, A.start, A.\"end\"";
    let mut queries = Vec::new();
    if has_table(trace, "ext_librarycall")? {
        queries.push(format!(
            "SELECT {columns}, D.string, N.string, G.string FROM ext_librarycall L JOIN rocpd_api A ON A.id = L.api_ptr_id \
             JOIN rocpd_string D ON D.id = L.domain_id JOIN rocpd_string N ON N.id = A.apiName_id \
             JOIN {texts} G ON G.id = A.args_id WHERE D.string IN ({names})"
        ));
    } else if version == Version::V3 {
        queries.push(format!(
            "SELECT {columns}, D.string, N.string, G.string FROM rocpd_api A JOIN rocpd_string D ON D.id = A.domain_id \
             JOIN rocpd_string N ON N.id = A.apiName_id JOIN {texts} G ON G.id = A.args_id WHERE D.string IN ({names})"
        ));
    }
    let ranges = RANGES.map(|(_, begin)| format!("string GLOB '{begin}*'")).join(" OR ");
    let has_ranges = has_table(trace, texts)?
        && trace.prepare(&format!("SELECT 1 FROM {texts} WHERE {ranges} LIMIT 1"))?.exists([])?;
    if has_ranges && version != Version::V1 {
        queries.push(format!(
            "SELECT {columns}, '{MARKED}', N.string, G.string FROM (SELECT id, string FROM {texts} WHERE {ranges}) G \
             JOIN rocpd_api A ON A.args_id = G.id JOIN rocpd_string N ON N.id = A.apiName_id WHERE N.string = 'UserMarker'"
        ));
    }
    let processes = Processes::of(trace)?;
    for query in queries {
        let mut rows = trace.prepare(&query)?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let number = |column: usize| row.get_ref(column).map(|value| value.as_i64().ok());
            let text = |column: usize| {
                row.get_ref(column).map(|value| rpd_schema::text::text_of(value).into_owned())
            };
            let Some(id) = number(0)? else { continue };
            each(CallRow {
                id,
                thread: [processes.of_row(id), number(1)?.unwrap_or(-1), number(2)?.unwrap_or(-1)],
                times: number(3)?.zip(number(4)?).filter(|times| are_sound(*times)),
                library: text(5)?,
                function: text(6)?,
                arguments: text(7)?,
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(function: &str) -> Growing {
        Growing::new("rccl".into(), function.into(), String::new())
    }

    fn call((start, end): (i64, i64), place: i64, role: i64, stream: u64) -> Event {
        Event { role, stream, ..Event::of_call((start, [0; 3]), (start, end), place) }
    }

    fn launch(start: i64, duration: i64, stream: u64) -> Event {
        Event { start, is_launch: 1, value: duration, stream, ..Event::zeroed() }
    }

    /// What these functions have of the launches.
    fn grow<const N: usize>(functions: [&str; N], events: &[Event]) -> [Growing; N] {
        let mut all = functions.map(grown);
        let mut sorter = Sorter::new();
        events.iter().for_each(|event| sorter.push(*event).unwrap());
        each_given(sorter, |launch, given| {
            given.iter().for_each(|given| all[given.call.place].add(launch, given));
        })
        .unwrap();
        all
    }

    #[test]
    fn what_a_group_launches_is_of_its_collectives() {
        let all = grow(
            ["ncclGroupStart", "ncclGroupEnd", "ncclAllReduce", "ncclSend"],
            &[
                call((0, 1), 0, 1, 0),
                call((2, 3), 2, 3, 7),
                call((4, 5), 3, 3, 7),
                call((6, 7), 2, 3, 9),
                call((8, 20), 1, 2, 0),
                launch(9, 101, 7),
                launch(10, 50, 9),
                launch(11, 5, 1),
                launch(30, 1000, 7),
            ],
        );
        let of = |place: usize| (all[place].gpu_ns, all[place].operations, all[place].launching.calls);
        assert_eq!(of(2), (50 + 50, 2, 2), "half of what two have together, and its own");
        assert_eq!(of(3), (51, 1, 1));
        assert_eq!(of(1), (5, 1, 1), "a stream that no collective of the group has");
    }

    #[test]
    fn a_collective_that_launches_in_its_call_and_at_the_end_of_its_group_is_one_call() {
        let events = [
            call((0, 1), 0, 1, 0),
            call((2, 9), 2, 3, 7),
            launch(3, 10, 7),
            call((12, 20), 1, 2, 0),
            launch(13, 100, 7),
        ];
        let all = grow(["ncclGroupStart", "ncclGroupEnd", "ncclAllReduce"], &events);
        let of = &all[2];
        assert_eq!((of.launching.calls, of.launching.cpu_ns, of.operations, of.gpu_ns), (1, 7, 2, 110));
    }

    #[test]
    fn a_call_has_what_calls_inside_it_launch() {
        let events = [call((0, 100), 0, 0, 0), call((10, 90), 1, 0, 0), launch(20, 7, 0), launch(95, 3, 0)];
        let all = grow(["hipblasSgemm", "rocblas_sgemm"], &events);
        assert_eq!((all[0].gpu_ns, all[1].gpu_ns), (10, 7));
        assert_eq!((all[0].launching.calls, all[0].operations), (1, 2));
    }

    #[test]
    fn a_call_with_operations_that_were_not_asked_for_is_partial_if_it_has_others() {
        let unasked = |start| Event { is_unasked: 1, ..launch(start, 1000, 0) };
        let events = [
            call((0, 100), 0, 0, 0),
            call((10, 50), 1, 0, 0),
            unasked(20),
            call((60, 90), 2, 0, 0),
            launch(70, 3, 0),
        ];
        let all = grow(["hipblasSgemm", "rocblas_sgemm", "rocblas_sscal"], &events);
        assert_eq!(all.each_ref().map(|of| of.is_partial), [true, false, false]);
        assert_eq!(all.each_ref().map(|of| of.launching.calls), [1, 0, 1]);
        assert_eq!(all.each_ref().map(|of| (of.operations, of.gpu_ns)), [(1, 3), (0, 0), (1, 3)]);
    }
}
