//! Whether operations ran for long enough to have joules: for a step of the sensor of the GPU that they ran on. What ran on several GPUs
//! counts the time on each in steps of that GPU's sensor.

use std::collections::BTreeMap;

use super::GpuEnergy;

/// How long operations ran on each GPU while its sensor was read, ns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::report) struct SampledTime(Vec<(i64, f64)>);

impl SampledTime {
    /// Operations ran for so long on that GPU.
    pub(in crate::report) fn add(&mut self, gpu: i64, ns: f64) {
        if ns > 0.0 {
            match self.0.iter_mut().find(|(of, _)| *of == gpu) {
                Some((_, all)) => *all += ns,
                None => self.0.push((gpu, ns)),
            }
        }
    }

    /// Adds the time of others.
    pub(super) fn add_all(&mut self, other: &SampledTime) {
        other.0.iter().for_each(|(gpu, ns)| self.add(*gpu, *ns));
    }

    pub(in crate::report) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How long a step of the sensor of each GPU is, ns.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct StepLengths(BTreeMap<i64, u64>);

impl StepLengths {
    /// Those of these GPUs.
    pub(super) fn of(gpus: &[GpuEnergy]) -> StepLengths {
        StepLengths(gpus.iter().map(|gpu| (gpu.gpu, gpu.step_ns.max(1))).collect())
    }

    /// Why operations that ran for so long have no joules, where they have none.
    pub(in crate::report) fn refusal(&self, ran: &SampledTime) -> Option<String> {
        let mut ran: Vec<(i64, u64, u64)> = ran
            .0
            .iter()
            .map(|(gpu, ns)| (*gpu, ns.round() as u64, self.0.get(gpu).copied().unwrap_or(1)))
            .collect();
        ran.sort_unstable();
        // Exact where all sensors have the same step.
        let mut by_step: BTreeMap<u64, u64> = BTreeMap::new();
        ran.iter().for_each(|(_, ns, step)| *by_step.entry(*step).or_default() += ns);
        let steps: f64 = by_step.iter().map(|(step, ns)| *ns as f64 / *step as f64).sum();
        // A sum of thirds of a step is a step.
        if steps >= 1.0 - 1e-9 {
            return None;
        }
        let ms = |ns: u64| format!("{:.3} ms", ns as f64 / 1e6);
        let is_one_step = self.0.values().all(|step| Some(step) == self.0.values().next());
        Some(match (ran.as_slice(), by_step.first_key_value()) {
            (_, Some((step, ns))) if is_one_step => {
                format!("it ran for {}, which is less than a step of the sensor ({})", ms(*ns), ms(*step))
            }
            ([(gpu, ns, step)], _) => {
                let (ns, step) = (ms(*ns), ms(*step));
                format!("it ran for {ns}, which is less than a step of the sensor of GPU {gpu} ({step})")
            }
            _ => {
                let times: Vec<String> = ran
                    .iter()
                    .map(|(gpu, ns, step)| format!("{} on GPU {gpu} (a step: {})", ms(*ns), ms(*step)))
                    .collect();
                format!("it ran for {}, which is less than a step in all", times.join(" and "))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;

    fn refusal(steps: &[(i64, u64)], ran: &[(i64, f64)]) -> Option<String> {
        let mut time = SampledTime::default();
        ran.iter().for_each(|(gpu, ns)| time.add(*gpu, *ns));
        StepLengths(steps.iter().map(|(gpu, ms)| (*gpu, ms * 1_000_000)).collect()).refusal(&time)
    }

    #[test]
    fn each_gpu_counts_in_steps_of_its_own_sensor() {
        let steps = [(0, 10), (1, 100)];
        assert_eq!(refusal(&steps, &[(0, 10.0 * MS)]), None);
        assert_eq!(refusal(&steps, &[(1, 100.0 * MS)]), None);
        assert_eq!(refusal(&steps, &[(0, 5.0 * MS), (1, 50.0 * MS)]), None, "half a step of each");
        let thirds = refusal(&[(0, 10), (1, 20), (2, 30)], &[(0, 7.0 * MS), (1, 4.0 * MS), (2, 3.0 * MS)]);
        assert_eq!(thirds, None, "7/10 + 2/10 + 1/10");
        assert_eq!(
            refusal(&steps, &[(1, 99.0 * MS)]).as_deref(),
            Some("it ran for 99.000 ms, which is less than a step of the sensor of GPU 1 (100.000 ms)")
        );
        assert_eq!(
            refusal(&steps, &[(1, 40.0 * MS), (0, 5.0 * MS)]).as_deref(),
            Some(
                "it ran for 5.000 ms on GPU 0 (a step: 10.000 ms) and 40.000 ms on GPU 1 (a step: 100.000 ms), which is less than a step in all"
            )
        );
    }

    #[test]
    fn sensors_of_one_pace_are_as_one() {
        let steps = [(0, 10), (1, 10), (2, 10)];
        let thirds = [(0, 1.0 * MS), (1, 2.0 * MS), (2, 7.0 * MS)];
        assert_eq!(refusal(&steps, &thirds), None, "a step to the nanosecond");
        assert_eq!(
            refusal(&steps, &thirds[..2]).as_deref(),
            Some("it ran for 3.000 ms, which is less than a step of the sensor (10.000 ms)")
        );
    }
}
