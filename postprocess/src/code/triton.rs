//! The launch of a build of Triton's in the place of another one. The trace has the launch as the application asked for it; the files
//! beside the candidate have the workgroup and the LDS that the build got in its stead.

use std::io::Read;
use std::path::Path;

use rpd_codeobject::TritonBuild;

use super::file::open;
use super::kernel::Candidate;
use super::saved;

/// Bytes of the longest description that is read.
const MOST_TEXT: u64 = 64 << 20;

/// What Triton says of the candidate's `kernel`; none where the file is not Triton's, or is not the one any more that ran.
pub(super) fn description(candidate: &Candidate, kernel: &str) -> Option<TritonBuild> {
    let path = Path::new(&candidate.path);
    let mut text = Vec::new();
    open(&path.with_extension("json")).ok()?.take(MOST_TEXT).read_to_end(&mut text).ok()?;
    let build = TritonBuild::parse(&text).ok().filter(|build| build.name == kernel)?;
    // Others write such a file too; this one is Triton's alone.
    let is_tritons = path.with_extension("ttir").is_file();
    (is_tritons && saved::is_content(path, &candidate.sha256)).then_some(build)
}
