//! The rank of this process in its job, as the launcher says in the environment.

/// Environment variables that name the rank of a process in its job. The first that is set counts.
///
/// The variables of torchrun and of MPI are before Slurm's: in a batch script of Slurm, all ranks that `mpirun` starts have the script's
/// `SLURM_PROCID`. The rank on one host comes last.
pub const VARIABLES: [&str; 6] =
    ["RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK"];

/// The rank of this process: `%r`.
#[must_use]
pub fn rank() -> Option<String> {
    first(|name| std::env::var(name).ok())
}

/// The first of [`VARIABLES`] that has a value, by what `value` says of each; an empty one is none.
pub fn first<T: AsRef<str>>(value: impl Fn(&str) -> Option<T>) -> Option<T> {
    VARIABLES.iter().find_map(|name| value(name).filter(|value| !value.as_ref().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearest_to_the_program_says_the_rank() {
        let rank = |set: &'static [(&str, &str)]| {
            first(|name| set.iter().find(|(set, _)| *set == name).map(|(_, value)| *value))
        };
        assert_eq!(rank(&[]), None);
        assert_eq!(
            rank(&[("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "3")]),
            Some("3"),
            "mpirun in sbatch"
        );
        assert_eq!(
            rank(&[("SLURM_PROCID", "0"), ("PMI_RANK", "2")]),
            Some("2"),
            "mpiexec of MPICH in sbatch"
        );
        assert_eq!(rank(&[("SLURM_PROCID", "5"), ("LOCAL_RANK", "1")]), Some("5"), "srun");
        assert_eq!(
            rank(&[("SLURM_PROCID", "1"), ("RANK", "9"), ("LOCAL_RANK", "1")]),
            Some("9"),
            "torchrun in srun"
        );
        assert_eq!(rank(&[("RANK", ""), ("SLURM_PROCID", "4")]), Some("4"), "an empty variable is not set");
    }
}
