use crate::harness::{Dir, Run, newer_rocm, program, recorder};

/// The program loads the recorder itself, with RECORDER, after it has used HIP.
fn late<'a>(dir: &'a Dir) -> Run<'a> {
    Run::new(dir, program("hip_late")).env("RECORDER", recorder()).env("RPDT_FILENAME", dir.path("trace.rpd"))
}

#[test]
fn what_comes_after_is_recorded() {
    let dir = Dir::new();
    let ran = late(&dir).run();
    ran.expect(0);
    // HIP before 5.3 has faults when it times its commands itself.
    let said = ran.stderr.matches("the recorder came later than HIP, whose own times are used").count();
    assert_eq!((said, ran.stderr.lines().count()), if newer_rocm() { (0, 0) } else { (1, 1) }, "{ran}");
    let trace = dir.trace("trace.rpd");
    // Not all of the integrity check: nothing is known of the kernels' code objects.
    let dangling = "select count(*) from rocpd_api_ops where api_id not in (select id from rocpd_api) \
         or op_id not in (select id from rocpd_op)";
    assert_eq!(trace.number(dangling), 0);
    let ops = trace.texts(
        "select opType || ' ' || description || ' ' || apiName || ' ' || count(*) from op join rocpd_api_ops on op_id = op.id \
         join api on api.id = api_id group by opType, description, apiName order by 1",
    );
    assert_eq!(
        ops,
        [
            "CopyDeviceToDevice  hipMemcpy 1",
            "CopyDeviceToHost  hipMemcpy 1",
            "CopyHostToDevice  hipMemcpy 1",
            "FillBuffer  hipMemset 1",
            "KernelExecution late(unsigned int*) hipLaunchKernel 60",
        ]
    );
    // 50 on a queue that was there before, 10 on one that was not: each with the grid of its own call.
    let grids = "select K.gridX from rocpd_kernelapi K join rocpd_api_ops on api_id = api_ptr_id join dispatch D \
         on D.id = op_id where D.gridX = K.gridX order by api_id";
    let grids = trace.rows(grids, |row| row.get::<_, i64>(0));
    assert_eq!(grids, (1..=60).collect::<Vec<_>>());
    for fact in ["session::0::sources", "session::0::timing"] {
        assert_eq!(trace.metadata(fact)[fact], "hip");
    }
    assert!(!trace.metadata("gpu::0::name").is_empty());
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
}

#[test]
fn times_are_those_of_the_device() {
    let dir = Dir::new();
    late(&dir).run().expect(0);
    let mut log: Vec<_> =
        dir.logs().remove(0).1.into_iter().filter(|packet| packet.name.contains("late")).collect();
    log.sort_by_key(|packet| packet.start_ns);
    let trace = dir.trace("trace.rpd");
    let ops = trace.rows("select start, end from dispatch order by start", |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    });
    assert_eq!(ops.len(), log.len());
    let offset = crate::harness::boot_minus_monotonic();
    for ((start, end), packet) in ops.into_iter().zip(log) {
        let log = (packet.start_ns as i64 - offset, packet.end_ns as i64 - offset);
        assert!((start - log.0).abs() < 1000 && (end - log.1).abs() < 1000, "{start}..{end}, log {log:?}");
    }
}

#[test]
fn by_intercepted_queues_nothing_can_be_timed() {
    let dir = Dir::new();
    let ran = late(&dir).env("RPDT_TIMING", "hsa").run();
    ran.expect(0);
    let trace = dir.trace("trace.rpd");
    assert_eq!(trace.number("select count(*) from rocpd_op"), 0);
    assert_eq!(trace.number("select count(*) from rocpd_kernelapi"), 60, "the calls are there");
}

#[test]
fn only_from_a_start_on() {
    let dir = Dir::new();
    late(&dir).env("RPDT_AUTOSTART", "0").run().expect(0);
    assert_eq!(dir.names(), Vec::<String>::new());
}
