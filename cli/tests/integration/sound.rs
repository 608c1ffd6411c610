//! A trace with nothing wrong in it, for tests to damage.

use rpd_schema::{
    ApiId, ApiRow, Appender, BarrierRow, CandidateId, CandidateRow, CodeObjectId, CodeObjectRow, CopyApiRow,
    DispatchRow, ExtCodeObjectRow, Fence, KernelApiRow, MonitorRow, OpId, OpRow, Outcome, ReplacementRow,
    SavedCodeId, SavedCodeRow, TickRow, session_fact,
};

use crate::harness::Dir;

/// How many kernels [`sound`] has in each session; their ids begin at 1.
pub(crate) const KERNELS: u64 = 300;

/// A trace with nothing to say about: two sessions of another host, every table of the format filled.
pub(crate) fn sound(dir: &Dir, name: &str) -> String {
    for pid in [100, 200] {
        let mut appender = Appender::open(&dir.path(name)).unwrap();
        let facts = [
            (session_fact::PID, pid.to_string()),
            (session_fact::HOST, "node1".into()),
            (session_fact::START_MONOTONIC_NS, "1000".into()),
            (session_fact::END_MONOTONIC_NS, "900000".into()),
        ];
        for (key, value) in facts {
            appender.session_fact(key, &value).unwrap();
        }
        appender.begin().unwrap();
        code(&mut appender);
        (1..=KERNELS).for_each(|number| kernel(&mut appender, number));
        copy_and_barrier(&mut appender);
        appender.commit().unwrap();
    }
    name.to_string()
}

/// The operations of each session that ran a candidate.
pub(crate) const REPLACED: std::ops::RangeInclusive<u64> = 201..=250;

/// The program's kernel, where it came from, and a candidate that runs in its place; another one is for other GPUs.
fn code(appender: &mut Appender) {
    appender.code_object(&CodeObjectRow { id: CodeObjectId(1), vgpr: 24, sgpr: 32, fbar: 0 }).unwrap();
    appender.code_object(&CodeObjectRow { id: CodeObjectId(2), vgpr: 12, sgpr: 16, fbar: 0 }).unwrap();
    let kernel_name = appender.intern("vectorAdd(float*)").unwrap();
    let more = ExtCodeObjectRow {
        id: CodeObjectId(1),
        kernel_name,
        agpr: 0,
        vgpr_spill: 0,
        sgpr_spill: 0,
        group_segment_size: 0,
        private_segment_size: 0,
        kernarg_segment_size: 24,
        wavefront_size: 64,
        max_workgroup_size: 1024,
    };
    appender.ext_code_object(&more).unwrap();
    let saved = SavedCodeRow {
        id: SavedCodeId(1),
        sha256: "1f",
        uri: "file:///opt/add#offset=4096&size=9216",
        target: "gfx90a",
        size: 9216,
    };
    appender.saved_code(&saved).unwrap();
    appender.saved_kernel(CodeObjectId(1), SavedCodeId(1)).unwrap();
    let candidate = CandidateRow {
        id: CandidateId(1),
        path: "/cache/add.hsaco",
        sha256: "2f",
        target: "gfx90a",
        loaded: 900,
        outcome: Outcome::Loaded,
        reason: "",
    };
    appender.candidate(&candidate).unwrap();
    let other = CandidateRow {
        id: CandidateId(2),
        path: "/cache/other.hsaco",
        target: "gfx1100",
        loaded: 0,
        outcome: Outcome::OtherTarget,
        reason: "no GPU here is a gfx1100",
        ..candidate
    };
    appender.candidate(&other).unwrap();
}

fn api(appender: &mut Appender, id: ApiId, name: &str, start: u64) {
    let (name, args) = (appender.intern(name).unwrap(), appender.empty());
    appender.api(&ApiRow { id, pid: 100, tid: 101, start, end: start + 50, name, args }).unwrap();
}

fn kernel(appender: &mut Appender, number: u64) {
    let call = ApiId::call(number);
    let op = OpId(number);
    api(appender, call, "hipLaunchKernel", number * 1000);
    let kernel_name = appender.intern("vectorAdd(float*)").unwrap();
    let op_type = appender.intern("KernelExecution").unwrap();
    appender
        .kernel_api(&KernelApiRow {
            api: call,
            stream: 0,
            grid: [4, 2, 1],
            workgroup: [64, 1, 1],
            group_segment_size: 0,
            private_segment_size: 0,
            kernarg_address: 0x7f00,
            acquire_fence: Fence::System,
            release_fence: Fence::Agent,
            code_object: CodeObjectId(1),
            kernel_name,
        })
        .unwrap();
    appender
        .op(&OpRow {
            id: op,
            gpu: 0,
            queue: 1,
            sequence: number,
            completion_signal: 0,
            start: number * 1000 + 100,
            end: number * 1000 + 400,
            description: kernel_name,
            op_type,
        })
        .unwrap();
    appender
        .dispatch(&DispatchRow {
            op,
            kernel_name,
            grid: [4, 2, 1],
            workgroup: [64, 1, 1],
            group_segment_size: 0,
            private_segment_size: 0,
            kernarg_address: 0x7f00,
            code_object: CodeObjectId::UNKNOWN,
        })
        .unwrap();
    // The device's counter may have wrapped: that is no negative duration.
    appender.tick(&TickRow { op, start: u64::MAX, end: 5 }).unwrap();
    appender.api_op(call, op).unwrap();
    if REPLACED.contains(&number) {
        let (original, replacement) = (CodeObjectId(1), CodeObjectId(2));
        appender
            .replacement(&ReplacementRow { op, original, replacement, candidate: CandidateId(1) })
            .unwrap();
    }
}

fn copy_and_barrier(appender: &mut Appender) {
    let (call, op) = (ApiId::call(KERNELS + 1), OpId(KERNELS + 1));
    api(appender, call, "hipMemcpy", 400_000);
    let copy = CopyApiRow {
        api: call,
        stream: 0,
        size: 4096,
        width: 0,
        height: 0,
        kind: 1,
        dst: 16,
        src: 32,
        dst_device: 0,
        src_device: -1,
        sync: true,
        pinned: false,
    };
    appender.copy_api(&copy).unwrap();
    let (description, op_type) = (appender.empty(), appender.intern("CopyHostToDevice").unwrap());
    let op_row = OpRow {
        id: op,
        gpu: 0,
        queue: 0,
        sequence: 0,
        completion_signal: 0,
        start: 400_100,
        end: 400_200,
        description,
        op_type,
    };
    appender.op(&op_row).unwrap();
    appender.api_op(call, op).unwrap();
    let (barrier, op_type) = (OpId(KERNELS + 2), appender.intern("Barrier").unwrap());
    appender.op(&OpRow { id: barrier, op_type, ..op_row }).unwrap();
    appender
        .barrier(&BarrierRow {
            op: barrier,
            signal_count: 1,
            acquire_fence: Fence::None,
            release_fence: Fence::None,
        })
        .unwrap();
    appender.input_signal(op, barrier).unwrap();
    let frame = appender.intern("main").unwrap();
    appender.stack_frame(call, 0, frame).unwrap();
    let monitor = MonitorRow {
        device_type: "gpu",
        device: 0,
        monitor_type: "sclk",
        start: 1000,
        end: 400_000,
        value: "1700",
    };
    appender.monitor(&monitor).unwrap();
}
