//! The rank of this process in its job, as the launcher says in the environment.

/// Environment variables that name the rank of a process in its job. The first that is set counts.
///
/// The variables of torchrun and of MPI are before those of Flux and Slurm, which place processes on hosts: in a batch script of Slurm, all
/// ranks that `mpirun` starts have the script's `SLURM_PROCID`. The rank on one host and the index of a pod come last.
pub const VARIABLES: [&str; 8] = [
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "FLUX_TASK_RANK",
    SLURM,
    "LOCAL_RANK",
    "JOB_COMPLETION_INDEX",
];

/// Of a process that srun started this is the rank. A batch script has it as well, and is no rank: it is not in a step.
const SLURM: &str = "SLURM_PROCID";
const SLURM_STEP: &str = "SLURM_STEP_ID";

/// Those of launchers below which programs have launchers of their own, such as torchrun.
const PLACES: [&str; 3] = ["FLUX_TASK_RANK", SLURM, "JOB_COMPLETION_INDEX"];
/// Those of launchers that start the ranks themselves, and that no launcher of places sets.
const PROGRAMS: [&str; 2] = ["RANK", "OMPI_COMM_WORLD_RANK"];

/// The rank of this process: `%r`.
#[must_use]
pub fn rank() -> Option<String> {
    first(variable)
}

/// Whether processes that this one starts may have ranks of their own: it has none, or the one of its place.
#[must_use]
pub fn may_change_below() -> bool {
    is_of_place(variable)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The first of [`VARIABLES`] that says a rank, by what `value` says of each; an empty one is none.
pub fn first<T: AsRef<str>>(value: impl Fn(&str) -> Option<T>) -> Option<T> {
    VARIABLES.iter().find_map(|name| of(name, &value))
}

fn of<T: AsRef<str>>(name: &str, value: &impl Fn(&str) -> Option<T>) -> Option<T> {
    let set = |name: &str| value(name).filter(|value| !value.as_ref().is_empty());
    set(name).filter(|_| name != SLURM || set(SLURM_STEP).is_some())
}

fn is_of_place<T: AsRef<str>>(value: impl Fn(&str) -> Option<T>) -> bool {
    // Slurm and Flux may set those of PMI too.
    let Some(rank) = first(&value) else { return true };
    PROGRAMS.iter().all(|name| of(name, &value).is_none())
        && PLACES.iter().any(|name| of(name, &value).is_some_and(|place| place.as_ref() == rank.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Set = &'static [(&'static str, &'static str)];

    fn value(set: Set) -> impl Fn(&str) -> Option<&'static str> {
        move |name| set.iter().find(|(set, _)| *set == name).map(|(_, value)| *value)
    }

    const STEP: (&str, &str) = ("SLURM_STEP_ID", "0");

    #[test]
    fn what_is_nearest_to_the_program_says_the_rank() {
        let cases: [(Set, Option<&str>, &str); 10] = [
            (&[], None, "no launcher"),
            (&[("SLURM_PROCID", "0")], None, "a batch script of Slurm"),
            (&[("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "3")], Some("3"), "mpirun in sbatch"),
            (&[("SLURM_PROCID", "0"), ("PMI_RANK", "2")], Some("2"), "mpiexec of MPICH in sbatch"),
            (&[("SLURM_PROCID", "5"), STEP, ("LOCAL_RANK", "1")], Some("5"), "srun"),
            (
                &[("SLURM_PROCID", "1"), STEP, ("RANK", "9"), ("LOCAL_RANK", "1")],
                Some("9"),
                "torchrun in srun",
            ),
            (&[("RANK", ""), ("SLURM_PROCID", "4"), STEP], Some("4"), "an empty variable is not set"),
            (&[("SLURM_PROCID", "1"), STEP, ("FLUX_TASK_RANK", "6")], Some("6"), "flux run in srun"),
            (&[("JOB_COMPLETION_INDEX", "2")], Some("2"), "a pod of an indexed job"),
            (&[("JOB_COMPLETION_INDEX", "2"), ("RANK", "17")], Some("17"), "torchrun in it"),
        ];
        for (set, expected, what) in cases {
            assert_eq!(first(value(set)), expected, "{what}");
        }
    }

    #[test]
    fn the_rank_of_a_place_is_not_that_of_what_starts_there() {
        let cases: [(Set, bool); 10] = [
            (&[], true),
            (&[("SLURM_PROCID", "1"), STEP], true),
            (&[("SLURM_PROCID", "1"), STEP, ("PMIX_RANK", "1")], true),
            (&[("SLURM_PROCID", "0"), STEP, ("PMI_RANK", "7")], false),
            (&[("SLURM_PROCID", "0"), ("PMI_RANK", "0")], false),
            (&[("FLUX_TASK_RANK", "1"), ("PMI_RANK", "1")], true),
            (&[("JOB_COMPLETION_INDEX", "1")], true),
            (&[("SLURM_PROCID", "1"), STEP, ("RANK", "1")], false),
            (&[("SLURM_PROCID", "1"), STEP, ("OMPI_COMM_WORLD_RANK", "1")], false),
            (&[("LOCAL_RANK", "1")], false),
        ];
        for (set, expected) in cases {
            assert_eq!(is_of_place(value(set)), expected, "{set:?}");
        }
    }
}
