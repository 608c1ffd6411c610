//! That the comparison of file and log bites: a trace that differs in one thing is found to differ.

use crate::harness::{Dir, Expected, Loading, Op, Run, program};

/// One way to falsify a trace: what it is called, what it does.
type Damage = (&'static str, fn(&mut Vec<Op>));

/// Two neighbours of one application queue.
fn neighbours(ops: &[Op]) -> (usize, usize) {
    let at = ops.windows(2).position(|w| w[0].queue > 0 && (w[0].gpu, w[0].queue) == (w[1].gpu, w[1].queue));
    (at.unwrap(), at.unwrap() + 1)
}

fn kernel(ops: &mut [Op]) -> &mut Op {
    ops.iter_mut().rfind(|op| op.op_type == "KernelExecution").unwrap()
}

fn copy(ops: &mut [Op]) -> &mut Op {
    ops.iter_mut().find(|op| op.queue == 0).unwrap()
}

fn double(ops: &mut Vec<Op>, which: impl Fn(&Op) -> bool) {
    let one = ops.iter().rfind(|op| which(op)).unwrap().clone();
    ops.push(one);
}

const DAMAGE: [Damage; 13] = [
    ("a kernel missing", |ops| drop(ops.remove(ops.iter().position(|op| op.queue > 0).unwrap()))),
    ("a copy missing", |ops| drop(ops.remove(ops.iter().position(|op| op.queue == 0).unwrap()))),
    ("a kernel invented", |ops| double(ops, |op| op.queue > 0)),
    ("a copy invented", |ops| double(ops, |op| op.queue == 0)),
    ("a queue missing", |ops| ops.retain(|op| op.queue != 1)),
    ("two kernels exchanged", |ops| {
        let (a, b) = neighbours(ops);
        ops.swap(a, b);
    }),
    ("another name", |ops| kernel(ops).description = "other()".into()),
    ("another type", |ops| kernel(ops).op_type = "Task".into()),
    ("another tick", |ops| kernel(ops).ticks.as_mut().unwrap().0 += 1),
    ("a start 2.1 us late", |ops| kernel(ops).start += 2100),
    ("an end 2.1 us early", |ops| kernel(ops).end -= 2100),
    ("a copy 2.1 us late", |ops| copy(ops).start += 2100),
    ("a copy on another GPU", |ops| copy(ops).gpu += 1),
];

#[test]
fn every_difference_is_found() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("graph")).recorded(Loading::Preload).env("RPDT_TICKS", "1");
    run.run().expect(0);
    let expected = Expected::of(&dir.logs()[0].1);
    let trace = dir.trace("trace.rpd");
    assert_eq!(expected.differences(&trace, &trace.ops()), Vec::<String>::new());
    for (what, damage) in DAMAGE {
        let mut ops = trace.ops();
        damage(&mut ops);
        assert_ne!(expected.differences(&trace, &ops), Vec::<String>::new(), "{what}");
    }
}
