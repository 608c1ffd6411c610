//! Writes the traces of the ranks of a job that never ran: `ranks DIRECTORY RANKS ITERATIONS KERNELS [SEED]`, a file for each rank.

mod job;

use std::env::args;
use std::error::Error;
use std::path::PathBuf;

use job::Job;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: ranks DIRECTORY RANKS ITERATIONS KERNELS [SEED]";
    let directory = PathBuf::from(args().nth(1).ok_or(usage)?);
    let numbers: Vec<u64> = args().skip(2).map(|number| number.parse()).collect::<Result<_, _>>()?;
    let [ranks, iterations, kernels, ref seed @ ..] = numbers[..] else { return Err(usage.into()) };
    let job = Job { ranks, iterations, kernels, seed: seed.first().copied().unwrap_or(1) };
    std::fs::create_dir_all(&directory)?;
    job.write(&directory)?;
    Ok(())
}
