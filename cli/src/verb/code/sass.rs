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

fn disassembler() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty());
    let files = folders.chain([PathBuf::from(TOOLKIT)]).map(|folder| folder.join(NAME));
    let Some(found) = files.into_iter().find(|file| file.is_file()) else {
        bail!(
            "{NAME} is not on PATH and not in {TOOLKIT}: the CUDA toolkit has it, and the Python package nvidia-cuda-nvdisasm"
        );
    };
    Ok(found)
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
