//! `rpd code --disasm` of a cubin: NVIDIA's disassembler writes it, where it is installed.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use rpd_postprocess::text::escape;

use crate::output;

/// What it is called.
const NAME: &str = "nvdisasm";
/// Where the CUDA toolkit has it, which does not change PATH.
const TOOLKIT: &str = "/usr/local/cuda/bin";

/// Where Python's package has it, below the folder of an environment.
const OF_PYTHON: &str = "lib/python3*/*-packages/nvidia/*/bin";

fn disassembler() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty());
    let files = folders.chain([PathBuf::from(TOOLKIT)]).map(|folder| folder.join(NAME));
    let Some(found) = files.chain(of_python()).find(|file| file.is_file()) else {
        bail!(
            "{NAME} is not on PATH, not in {TOOLKIT} and not in a Python environment that is activated: the CUDA toolkit has it, and `pip install \
             nvidia-cuda-nvdisasm` installs it"
        );
    };
    Ok(found)
}

/// Those of Python's packages: of the activated environment, of the machine, of the user.
fn of_python() -> impl Iterator<Item = PathBuf> {
    let below = |name: &str, folder: &str| std::env::var_os(name).map(|place| Path::new(&place).join(folder));
    let environments = [
        below("VIRTUAL_ENV", ""),
        below("CONDA_PREFIX", ""),
        Some("/usr/local".into()),
        below("HOME", ".local"),
    ];
    let patterns = environments.into_iter().flatten().filter_map(|environment| {
        let environment = glob::Pattern::escape(environment.to_str()?);
        Some(format!("{environment}/{OF_PYTHON}/{NAME}"))
    });
    patterns.flat_map(|pattern| glob::glob(&pattern).into_iter().flatten().flatten())
}

/// Writes the instructions of a cubin, with lines of the source where it has them.
///
/// # Errors
/// When the disassembler is missing or fails, or standard output cannot be written.
pub(super) fn list(cubin: &Path) -> Result<ExitCode> {
    let tool = disassembler()?;
    let mut command = Command::new(&tool);
    command
        .args(["--print-code", "--print-line-info"])
        .arg(cubin)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", tool.display()))?;
    let lines = child.stdout.take().map(BufReader::new);
    let written = output::write(|out| {
        for line in lines.into_iter().flat_map(|lines| lines.split(b'\n')) {
            let line = line.map_err(io::Error::other)?;
            let line = String::from_utf8_lossy(&line).replace('\t', "    ");
            writeln!(out, "{}", escape(&line))?;
        }
        Ok(())
    });
    // It ends with its output, whoever closed that.
    let status = child.wait().with_context(|| format!("cannot wait for {}", tool.display()))?;
    written?;
    if !status.success() {
        bail!("{} cannot disassemble {} ({status})", tool.display(), cubin.display());
    }
    Ok(ExitCode::SUCCESS)
}
