use super::*;

const SMALL: Need =
    Need { vgprs: 8, sgprs: 16, lds: 0, workgroup: 256, wavefront_size: 64, workgroup_processor_mode: false };

fn of(processor: &str, need: Need) -> Occupancy {
    Occupancy::of(processor, &need).expect(processor)
}

#[test]
fn the_trap_handler_takes_scalar_registers_of_each_wave() {
    // The inverse of what LLVM allows for so many waves, 800 / waves - 16 in units of 16 (getMaxNumSGPRs): 64, 80, 96, 112.
    for (sgprs, waves) in [(1, 10), (64, 10), (65, 8), (80, 8), (81, 7), (96, 7), (97, 6), (102, 6), (112, 6)]
    {
        let occupancy = of("gfx906", Need { sgprs, ..SMALL });
        assert_eq!(occupancy.waves, waves, "{sgprs}");
        let limit = if waves == 10 { OccupancyLimit::Hardware } else { OccupancyLimit::Sgpr };
        assert_eq!(occupancy.limits(), [limit], "{sgprs}");
    }
    // 92 registers: a cooperative kernel on a real gfx942 had room for 28 workgroups of one wave for each SIMD, not for 32.
    assert_eq!(of("gfx942", Need { sgprs: 92, workgroup: 64, ..SMALL }).workgroups, 28);
    assert_eq!(of("gfx1030", Need { sgprs: 128, ..SMALL }).waves, 16);
}

#[test]
fn lds_is_allotted_in_units() {
    let groups = |processor, lds, mode| {
        let need = Need { lds, workgroup: 64, workgroup_processor_mode: mode, ..SMALL };
        of(processor, need).workgroups
    };
    // 13 times 5040 fits into 64 KB, 13 times 5120 does not; one byte more than a unit takes two.
    assert_eq!((groups("gfx900", 5040, false), groups("gfx900", 5120, false)), (12, 12));
    assert_eq!((groups("gfx900", 4608, false), groups("gfx900", 4609, false)), (14, 12));
    assert_eq!((groups("gfx1030", 4609, false), groups("gfx1010", 4609, false)), (12, 12));
    assert_eq!((groups("gfx1030", 4097, false), groups("gfx1010", 4097, false)), (12, 14));
    assert_eq!((groups("gfx1030", 5120, true), groups("gfx1030", 5120, false)), (25, 12));
    assert_eq!((groups("gfx950", 6400, false), groups("gfx950", 6401, false)), (25, 21));
    // A workgroup may have all of a CU's, also where it may use two CUs.
    assert_eq!((groups("gfx950", 160 << 10, false), groups("gfx950", (160 << 10) + 1, false)), (1, 0));
    assert_eq!((groups("gfx1100", 64 << 10, true), groups("gfx1100", (64 << 10) + 1, true)), (2, 0));
}

#[test]
fn whole_workgroups_only() {
    // 40 places for waves, of which workgroups of 1024 fill 32.
    let large = of("gfx906", Need { workgroup: 1024, ..SMALL });
    assert_eq!((large.waves, large.workgroups, large.limits()), (8, 2, vec![OccupancyLimit::Workgroup]));
    // Registers for 20 waves: five workgroups of four, one of sixteen, none of twenty-four.
    let registers = |workgroup| of("gfx906", Need { vgprs: 48, workgroup, ..SMALL });
    assert_eq!((registers(256).waves, registers(256).workgroups), (5, 5));
    assert_eq!((registers(1024).waves, registers(1024).workgroups), (5, 1));
    assert_eq!(of("gfx906", Need { vgprs: 256, workgroup: 1024, ..SMALL }).workgroups, 0);
    // Workgroups of one wave need no barrier; others find 16.
    assert_eq!(of("gfx90a", Need { workgroup: 64, ..SMALL }).workgroups, 32);
    assert_eq!(of("gfx90a", Need { workgroup: 65, ..SMALL }).workgroups, 16);
    let wave32 = Need { wavefront_size: 32, workgroup: 64, workgroup_processor_mode: true, ..SMALL };
    assert_eq!(of("gfx1100", wave32).workgroups, 32);
}

#[test]
fn limits_that_are_equal_are_all_named() {
    let need = Need { vgprs: 128, lds: 32 << 10, workgroup: 256, ..SMALL };
    let occupancy = of("gfx900", need);
    assert_eq!((occupancy.waves, occupancy.limits()), (2, vec![OccupancyLimit::Vgpr, OccupancyLimit::Lds]));
}

#[test]
fn what_is_not_known_has_no_answer() {
    assert_eq!(Occupancy::of("gfx803", &SMALL), None);
    assert_eq!(Occupancy::of("gfx900", &Need { wavefront_size: 32, ..SMALL }), None);
    assert_eq!(Occupancy::of("gfx1030", &Need { wavefront_size: 0, ..SMALL }), None);
}

#[test]
fn any_numbers_have_an_answer() {
    for vgprs in [0, 1, 512, 513, u32::MAX] {
        for (sgprs, lds, workgroup) in [(0, 0, 0), (u32::MAX, u32::MAX, u32::MAX), (1, 1, u32::MAX)] {
            for processor in ["gfx900", "gfx90a", "gfx950", "gfx1010", "gfx1100"] {
                let need = Need { vgprs, sgprs, lds, workgroup, ..SMALL };
                assert!(of(processor, need).waves <= 20);
            }
        }
    }
    assert_eq!(of("gfx900", Need { vgprs: 257, ..SMALL }).waves, 0);
}
