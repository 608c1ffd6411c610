//! `gpu_metrics`: a table of all sensors of one moment, as the driver amdgpu gives it. Layouts: struct gpu_metrics_v1_0 to v1_8 of Linux'
//! kgd_pp_interface.h; little endian. A number whose bits are all set is not there. v1_9 describes itself: it is a list of entries, each
//! with a code that says what its values are (AMDGPU_METRICS_ENC_ATTR), one behind the other without padding.

use std::fmt;

/// What of it is used. None: the device has no such sensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GpuMetrics {
    /// W.
    pub(super) power: Option<u64>,
    /// Units of 2^-16 J since the driver was loaded.
    pub(super) energy: Option<u64>,
    /// Degrees Celsius.
    pub(super) temp_hotspot: Option<u64>,
    /// Degrees Celsius.
    pub(super) temp_mem: Option<u64>,
    /// %.
    pub(super) gfx_activity: Option<u64>,
    /// %.
    pub(super) mem_activity: Option<u64>,
    /// MHz; of several dies the first.
    pub(super) gfx_clock: Option<u64>,
    /// MHz.
    pub(super) mem_clock: Option<u64>,
    /// When the driver made the table, ns of CLOCK_BOOTTIME.
    pub(super) made: Option<u64>,
    /// When the firmware sampled what is in it, in units of its own.
    pub(super) sampled: Option<u64>,
}

/// Why a file is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// So many bytes, where its layout has so many.
    Short(usize, usize),
    /// Format and content revision.
    Unknown(u8, u8),
    /// The entry of that place, from 0, has values of a type that is not known: where the next one begins is not known either.
    Type(u32),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Short(bytes, least) => write!(f, "it has {bytes} of at least {least} bytes"),
            Refused::Unknown(format, content) => write!(f, "layout v{format}_{content} is not known"),
            Refused::Type(place) => {
                write!(f, "the values of its entry {place} are of a type that is not known")
            }
        }
    }
}

/// A number of so many bytes at a place.
#[derive(Clone, Copy)]
struct Field(usize, usize);

struct Layout {
    size: usize,
    power: Field,
    energy: Field,
    hotspot: Field,
    mem: Field,
    gfx: Field,
    umc: Field,
    gfx_clock: Field,
    mem_clock: Field,
    made: Field,
    /// The first layouts have none.
    sampled: Option<Field>,
}

/// The layout of that content revision of format 1.
fn layout(content: u8) -> Option<Layout> {
    let half = |place| Field(place, 2);
    let long = |place| Field(place, 8);
    let layout =
        |size, energy: Field, [hotspot, mem, power, gfx, umc, gfx_clock, mem_clock]: [usize; 7]| Layout {
            size,
            made: long(if content == 0 { 8 } else { energy.0 + 8 }),
            sampled: match content {
                0 | 1 => None,
                2 | 3 => Some(long(96)),
                _ => Some(long(gfx_clock - 8)),
            },
            energy,
            power: half(power),
            hotspot: half(hotspot),
            mem: half(mem),
            gfx: half(gfx),
            umc: half(umc),
            gfx_clock: half(gfx_clock),
            mem_clock: half(mem_clock),
        };
    Some(match content {
        0 => layout(80, Field(36, 4), [18, 20, 34, 28, 30, 54, 58]),
        1 => layout(96, Field(24, 8), [6, 8, 22, 16, 18, 54, 58]),
        2 => layout(104, Field(24, 8), [6, 8, 22, 16, 18, 54, 58]),
        3 => layout(120, Field(24, 8), [6, 8, 22, 16, 18, 54, 58]),
        4 => layout(288, Field(24, 8), [4, 6, 10, 12, 14, 240, 280]),
        5 => layout(360, Field(88, 8), [4, 6, 10, 12, 14, 312, 352]),
        6 => layout(1664, Field(16, 8), [4, 6, 10, 12, 14, 264, 304]),
        7 => layout(2208, Field(24, 8), [4, 6, 10, 12, 14, 296, 336]),
        8 => layout(3360, Field(24, 8), [4, 6, 10, 12, 14, 296, 336]),
        _ => return None,
    })
}

/// What an entry of v1_9 says of its values: instances (bits 0 to 9), attribute (10 to 19), type (20 to 23), unit (24 to 31).
#[derive(Clone, Copy)]
struct Code(u64);

/// enum amdgpu_metrics_attr_unit.
const NO_UNIT: u64 = 0;
const MEGAHERTZ: u64 = 1;
const CELSIUS: u64 = 2;
const WATTS: u64 = 3;
const PERCENT: u64 = 10;

impl Code {
    /// Bytes of the code itself.
    const SIZE: usize = 8;

    /// How many values there are: one for each die, for example.
    fn instances(self) -> usize {
        (self.0 & 0x3ff) as usize
    }

    /// Unit and attribute (enum amdgpu_metrics_attr_id).
    fn sensor(self) -> (u64, u64) {
        (self.0 >> 24 & 0xff, self.0 >> 10 & 0x3ff)
    }

    /// Bytes of a value, and whether it has a sign (enum amdgpu_metrics_attr_type).
    fn of_value(self) -> Option<(usize, bool)> {
        let kind = self.0 >> 20 & 0xf;
        (kind < 8).then_some((1 << (kind / 2), kind % 2 == 1))
    }
}

/// A number of up to 8 bytes.
fn whole(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The same where it may not be there.
fn number(bytes: &[u8]) -> Option<u64> {
    bytes.iter().any(|byte| *byte != 0xff).then(|| whole(bytes))
}

impl GpuMetrics {
    /// From the bytes of the file.
    pub(super) fn parse(bytes: &[u8]) -> Result<GpuMetrics, Refused> {
        let &[low, high, format, content, ..] = bytes else { return Err(Refused::Short(bytes.len(), 4)) };
        // The table says how long it is itself; of a longer one, which a later driver may have, the start is the same.
        let bytes = &bytes[..bytes.len().min(usize::from(u16::from_le_bytes([low, high])))];
        if (format, content) == (1, 9) {
            return GpuMetrics::of_entries(bytes);
        }
        let layout = layout(content).filter(|_| format == 1).ok_or(Refused::Unknown(format, content))?;
        if bytes.len() < layout.size {
            return Err(Refused::Short(bytes.len(), layout.size));
        }
        let number = |Field(place, size): Field| number(&bytes[place..place + size]);
        Ok(GpuMetrics {
            power: number(layout.power),
            // The second die of a package has none of its own.
            energy: number(layout.energy).filter(|energy| *energy != 0),
            temp_hotspot: number(layout.hotspot),
            temp_mem: number(layout.mem),
            gfx_activity: number(layout.gfx),
            mem_activity: number(layout.umc),
            gfx_clock: number(layout.gfx_clock),
            mem_clock: number(layout.mem_clock),
            made: number(layout.made),
            sampled: layout.sampled.and_then(number),
        })
    }

    /// Whether both have the values of one moment. A clock that stands still says nothing where the values differ.
    pub(super) fn is_same_sample(&self, other: &GpuMetrics) -> bool {
        let is_same_moment =
            self.made == other.made || self.sampled.is_some() && self.sampled == other.sampled;
        is_same_moment && *self == GpuMetrics { made: self.made, sampled: self.sampled, ..*other }
    }

    /// From a table that describes itself.
    fn of_entries(bytes: &[u8]) -> Result<GpuMetrics, Refused> {
        let part = |from: usize, size: usize| {
            let end = from.saturating_add(size);
            bytes.get(from..end).ok_or(Refused::Short(bytes.len(), end))
        };
        let count = whole(part(4, 4)?) as u32;
        let mut metrics = GpuMetrics::default();
        let mut next = 8;
        for place in 0..count {
            let code = Code(whole(part(next, Code::SIZE)?));
            let (size, is_signed) = code.of_value().ok_or(Refused::Type(place))?;
            let values = part(next + Code::SIZE, size * code.instances())?;
            next += Code::SIZE + values.len();
            // Of a negative number nothing can be made: no sensor here has a sign.
            let is_negative = |value: &&[u8]| is_signed && value[size - 1] >= 0x80;
            let first = values.get(..size).filter(|value| !is_negative(value)).and_then(number);
            // A value in another unit is not the one that is meant.
            match code.sensor() {
                (CELSIUS, 0) => metrics.temp_hotspot = first,
                (CELSIUS, 1) => metrics.temp_mem = first,
                (WATTS, 3) => metrics.power = first,
                (PERCENT, 4) => metrics.gfx_activity = first,
                (PERCENT, 5) => metrics.mem_activity = first,
                (NO_UNIT, 7) => metrics.energy = first.filter(|energy| *energy != 0),
                (NO_UNIT, 8) => metrics.made = first,
                (NO_UNIT, 32) => metrics.sampled = first,
                (MEGAHERTZ, 33) => metrics.gfx_clock = first,
                (MEGAHERTZ, 37) => metrics.mem_clock = first,
                _ => {}
            }
        }
        Ok(metrics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of that revision in which nothing is there but what is put.
    fn table(content: u8, size: u16, put: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0xff; usize::from(size)];
        bytes[..2].copy_from_slice(&size.to_le_bytes());
        bytes[2..4].copy_from_slice(&[1, content]);
        for (place, value) in put {
            bytes[*place..place + value.len()].copy_from_slice(value);
        }
        bytes
    }

    /// Places: energy and its bytes; hotspot, memory's temperature, power, graphics and memory load, clocks.
    type Places = (u8, u16, usize, usize, [usize; 7]);

    const PLACES: [Places; 9] = [
        (0, 80, 36, 4, [18, 20, 34, 28, 30, 54, 58]),
        (1, 96, 24, 8, [6, 8, 22, 16, 18, 54, 58]),
        (2, 104, 24, 8, [6, 8, 22, 16, 18, 54, 58]),
        (3, 120, 24, 8, [6, 8, 22, 16, 18, 54, 58]),
        (4, 288, 24, 8, [4, 6, 10, 12, 14, 240, 280]),
        (5, 360, 88, 8, [4, 6, 10, 12, 14, 312, 352]),
        // Those that were merged: a draft of v1_6 had the loads of the video engines in front of the energy, and was withdrawn.
        (6, 1664, 16, 8, [4, 6, 10, 12, 14, 264, 304]),
        (7, 2208, 24, 8, [4, 6, 10, 12, 14, 296, 336]),
        (8, 3360, 24, 8, [4, 6, 10, 12, 14, 296, 336]),
    ];

    #[test]
    fn every_layout_by_its_places() {
        for (content, size, energy_at, energy_bytes, places) in PLACES {
            let energy = 0x0102_0304_0506_0708_u64.to_le_bytes();
            let values: Vec<[u8; 2]> = (0..7).map(|place| (1000_u16 + place).to_le_bytes()).collect();
            let mut put: Vec<(usize, &[u8])> = vec![(energy_at, &energy[..energy_bytes])];
            put.extend(places.iter().zip(&values).map(|(place, value)| (*place, &value[..])));
            // That of v1_0 is in front; the firmware's is in front of the clocks of the dies.
            let made_at = if content == 0 { 8 } else { energy_at + 8 };
            put.push((made_at, &[1, 2, 0, 0, 0, 0, 0, 0]));
            let sampled_at =
                [None, None, Some(96), Some(96), Some(232), Some(304), Some(256), Some(288), Some(288)];
            let sampled_at = sampled_at[usize::from(content)];
            put.extend(sampled_at.map(|place| (place, &[3, 0, 0, 0, 0, 0, 0, 1][..])));
            let bytes = table(content, size, &put);
            let some = |number: u64| Some(1000 + number);
            let expected = GpuMetrics {
                energy: Some(if energy_bytes == 4 { 0x0506_0708 } else { 0x0102_0304_0506_0708 }),
                temp_hotspot: some(0),
                temp_mem: some(1),
                power: some(2),
                gfx_activity: some(3),
                mem_activity: some(4),
                gfx_clock: some(5),
                mem_clock: some(6),
                made: Some(0x0201),
                sampled: sampled_at.map(|_| 3 | 1 << 56),
            };
            assert_eq!(GpuMetrics::parse(&bytes), Ok(expected), "v1_{content}");
            // One that says it is longer than it is, one that is cut, and one that a later driver has made longer.
            assert_eq!(
                GpuMetrics::parse(&bytes[..bytes.len() - 1]),
                Err(Refused::Short(bytes.len() - 1, bytes.len()))
            );
            let longer = [&table(content, size + 8, &put)[..], &[0; 64]].concat();
            assert_eq!(GpuMetrics::parse(&longer), Ok(expected));
            let short = table(content, size, &[(0, &[8, 0])]);
            assert_eq!(GpuMetrics::parse(&short), Err(Refused::Short(8, usize::from(size))));
        }
    }

    /// AMD's own reader is asked elsewhere: see the README beside the files.
    #[test]
    fn what_rocm_smi_reads() {
        let of = |bytes: &[u8]| {
            let metrics = GpuMetrics::parse(bytes).unwrap();
            [metrics.power, metrics.gfx_activity, metrics.gfx_clock, metrics.energy].map(Option::unwrap)
        };
        let v1_3 = include_bytes!("../../../../fixtures/gpu_metrics/v1_3.bin");
        let v1_4 = include_bytes!("../../../../fixtures/gpu_metrics/v1_4.bin");
        assert_eq!(of(v1_3), [236, 37, 800, 1_000_000]);
        assert_eq!(of(v1_4), [717, 99, 2100, 1 << 40]);
    }

    /// Attributes of one unit and type: their numbers, and how many values each has.
    type Group = (u64, u64, &'static [(u64, usize)]);

    /// What the driver has of an MI300 (SMU 13.0.6); units of those that are read.
    const MI300: [Group; 11] = [
        (CELSIUS, U16, &[(0, 1), (1, 1)]),
        (WATTS, U16, &[(3, 1)]),
        (PERCENT, U16, &[(4, 1), (5, 1)]),
        (NO_UNIT, U16, &[(2, 1), (16, 1), (17, 1), (18, 1), (19, 1), (31, 8)]),
        (NO_UNIT, U64, &[(6, 1), (7, 1), (8, 1)]),
        (NO_UNIT, U32, &[(9, 1), (10, 1), (11, 1), (12, 1), (13, 1), (14, 1), (15, 1), (20, 1), (21, 1)]),
        (NO_UNIT, U64, &[(22, 1), (23, 1), (24, 1), (25, 1), (26, 1), (29, 8), (30, 8), (32, 1)]),
        (NO_UNIT, U32, &[(27, 1), (28, 1), (39, 1), (40, 8)]),
        (MEGAHERTZ, U16, &[(33, 8), (34, 4), (35, 4), (36, 4), (37, 1)]),
        (NO_UNIT, U16, &[(41, 40), (42, 4)]),
        (NO_UNIT, U64, &[(43, 8), (44, 8), (45, 8), (46, 8), (47, 8)]),
    ];
    const U16: u64 = 2;
    const S16: u64 = 3;
    const U32: u64 = 4;
    const U64: u64 = 6;

    fn code(unit: u64, kind: u64, id: u64, instances: usize) -> u64 {
        unit << 24 | kind << 20 | id << 10 | instances as u64
    }

    /// A table of these entries: code, and the bytes of the values.
    fn entries(entries: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 1, 9];
        bytes.extend((entries.len() as u32).to_le_bytes());
        entries.iter().for_each(|(code, values)| {
            bytes.extend(code.to_le_bytes());
            bytes.extend(values);
        });
        let size = bytes.len() as u16;
        bytes[..2].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    /// That of an MI300; each value is what `value` says of its attribute and its place there.
    fn mi300(value: impl Fn(u64, usize) -> u64) -> Vec<u8> {
        let mut all = Vec::new();
        for (unit, kind, attributes) in MI300 {
            for (id, instances) in attributes {
                let of = |place| value(*id, place).to_le_bytes()[..1 << (kind / 2)].to_vec();
                all.push((code(unit, kind, *id, *instances), (0..*instances).flat_map(of).collect()));
            }
        }
        entries(&all)
    }

    #[test]
    fn a_table_that_describes_itself_is_read_by_its_codes() {
        let bytes = mi300(|id, place| 1000 + 10 * id + place as u64);
        // As many as such a file has.
        assert_eq!((bytes.len(), bytes[4]), (1150, 47));
        let expected = GpuMetrics {
            temp_hotspot: Some(1000),
            temp_mem: Some(1010),
            power: Some(1030),
            gfx_activity: Some(1040),
            mem_activity: Some(1050),
            energy: Some(1070),
            gfx_clock: Some(1330),
            mem_clock: Some(1370),
            made: Some(1080),
            sampled: Some(1320),
        };
        assert_eq!(GpuMetrics::parse(&bytes), Ok(expected));
        assert_eq!(GpuMetrics::parse(&[&bytes[..], &[0; 64]].concat()), Ok(expected));
        for cut in 4..bytes.len() {
            let refused = GpuMetrics::parse(&bytes[..cut]);
            assert!(matches!(refused, Err(Refused::Short(has, least)) if has == cut && least > cut), "{cut}");
        }
        assert_eq!(GpuMetrics::parse(&mi300(|_, _| u64::MAX)), Ok(GpuMetrics::default()));
    }

    #[test]
    fn entries_that_are_not_known_are_passed_over() {
        let power = (code(WATTS, U16, 3, 1), vec![5, 0]);
        let read = |others: &[(u64, Vec<u8>)]| {
            let table = entries(&[others, std::slice::from_ref(&power)].concat());
            GpuMetrics::parse(&table).map(|metrics| (metrics.power, metrics.temp_hotspot, metrics.gfx_clock))
        };
        // Another attribute; none of its values; another unit; another width; a sign.
        for (others, hotspot) in [
            ((code(NO_UNIT, U64, 1023, 3), vec![7; 24]), None),
            ((code(MEGAHERTZ, U16, 33, 0), vec![]), None),
            ((code(WATTS, U16, 0, 1), vec![9, 0]), None),
            ((code(CELSIUS, U32, 0, 1), vec![9, 1, 0, 0]), Some(265)),
            ((code(CELSIUS, S16, 0, 1), vec![9, 0]), Some(9)),
            ((code(CELSIUS, S16, 0, 1), vec![0xf6, 0xff]), None),
        ] {
            assert_eq!(read(&[others]), Ok((Some(5), hotspot, None)));
        }
        assert_eq!(read(&[(code(NO_UNIT, 8, 3, 1), vec![])]), Err(Refused::Type(0)));
        let mut many = entries(std::slice::from_ref(&power));
        many[4..8].copy_from_slice(&[0xff; 4]);
        assert_eq!(GpuMetrics::parse(&many), Err(Refused::Short(18, 26)));
    }

    #[test]
    fn what_is_not_there_is_nothing() {
        assert_eq!(GpuMetrics::parse(&table(3, 120, &[])), Ok(GpuMetrics::default()));
        let second_die = table(3, 120, &[(24, &[0; 8]), (22, &[0; 2])]);
        let metrics = GpuMetrics::parse(&second_die).unwrap();
        assert_eq!((metrics.energy, metrics.power), (None, Some(0)));
    }

    #[test]
    fn anything_else_is_refused() {
        for (bytes, refused) in [
            (&[][..], Refused::Short(0, 4)),
            (&[120, 0, 1][..], Refused::Short(3, 4)),
            (&[120, 0, 2, 3, 0][..], Refused::Unknown(2, 3)),
            (&[120, 0, 1, 10, 0][..], Refused::Unknown(1, 10)),
            (&[120, 0, 1, 9, 0][..], Refused::Short(5, 8)),
            (&[0xff; 4096][..], Refused::Unknown(255, 255)),
        ] {
            assert_eq!(GpuMetrics::parse(bytes), Err(refused));
        }
    }

    /// Bytes of any kind never make it panic.
    #[test]
    fn noise_is_refused_or_read() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..200_000 {
            let length = (random() % 4096) as usize;
            let mut bytes: Vec<u8> = (0..length).map(|_| random() as u8).collect();
            if let [_, high, format, content, ..] = &mut bytes[..] {
                (*high, *format, *content) = (*high % 16, 1, *content % 10);
            }
            let _ = GpuMetrics::parse(&bytes);
        }
    }
}
