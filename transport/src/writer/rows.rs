//! From records to rows: which tables a dispatch, a copy or a marker fills (docs/format.md).

mod calls;
mod launches;

use std::collections::BTreeSet;

use rpd_schema::{
    ApiId, ApiRow, Appender, CopyApiRow, DispatchRow, Error, Fence, KernelApiRow, LaunchAttributeRow,
    MonitorRow, OpId, OpRow, ReplacementRow, TickRow,
};

use super::frames::{Frames, UnnamedStack};
use super::held::Operation;
use super::names::{NamedKernel, Names, Replacement};
use super::ranges::RangePart;
use super::system_calls;
use crate::correlation;
use crate::recorder::Recorder;
use crate::records::{Analyzed, Copy, Dispatch, LaunchAttributes, NO_GPU, NO_PACKET, Sensor};
use crate::source::{AnalysisText, Role, Watch};
use launches::DescribedLaunches;

/// Ids are renewed by a new session long before they run out: one drain adds at most this many.
const ID_RESERVE: u64 = 1 << 24;
/// Ids of calls that one session has: markers take the other half.
const CALL_IDS: u64 = 1 << 31;

/// How many of each kind are in the file.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) calls: u64,
    /// Calls with their stack frames.
    pub(super) stacks: u64,
    pub(super) kernels: u64,
    pub(super) copies: u64,
    pub(super) fills: u64,
    /// Graphs that were run as a whole.
    pub(super) graphs: u64,
    pub(super) ranges: u64,
    pub(super) marks: u64,
    /// Runs of values of sensors. They are no events.
    pub(super) sensors: u64,
    /// Operations of no HIP call in the file.
    pub(super) without_call: u64,
    /// Calls that have launched one kernel each.
    pub(super) launches: u64,
    /// Of those, the ones whose operation is in the file, or counted as lost.
    pub(super) launches_done: u64,
}

impl Recorded {
    /// What GPUs did.
    pub(super) fn operations(&self) -> u64 {
        self.kernels + self.copies + self.fills + self.graphs
    }

    /// These and others.
    pub(super) fn and(&self, others: &Recorded) -> Recorded {
        Recorded {
            calls: self.calls + others.calls,
            stacks: self.stacks + others.stacks,
            kernels: self.kernels + others.kernels,
            copies: self.copies + others.copies,
            fills: self.fills + others.fills,
            graphs: self.graphs + others.graphs,
            ranges: self.ranges + others.ranges,
            marks: self.marks + others.marks,
            sensors: self.sensors + others.sensors,
            without_call: self.without_call + others.without_call,
            launches: self.launches + others.launches,
            launches_done: self.launches_done + others.launches_done,
        }
    }

    /// Launches of which nothing more is known: their kernels have not completed.
    pub(super) fn launches_without_op(&self) -> u64 {
        self.launches.saturating_sub(self.launches_done)
    }

    /// What a session in the next part begins with: launches that have not completed will be done there.
    pub(super) fn carried(&self) -> Recorded {
        Recorded { launches: self.launches_without_op(), ..Recorded::default() }
    }

    /// All of them.
    pub(super) fn events(&self) -> u64 {
        self.calls + self.operations() + self.ranges + self.marks
    }
}

/// The next local ids of a session.
#[derive(Clone, Copy)]
struct SessionIds {
    /// How often the ids of calls had gone through a session's, when it began.
    lap: u64,
    marker: u64,
    op: u64,
}

pub(super) struct Rows {
    recorder: &'static Recorder,
    pid: u32,
    ticks: bool,
    ids: SessionIds,
    names: Names,
    frames: Option<Frames>,
    /// Since the session began, the open transaction included.
    recorded: Recorded,
    /// Calls of earlier parts for which rows stand in this session, and those of them that came with the open transaction.
    stand_ins: BTreeSet<u64>,
    open_stand_ins: Vec<u64>,
    described: DescribedLaunches,
    watches: Vec<Watch>,
    /// Whether the sensors of these GPUs are this process's in the open transaction.
    claims: Vec<(u32, bool)>,
}

/// From where to where memory is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyDirection {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
}

impl CopyDirection {
    /// Between these GPUs, or `NO_GPU` for the host.
    fn between(src_gpu: u32, dst_gpu: u32) -> CopyDirection {
        match (src_gpu, dst_gpu) {
            (NO_GPU, NO_GPU) => CopyDirection::HostToHost,
            (NO_GPU, _) => CopyDirection::HostToDevice,
            (_, NO_GPU) => CopyDirection::DeviceToHost,
            _ => CopyDirection::DeviceToDevice,
        }
    }

    /// hipMemcpyKind.
    fn kind(self) -> u32 {
        self as u32
    }

    /// The type of such an operation.
    fn op_type(self, rectangle: bool) -> &'static str {
        match (self, rectangle) {
            (CopyDirection::HostToHost, false) => "CopyHostToHost",
            (CopyDirection::HostToDevice, false) => "CopyHostToDevice",
            (CopyDirection::DeviceToHost, false) => "CopyDeviceToHost",
            (CopyDirection::DeviceToDevice, false) => "CopyDeviceToDevice",
            (CopyDirection::HostToHost, true) => "CopyHostToHost2D",
            (CopyDirection::HostToDevice, true) => "CopyHostToDevice2D",
            (CopyDirection::DeviceToHost, true) => "CopyDeviceToHost2D",
            (CopyDirection::DeviceToDevice, true) => "CopyDeviceToDevice2D",
        }
    }
}

impl Rows {
    /// For the process that `recorder` records.
    pub(super) fn new(recorder: &'static Recorder) -> Rows {
        Rows {
            recorder,
            pid: recorder.pid,
            ticks: recorder.config.ticks,
            ids: SessionIds::first(),
            names: Names::new(recorder.setup.gpus),
            frames: recorder.stacks.as_ref().map(Frames::new),
            recorded: Recorded::default(),
            stand_ins: BTreeSet::new(),
            open_stand_ins: Vec::new(),
            described: DescribedLaunches::default(),
            watches: recorder.setup.sources.iter().filter_map(|source| source.watch()).collect(),
            claims: Vec::new(),
        }
    }

    /// Whether a new session must be taken before the next transaction.
    pub(super) fn exhausted(&self) -> bool {
        SessionIds::first().lap != self.ids.lap
            || self.ids.marker + ID_RESERVE > CALL_IDS
            || self.ids.op + ID_RESERVE > 1 << 32
    }

    /// How many rows of each kind the session has, the open transaction included.
    pub(super) fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// The operations of so many launches in the session were lost before they got here.
    pub(super) fn end_launches(&mut self, launches: u64) {
        self.recorded.launches_done += launches;
    }

    /// The rows so far are another file's.
    pub(super) fn forget_counts(&mut self) {
        self.recorded = Recorded::default();
    }

    /// A new session was taken.
    pub(super) fn begin_session(&mut self) {
        self.forget_counts();
        self.ids = SessionIds::first();
        self.stand_ins.clear();
        self.open_stand_ins.clear();
        self.described.clear();
        self.names.forget();
        if let Some(frames) = &mut self.frames {
            frames.forget();
        }
    }

    /// A session was taken in the next part of the recording, which has `carried` from this one. False: the ids of calls begin anew in it, so
    /// that those of this session cannot be told there.
    pub(super) fn begin_part(&mut self, carried: &Recorded) -> bool {
        let lap = self.ids.lap;
        self.begin_session();
        self.recorded = *carried;
        self.ids.lap == lap
    }

    /// The local id that the next call gets.
    pub(super) fn next_call(&self) -> u64 {
        self.call_id(correlation::watermark()).local()
    }

    /// Whether there are candidates for replacement or code objects that have no rows yet.
    pub(super) fn has_more_files(&self) -> bool {
        self.names.has_more_files()
    }

    /// Rows of the candidates for replacement, of the code objects and of the instrumented dispatches that have none yet. `ends`: no
    /// operations follow.
    pub(super) fn files(&mut self, appender: &mut Appender, ends: bool) -> Result<(), Error> {
        self.names.files(appender, ends)
    }

    /// The open transaction, which has rows of these files alone, is over; whether it is in the file.
    pub(super) fn end_files(&mut self, committed: bool) {
        if committed { self.names.commit() } else { self.names.roll_back() }
    }

    /// The open transaction is in the file.
    pub(super) fn commit(&mut self) {
        self.claims.clear();
        self.open_stand_ins.clear();
        self.names.commit();
        if let Some(frames) = &mut self.frames {
            frames.commit();
        }
    }

    /// The open transaction is not in the file; `committed` is.
    pub(super) fn roll_back(&mut self, committed: &Recorded) {
        self.claims.clear();
        self.described.clear();
        self.recorded = *committed;
        for call in self.open_stand_ins.drain(..) {
            self.stand_ins.remove(&call);
        }
        self.names.roll_back();
        if let Some(frames) = &mut self.frames {
            frames.roll_back();
        }
    }

    /// A dispatch: its launch and - when it completed - the operation; where no call is `linked` also a call of its own.
    pub(super) fn dispatch(
        &mut self,
        appender: &mut Appender,
        record: &Dispatch,
        attributes: &LaunchAttributes,
        linked: bool,
    ) -> Result<(), Error> {
        self.watches.iter_mut().for_each(|watch| watch(record));
        self.recorded.without_call += u64::from(!linked);
        self.recorded.launches_done += u64::from(linked && record.ends_launch());
        let kernel = self.names.get(record.kernel, appender)?;
        let api = if linked {
            self.call_id(record.correlation)
        } else {
            self.made_up(
                appender,
                (record.source, record.function),
                record.tid,
                record.submit_start,
                record.submit_end,
            )?
        };
        let launch = launch_of(api, record, kernel);
        let call_says_all = if !linked || record.describes_call() {
            if kernel.role == Role::Kernel {
                appender.kernel_api(&launch)?;
            }
            true
        } else {
            record.ends_launch() && self.described.take(record.correlation) == Some(launch)
        };
        if record.end == 0 {
            return Ok(());
        }
        let op = OpRow {
            id: self.next_op(),
            gpu: record.gpu,
            queue: record.queue,
            sequence: record.sequence,
            completion_signal: record.completion,
            start: record.start,
            end: record.end,
            description: match kernel.role {
                Role::Kernel | Role::Graph => kernel.name,
                _ => appender.empty(),
            },
            op_type: appender.intern(op_type(kernel.role, record))?,
        };
        appender.op(&op)?;
        appender.api_op(api, op.id)?;
        if *attributes != LaunchAttributes::default() {
            let LaunchAttributes { graph, graph_node, cluster, .. } = *attributes;
            appender.launch_attribute(&LaunchAttributeRow { op: op.id, graph, graph_node, cluster })?;
        }
        if self.ticks {
            appender.tick(&TickRow { op: op.id, start: record.start_tick, end: record.end_tick })?;
        }
        if let Some(Replacement { code_object, candidate, is_instrumented }) = kernel.replacement {
            let original = kernel.code_object;
            appender.replacement(&ReplacementRow {
                op: op.id,
                original,
                replacement: code_object,
                candidate,
            })?;
            self.names.validation(appender, op.id, record)?;
            if is_instrumented {
                self.names.instrumented.ran(record, op.id);
            }
        }
        match kernel.role {
            Role::Kernel => {
                self.recorded.kernels += 1;
                if !call_says_all {
                    appender.dispatch(&dispatch_of(op.id, record, kernel))?;
                }
            }
            Role::Copy | Role::CopyRect => self.recorded.copies += 1,
            Role::Fill => self.recorded.fills += 1,
            Role::Graph => self.recorded.graphs += 1,
        }
        Ok(())
    }

    /// An instrumented dispatch was analyzed. It has rows when its operation has one, see [`Rows::files`].
    pub(super) fn analyzed(&mut self, record: Analyzed, analyses: Vec<AnalysisText>) {
        self.names.instrumented.analyzed(record, analyses);
    }

    /// Nothing more is written: of how many instrumented dispatches the file lacks what was found.
    pub(super) fn discard_analyzed(&mut self) -> u64 {
        self.names.instrumented.discard()
    }

    /// What the call of a dispatch that has not completed has launched; its row is there.
    pub(super) fn launched(&mut self, appender: &mut Appender, record: &Dispatch) -> Result<(), Error> {
        let kernel = self.names.get(record.kernel, appender)?;
        if kernel.role == Role::Kernel {
            let launch = launch_of(self.call_id(record.correlation), record, kernel);
            appender.kernel_api(&launch)?;
            self.described.add(record.correlation, launch);
        }
        Ok(())
    }

    /// A copy: the operation, when it completed; where no call is `linked` also a call of its own and what it moves.
    pub(super) fn copy(&mut self, appender: &mut Appender, record: &Copy, linked: bool) -> Result<(), Error> {
        self.recorded.without_call += u64::from(!linked);
        let direction = CopyDirection::between(record.src_gpu, record.dst_gpu);
        let api = if linked {
            self.call_id(record.correlation)
        } else {
            let function = (record.source, record.function);
            self.made_up(appender, function, record.tid, record.submit_start, record.submit_end)?
        };
        if !linked || record.describes_call != 0 {
            let device = |gpu: u32| i32::try_from(gpu).unwrap_or(-1);
            appender.copy_api(&CopyApiRow {
                api,
                stream: record.queue.into(),
                size: record.size,
                width: record.width,
                height: record.height,
                kind: direction.kind(),
                dst: record.dst,
                src: record.src,
                dst_device: device(record.dst_gpu),
                src_device: device(record.src_gpu),
                sync: false,
                // Of copies that the source says no more of, the copy engines reach host memory only where it is pinned.
                pinned: match record.describes_call {
                    0 => direction != CopyDirection::DeviceToDevice,
                    described => described == 2,
                },
            })?;
        }
        if record.end == 0 {
            return Ok(());
        }
        let op = OpRow {
            id: self.next_op(),
            gpu: record.gpu,
            queue: record.queue,
            sequence: record.sequence,
            completion_signal: record.completion,
            start: record.start,
            end: record.end,
            description: appender.empty(),
            op_type: appender.intern(direction.op_type(record.height > 0))?,
        };
        appender.op(&op)?;
        appender.api_op(api, op.id)?;
        self.recorded.copies += 1;
        Ok(())
    }

    /// Whether stack frames wait for the next transaction.
    pub(super) fn has_waiting_stacks(&self) -> bool {
        self.frames.as_ref().is_some_and(Frames::has_waiting)
    }

    /// Works out the names that the waiting stack frames lack. True: some can be written now.
    pub(super) fn name_stacks(&mut self) -> bool {
        self.frames.as_mut().is_some_and(Frames::name)
    }

    /// The stack frames that wait. What is not written now comes back by [`Rows::put_back_stacks`].
    pub(super) fn take_stacks(&mut self) -> std::vec::IntoIter<UnnamedStack> {
        self.frames.as_mut().map(Frames::take_waiting).unwrap_or_default().into_iter()
    }

    /// See [`Rows::take_stacks`].
    pub(super) fn put_back_stacks(&mut self, stacks: impl Iterator<Item = UnnamedStack>) {
        if let Some(frames) = &mut self.frames {
            frames.put_back(stacks);
        }
    }

    /// Stack frames of a call of an earlier transaction, if their names are known.
    pub(super) fn waiting_stack(
        &mut self,
        appender: &mut Appender,
        stack: UnnamedStack,
    ) -> Result<(), Error> {
        if let Some(frames) = &mut self.frames {
            self.recorded.stacks += frames.add_waiting(appender, stack)?;
        }
        Ok(())
    }

    /// The calls whose stack frames wait will not get them.
    pub(super) fn lose_waiting_stacks(&mut self) {
        if let Some(frames) = &mut self.frames {
            frames.lose_waiting();
        }
    }

    /// A run of a sensor's values, unless another process records that GPU's sensors into this file.
    pub(super) fn sensor(
        &mut self,
        appender: &mut Appender,
        sensor: &Sensor,
        name: &str,
        value: &str,
    ) -> Result<(), Error> {
        let known = self.claims.iter().find(|(gpu, _)| *gpu == sensor.gpu).map(|(_, claimed)| *claimed);
        let claimed = known.unwrap_or_else(|| {
            let claimed = system_calls::claim_sensors(sensor.gpu);
            self.recorder.sensors.set_anothers(sensor.gpu, !claimed);
            self.claims.push((sensor.gpu, claimed));
            claimed
        });
        if !claimed {
            return Ok(());
        }
        self.recorded.sensors += 1;
        appender.monitor(&MonitorRow {
            device_type: "gpu",
            device: sensor.gpu,
            monitor_type: name,
            start: sensor.start,
            end: sensor.end,
            value,
        })
    }

    /// A range of thread `tid`, or the part of it in which recording was on.
    pub(super) fn range(
        &mut self,
        appender: &mut Appender,
        tid: u32,
        range: &RangePart<'_>,
    ) -> Result<(), Error> {
        self.recorded.ranges += 1;
        self.marker(appender, tid, range)
    }

    /// An instant of thread `tid`.
    pub(super) fn mark(
        &mut self,
        appender: &mut Appender,
        tid: u32,
        mark: &RangePart<'_>,
    ) -> Result<(), Error> {
        self.recorded.marks += 1;
        self.marker(appender, tid, mark)
    }

    fn marker(&mut self, appender: &mut Appender, tid: u32, marker: &RangePart<'_>) -> Result<(), Error> {
        let id = ApiId::marker(self.ids.marker);
        self.ids.marker += 1;
        let (name, args) = (appender.intern(marker.name)?, appender.intern(marker.args)?);
        appender.api(&ApiRow { id, pid: self.pid, tid, start: marker.start, end: marker.end, name, args })
    }

    /// A call for an operation that is of none: a function of a source, by its number there.
    fn made_up(
        &mut self,
        appender: &mut Appender,
        (source, function): (u8, u16),
        tid: u32,
        start: u64,
        end: u64,
    ) -> Result<ApiId, Error> {
        let id = self.call_id(correlation::next());
        self.add_made_up(appender, id, (source, function), tid, start, end)?;
        Ok(id)
    }

    /// The row of a call in an earlier part of the recording, to which the operation is linked: it has the local id of that call, and
    /// otherwise is as one that is made up. A merge of the parts puts the call into its place.
    pub(super) fn stand_in(&mut self, appender: &mut Appender, operation: &Operation) -> Result<(), Error> {
        let call = operation.call();
        if !self.stand_ins.insert(call) {
            return Ok(());
        }
        self.open_stand_ins.push(call);
        let (function, tid, start, end) = match operation {
            Operation::Dispatch(record, _) | Operation::Launch(record) => {
                ((record.source, record.function), record.tid, record.submit_start, record.submit_end)
            }
            Operation::Copy(record) => {
                ((record.source, record.function), record.tid, record.submit_start, record.submit_end)
            }
        };
        self.add_made_up(appender, self.call_id(call), function, tid, start, end)
    }

    fn add_made_up(
        &self,
        appender: &mut Appender,
        id: ApiId,
        (source, function): (u8, u16),
        tid: u32,
        start: u64,
        end: u64,
    ) -> Result<(), Error> {
        let name = self.recorder.source(source).map_or("", |source| source.function(function));
        let name = appender.intern(name)?;
        appender.api(&ApiRow { id, pid: self.pid, tid, start, end, name, args: appender.empty() })
    }

    /// The id in this session of the call with that correlation id. Few calls are in the rings at once, so the ids around the end of
    /// a lap are as far from each other as they can be.
    fn call_id(&self, correlation: u64) -> ApiId {
        ApiId::call(correlation % CALL_IDS)
    }

    fn next_op(&mut self) -> OpId {
        let id = OpId(self.ids.op);
        self.ids.op += 1;
        id
    }
}

/// The type of what a kernel in that role does.
fn op_type(role: Role, record: &Dispatch) -> &'static str {
    let direction = CopyDirection::between(record.src_gpu, record.dst_gpu);
    match role {
        Role::Kernel => "KernelExecution",
        Role::Copy => direction.op_type(false),
        Role::CopyRect => direction.op_type(true),
        Role::Fill => "FillBuffer",
        Role::Graph => "GraphExecution",
    }
}

/// Workgroups, and the work-items of one.
fn geometry(record: &Dispatch) -> ([u32; 3], [u32; 3]) {
    let workgroup = record.workgroup.map(u32::from);
    if record.header == NO_PACKET {
        return (record.grid, workgroup);
    }
    (std::array::from_fn(|axis| record.grid[axis].div_ceil(workgroup[axis].max(1))), workgroup)
}

/// What the call `api` has launched.
fn launch_of(api: ApiId, record: &Dispatch, kernel: NamedKernel) -> KernelApiRow {
    let (grid, workgroup) = geometry(record);
    KernelApiRow {
        api,
        stream: record.stream,
        grid,
        workgroup,
        group_segment_size: record.group_segment,
        private_segment_size: record.private_segment,
        kernarg_address: record.kernarg,
        acquire_fence: fence(record.header >> 9),
        release_fence: fence(record.header >> 11),
        code_object: kernel.code_object,
        kernel_name: kernel.name,
    }
}

/// What ran, where no row of a call says it.
fn dispatch_of(op: OpId, record: &Dispatch, kernel: NamedKernel) -> DispatchRow {
    let (grid, workgroup) = geometry(record);
    DispatchRow {
        op,
        kernel_name: kernel.name,
        grid,
        workgroup,
        group_segment_size: record.group_segment,
        private_segment_size: record.private_segment,
        kernarg_address: record.kernarg,
        code_object: kernel.code_object,
    }
}

impl SessionIds {
    fn first() -> SessionIds {
        SessionIds { lap: (correlation::watermark() + ID_RESERVE) / CALL_IDS, marker: 0, op: 1 }
    }
}

/// A fence scope of a packet header (HSA 1.2 §2.9.1), in the two lowest bits.
fn fence(bits: u16) -> Fence {
    match bits & 3 {
        0 => Fence::None,
        1 => Fence::Agent,
        2 => Fence::System,
        _ => Fence::Unknown,
    }
}
