//! The sensors: their names, units and what they can read at all.

/// See the module. In the order in which they are named where all are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    Power,
    Energy,
    Vram,
    VramProcess,
    Sclk,
    Mclk,
    TempEdge,
    TempHotspot,
    TempMem,
    GpuUtil,
    MemUtil,
}

use Metric::*;
use rpd_settings::sensor::AVAILABLE;

/// A reading in millionths of its unit. Energy in units of 2^-16 J and memory in bytes both fit.
pub(super) type Micro = i128;

/// Millionths of one.
pub(super) const ONE: Micro = 1_000_000;

impl Metric {
    const ALL: [Metric; 11] =
        [Power, Energy, Vram, VramProcess, Sclk, Mclk, TempEdge, TempHotspot, TempMem, GpuUtil, MemUtil];

    /// The names of all.
    pub(super) fn names() -> Vec<&'static str> {
        Metric::ALL.iter().map(|metric| metric.name()).collect()
    }

    /// As `rocpd_monitor.monitorType` has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Power => "power",
            Energy => "energy",
            Vram => "vram",
            VramProcess => "vram_process",
            Sclk => "sclk",
            Mclk => "mclk",
            TempEdge => "temp_edge",
            TempHotspot => "temp_hotspot",
            TempMem => "temp_mem",
            GpuUtil => "gpu_util",
            MemUtil => "mem_util",
        }
    }

    /// Unit of its values.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Power => "W",
            Energy => "J",
            Vram | VramProcess => "bytes",
            Sclk | Mclk => "MHz",
            TempEdge | TempHotspot | TempMem => "degrees Celsius",
            GpuUtil | MemUtil => "%",
        }
    }

    /// Whether a sensor can read that: drivers leave numbers that stand for nothing where hardware has no such sensor.
    pub(super) fn can_be(self, value: Micro) -> bool {
        let (least, most) = match self {
            Power => (0, 100_000),
            // An accumulator of 64 bits.
            Energy => (0, 1 << 48),
            Vram | VramProcess => (0, 1 << 50),
            Sclk | Mclk => (0, 100_000),
            TempEdge | TempHotspot | TempMem => (-273, 1000),
            GpuUtil | MemUtil => (0, 100),
        };
        (least * ONE..=most * ONE).contains(&value)
    }

    /// The sensors that `text` names, each once, and the words that name none.
    pub(super) fn list(text: &str) -> (Vec<Metric>, Vec<String>) {
        let (mut known, mut wrong) = (Vec::new(), Vec::new());
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let named: Vec<Metric> = match word {
                "all" | AVAILABLE => Metric::ALL.to_vec(),
                "none" => continue,
                // rocmProfileData's name.
                "vram_used" => vec![Vram],
                name => Metric::ALL.into_iter().filter(|metric| metric.name() == name).collect(),
            };
            if named.is_empty() {
                wrong.push(format!("{word:?}"));
            }
            for metric in named {
                if !known.contains(&metric) {
                    known.push(metric);
                }
            }
        }
        (known, wrong)
    }
}

/// The value in its unit, as short as it is exact to a millionth: `237`, `71.23`, `-0.5`.
pub(super) fn shown(value: Micro) -> String {
    let (whole, part) =
        (value.unsigned_abs() / ONE.unsigned_abs(), value.unsigned_abs() % ONE.unsigned_abs());
    let sign = if value < 0 { "-" } else { "" };
    let text = format!("{sign}{whole}.{part:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_short_and_exact() {
        for (micro, text) in [
            (0, "0"),
            (237_000_000, "237"),
            (71_230_000, "71.23"),
            (-500_000, "-0.5"),
            (1, "0.000001"),
            (100_000_000, "100"),
            (10_240_000_000 * ONE, "10240000000"),
        ] {
            assert_eq!(shown(micro), text);
        }
    }

    #[test]
    fn names_are_known_once() {
        let (known, wrong) = Metric::list("sclk,,sclk , vram_used,vram,x\u{202e}y,none");
        assert_eq!(known, [Sclk, Vram]);
        assert_eq!(wrong, ["\"x\\u{202e}y\""]);
        assert_eq!(Metric::list("power,all").0.len(), Metric::ALL.len());
        assert!(Metric::names().iter().all(|name| name.len() <= 16), "the column is varchar(16)");
        assert_eq!(Metric::names(), rpd_settings::sensor::NAMES);
    }

    #[test]
    fn what_cannot_be_is_known() {
        assert!(
            Power.can_be(0)
                && Power.can_be(1400 * ONE)
                && !Power.can_be(-1)
                && !Power.can_be(4294 * 1000 * ONE)
        );
        assert!(GpuUtil.can_be(100 * ONE) && !GpuUtil.can_be(100 * ONE + 1));
        assert!(TempMem.can_be(-40 * ONE) && !TempMem.can_be(65535 * ONE));
    }
}
