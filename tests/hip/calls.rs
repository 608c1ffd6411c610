use crate::harness::{Dir, Loading, Ran, Run, Trace, aql_code_object, program};

fn recorded(dir: &Dir, variables: &[(&str, &str)]) -> (Ran, Trace) {
    recorded_by(dir, "hip_calls", Loading::Preload, variables)
}

fn recorded_by(dir: &Dir, name: &str, loading: Loading, variables: &[(&str, &str)]) -> (Ran, Trace) {
    let run = Run::new(dir, program(name)).gpus(2).arg(aql_code_object("gfx900"));
    let run = variables.iter().fold(run.recorded(loading), |run, (name, value)| run.env(name, *value));
    let ran = run.run();
    ran.expect(0);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    (ran, trace)
}

/// HIP 5.2 has no callback for these, so only symbol interposition records them.
const WITHOUT_CALLBACK: [&str; 2] = ["hipGetDeviceCount", "hipMemcpyFromArray"];

fn is_described(call: &&str) -> bool {
    !WITHOUT_CALLBACK.iter().any(|name| call.split(['|', ' ']).next() == Some(name))
}

/// `name|arguments` of every call, in order.
fn calls(trace: &Trace) -> Vec<String> {
    trace.texts("select apiName || '|' || args from api order by id")
}

/// Whether a call is what the program said; `*` stands for what it does not know.
fn is(said: &str, call: &str) -> bool {
    match said.split_once('*') {
        Some((begin, end)) => call.starts_with(begin) && call.ends_with(end),
        None => said == call,
    }
}

#[test]
fn every_call_with_its_arguments_in_order() {
    for (name, loading) in
        ["hip_calls", "hip_rare"].iter().flat_map(|name| Loading::BOTH.map(|loading| (name, loading)))
    {
        let dir = Dir::new();
        let (ran, trace) = recorded_by(&dir, name, loading, &[]);
        let calls = calls(&trace);
        let calls: Vec<&str> = calls.iter().map(String::as_str).filter(is_described).collect();
        let said: Vec<&str> = ran.stdout.lines().filter(is_described).collect();
        for (said, call) in said.iter().zip(&calls) {
            assert!(is(said, call), "the program says {said}, the file {call}");
        }
        assert_eq!(said.len(), calls.len(), "{:?}", &calls[said.len().min(calls.len())..]);
        let threads = trace.rows("select distinct pid, tid from api", |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(threads, [(ran.pid, ran.pid)]);
    }
}

#[test]
fn the_programs_output_is_the_same() {
    let plain = {
        let dir = Dir::new();
        Run::new(&dir, program("hip_calls")).gpus(2).arg(aql_code_object("gfx900")).run()
    };
    let names =
        |ran: &Ran| ran.stdout.lines().map(|line| line.split('|').next().unwrap().to_string()).collect();
    let dir = Dir::new();
    let (ran, _) = recorded(&dir, &[]);
    // Addresses differ from run to run.
    let (plain, ran): (Vec<String>, Vec<String>) = (names(&plain), names(&ran));
    assert_eq!(plain, ran);
}

#[test]
fn rows_of_launches_and_copies() {
    let dir = Dir::new();
    let (_, trace) = recorded(&dir, &[]);
    let launches = trace.texts(
        "select apiName || ' ' || gridX || ',' || gridY || ' ' || workgroupX || ' ' || N.string from rocpd_kernelapi \
         join api on api.id = api_ptr_id join rocpd_string N on N.id = kernelName_id order by api.id",
    );
    let add = "add(unsigned int*, unsigned int)";
    assert_eq!(
        launches,
        [
            format!("hipLaunchKernel 3,2 64 {add}"),
            format!("hipExtLaunchKernel 2,1 32 {add}"),
            "hipModuleLaunchKernel 5,1 64 aql_count".to_string(),
            format!("hipLaunchKernel 7,1 64 {add}"),
        ],
        "the last one was captured"
    );
    let copies = trace.texts(
        "select apiName || ' ' || size || ' ' || width || 'x' || height || ' ' || kind || ' ' || srcDevice || '>' || dstDevice \
         || ' ' || sync || pinned from copy order by id",
    );
    assert_eq!(
        copies,
        [
            "hipMemcpy 4096 0x0 1 -1>0 10",
            "hipMemcpyAsync 4096 0x0 3 0>0 00",
            "hipMemcpyWithStream 4096 0x0 2 0>-1 10",
            "hipMemcpyHtoD 1024 0x0 1 -1>0 10",
            "hipMemcpyDtoD 1024 0x0 3 0>0 10",
            "hipMemcpyDtoH 1024 0x0 2 0>-1 10",
            "hipMemcpy2D 512 64x8 1 -1>0 10",
            "hipMemcpyToSymbol 64 0x0 1 -1>0 10",
            "hipMemcpyFromSymbol 64 0x0 2 0>-1 10",
            "hipMemcpy 4 0x0 2 0>-1 10",
            "hipMemcpy 4 0x0 2 0>-1 10",
            "hipMemcpyPeer 4096 0x0 3 0>1 10",
        ]
    );
}

#[test]
fn rows_of_rare_launches_and_copies() {
    for loading in Loading::BOTH {
        let dir = Dir::new();
        let (_, trace) = recorded_by(&dir, "hip_rare", loading, &[]);
        let launches = trace.texts(
            "select apiName || ' ' || gridX || ' ' || workgroupX || ' ' || N.string || ' ' || \
             (select count(*) from rocpd_api_ops where api_id = api.id) from rocpd_kernelapi \
             join api on api.id = api_ptr_id join rocpd_string N on N.id = kernelName_id order by api.id",
        );
        assert_eq!(
            launches,
            [
                "hipExtModuleLaunchKernel 3 64 aql_count 1",
                "hipHccModuleLaunchKernel 5 64 aql_count 1",
                "hipLaunchCooperativeKernel 7 64 add(unsigned int*, unsigned int) 0",
            ],
            "{loading:?}: the last one failed"
        );
        let several = "select apiName || ' ' || count(op_id) from api left join rocpd_api_ops on api_id = api.id \
             where apiName like '%MultiDevice' group by apiName order by apiName";
        let expected = ["hipExtLaunchMultiKernelMultiDevice 1", "hipLaunchCooperativeKernelMultiDevice 0"];
        assert_eq!(trace.texts(several), expected, "{loading:?}");
        let copies = trace.texts(
            "select apiName || ' ' || size || ' ' || width || 'x' || height || ' ' || kind || ' ' || srcDevice || '>' || dstDevice \
             || ' ' || sync || ' ' || (select count(*) from rocpd_api_ops where api_id = copy.id) from copy \
             where apiName like '%Array%' or apiName like '%to_' order by id",
        );
        let copies: Vec<&str> = copies.iter().map(String::as_str).filter(is_described).collect();
        assert_eq!(
            copies,
            [
                "hipMemcpy2DToArray 256 64x4 1 -1>0 1 1",
                "hipMemcpy2DFromArray 256 64x4 2 0>-1 1 1",
                "hipMemcpyToArray 64 0x0 1 -1>0 1 1",
                "hipMemcpyHtoA 64 0x0 1 -1>0 1 1",
                "hipMemcpyAtoH 64 0x0 2 0>-1 1 1",
                "hipMemcpy2DToArrayAsync 256 64x4 1 -1>0 0 1",
                "hipMemcpy2DFromArrayAsync 256 64x4 2 0>-1 0 1",
            ],
            "{loading:?}"
        );
    }
}

#[test]
fn functions_left_out_and_asked_for() {
    let dir = Dir::new();
    let (ran, trace) = recorded(&dir, &[("RPDT_HIP_APIS", "+hipSetDevice,-hipMalloc,-hipLaunchKernel")]);
    assert_eq!(ran.stderr, "");
    let count = |name: &str| trace.number(&format!("select count(*) from api where apiName = '{name}'"));
    assert_eq!(["hipSetDevice", "hipMalloc", "hipFree", "hipGetDevice"].map(count), [2, 0, 11, 0]);
    assert_eq!(count("hsaDispatch"), 1, "the kernel of the function left out, without its name");
    assert_eq!(
        trace.number("select count(*) from rocpd_op"),
        trace.number("select count(*) from rocpd_api_ops")
    );
    let dir = Dir::new();
    let (_, trace) = recorded(&dir, &[("RPDT_HIP_APIS", "none")]);
    assert_eq!(trace.number("select count(*) from api where apiName like 'hip%'"), 0);
    assert!(trace.number("select count(*) from rocpd_op") > 10);
}

#[test]
fn a_wrong_name_is_one_line() {
    let dir = Dir::new();
    let (ran, trace) = recorded(&dir, &[("RPDT_HIP_APIS", "+hipMaloc")]);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains("RPDT_HIP_APIS: +hipMaloc (did you mean +hipMalloc?) ignored"), "{ran}");
    assert!(trace.number("select count(*) from api where apiName = 'hipMalloc'") > 0);
}
