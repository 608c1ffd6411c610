//! A program of libraries that nobody here wrote, as the distribution packs them: rocPRIM and rocRAND.

use crate::harness::{Dir, Expected, Loading, Run, program};

#[test]
fn kernels_of_rocprim_and_rocrand() {
    let (dir, without) = (Dir::new(), Dir::new());
    let run = |dir| Run::new(dir, program("primitives"));
    let plain = run(&without).run();
    assert_eq!(plain.expect(0).stdout, "random numbers, sum, partial sums and order are right\n");
    let ran = run(&dir).recorded(Loading::Preload).env("RPDT_TICKS", "1").run();
    assert_eq!(ran.expect(0).expect_silent().stdout, plain.stdout);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    let expected = Expected::of(&dir.logs()[0].1);
    expected.assert_equals(&trace);
    let named = |pattern: &str| {
        trace.number(&format!("select count(*) from kernel where kernelName like '{pattern}'"))
    };
    for (library, least) in [("%rocprim::%", 3), ("%rocrand%", 1)] {
        assert!(named(library) >= least, "{} of {library}", named(library));
    }
    assert_eq!(named("kernel object %"), 0, "every kernel has its name");
    assert_eq!(named("\\_Z%' escape '\\"), 0, "as people write it");
    let facts =
        "select count(*) from dispatch where codeObject_id not in (select id from rocpd_kernelcodeobject)";
    assert_eq!(trace.number(facts), 0, "and its registers");
}
