//! The job that this process belongs to, as the launcher says in the environment.

/// Environment variables that name the job a process belongs to: no two runs of the launcher have the same.
pub const VARIABLES: [&str; 7] = [
    "SLURM_JOB_ID",
    SLURM_STEP,
    "OMPI_MCA_ess_base_jobid",
    "PMIX_NAMESPACE",
    "PALS_APID",
    "FLUX_JOB_ID",
    "TORCHELASTIC_RUN_ID",
];
const SLURM_STEP: &str = "SLURM_STEP_ID";

/// Those that are a job's id by themselves. The first that is set counts: a job goes on being Slurm's where mpirun starts its ranks.
const IDS: [&str; 6] = [
    "FLUX_JOB_ID",
    "SLURM_JOB_ID",
    "PALS_APID",
    "PMIX_NAMESPACE",
    "OMPI_MCA_ess_base_jobid",
    "TORCHELASTIC_RUN_ID",
];

/// What torchrun calls a run that was given no id: all such runs have this one.
const NO_ID: &str = "none";

/// Variables that together name one run of a launcher: all of a line must be set and equal.
const LAUNCHES: [&[&str]; 6] = [
    &["SLURM_JOB_ID", SLURM_STEP],
    &["OMPI_MCA_ess_base_jobid"],
    &["PMIX_NAMESPACE"],
    &["PALS_APID"],
    &["FLUX_JOB_ID"],
    &["TORCHELASTIC_RUN_ID"],
];

/// The id of this process's job: `%j`.
#[must_use]
pub fn id() -> Option<String> {
    first(|name| std::env::var(name).ok())
}

/// The id of a job, by what `value` says of each variable; an empty one is none.
pub fn first<T: AsRef<str>>(value: impl Fn(&str) -> Option<T>) -> Option<T> {
    IDS.iter().find_map(|name| value(name).filter(|value| is_id(value.as_ref())))
}

/// Whether one run of a launcher started this process and another one, by what `theirs` says of that one's variables.
pub fn is_same_launch<T: AsRef<str>>(theirs: impl Fn(&str) -> Option<T>) -> bool {
    let is_same = |name: &&str| {
        let ours = std::env::var(name).ok().filter(|value| is_id(value));
        ours.is_some_and(|ours| theirs(name).is_some_and(|theirs| theirs.as_ref() == ours))
    };
    LAUNCHES.iter().any(|names| names.iter().all(is_same))
}

fn is_id(value: &str) -> bool {
    !value.is_empty() && value != NO_ID
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_job_is_the_one_of_the_machine_and_not_of_a_launcher_in_it() {
        let id = |set: &'static [(&str, &str)]| {
            first(|name| set.iter().find(|(set, _)| *set == name).map(|(_, value)| *value))
        };
        assert_eq!(id(&[]), None);
        assert_eq!(id(&[("PMIX_NAMESPACE", "123"), ("SLURM_JOB_ID", "77")]), Some("77"), "mpirun in sbatch");
        assert_eq!(id(&[("SLURM_JOB_ID", "77"), ("FLUX_JOB_ID", "f2")]), Some("f2"), "flux run in Slurm");
        assert_eq!(id(&[("TORCHELASTIC_RUN_ID", "none")]), None);
        assert_eq!(id(&[("SLURM_JOB_ID", ""), ("TORCHELASTIC_RUN_ID", "x")]), Some("x"));
    }
}
