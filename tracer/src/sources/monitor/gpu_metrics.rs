//! `gpu_metrics`: a table of all sensors of one moment, as the driver amdgpu gives it. Layouts: struct gpu_metrics_v1_0 to v1_8 of Linux'
//! kgd_pp_interface.h; little endian. A number whose bits are all set is not there.

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
}

/// Why a file is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// So many bytes, where its layout has so many.
    Short(usize, usize),
    /// Format and content revision.
    Unknown(u8, u8),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Short(bytes, least) => write!(f, "it has {bytes} of at least {least} bytes"),
            Refused::Unknown(format, content) => write!(f, "layout v{format}_{content} is not known"),
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
}

/// The layout of that content revision of format 1.
fn layout(content: u8) -> Option<Layout> {
    let half = |place| Field(place, 2);
    let layout = |size, energy, [hotspot, mem, power, gfx, umc, gfx_clock, mem_clock]: [usize; 7]| Layout {
        size,
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

impl GpuMetrics {
    /// From the bytes of the file.
    pub(super) fn parse(bytes: &[u8]) -> Result<GpuMetrics, Refused> {
        let &[low, high, format, content, ..] = bytes else { return Err(Refused::Short(bytes.len(), 4)) };
        let layout = layout(content).filter(|_| format == 1).ok_or(Refused::Unknown(format, content))?;
        // The table says how long it is itself; of a longer one, which a later driver may have, the start is the same.
        let bytes = &bytes[..bytes.len().min(usize::from(u16::from_le_bytes([low, high])))];
        if bytes.len() < layout.size {
            return Err(Refused::Short(bytes.len(), layout.size));
        }
        let number = |Field(place, size): Field| {
            let bytes = &bytes[place..place + size];
            let is_there = bytes.iter().any(|byte| *byte != 0xff);
            is_there.then(|| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        };
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
        })
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
            (&[120, 0, 1, 9, 0][..], Refused::Unknown(1, 9)),
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
