//! Rows of calls: the call, and the launch or copy that it asked for.

use rpd_schema::{ApiId, ApiRow, Appender, CopyApiRow, Error, Fence, KernelApiRow, LibraryCallRow};

use super::{CopyDirection, Rows};
use crate::correlation;
use crate::records::{Call, NO_GPU, NO_KERNEL};
use crate::source::{Detail, Launch, Transfer};

impl Rows {
    /// A call of thread `tid` with its arguments and its stack frames.
    pub(in crate::writer) fn call(
        &mut self,
        appender: &mut Appender,
        tid: u32,
        call: &Call,
        (arguments, frames): (&[u8], &[u8]),
    ) -> Result<(), Error> {
        let source = self.recorder.source(call.source);
        let Some(text) = source.and_then(|source| source.describe(call, arguments)) else { return Ok(()) };
        let tid = if call.tid == 0 { tid } else { call.tid };
        let id = match call.correlation {
            // No operation refers to it.
            correlation::NONE => self.call_id(correlation::next()),
            correlation => self.call_id(correlation),
        };
        let name = appender.intern(text.name)?;
        let args = appender.intern(&text.arguments)?;
        appender.api(&ApiRow { id, pid: self.pid, tid, start: call.start, end: call.end, name, args })?;
        self.recorded.calls += 1;
        let has_kernel = call.submitted != 0 || call.commanded != 0;
        self.recorded.launches += u64::from(has_kernel && text.launches);
        match text.detail {
            // One that dispatched its kernel is described by the dispatch, see `Rows::dispatch`.
            Detail::Launch(launch) if call.submitted == 0 => self.launch(appender, call, &launch)?,
            Detail::Copy(copy) => self.transfer(appender, call, &copy)?,
            Detail::Library { domain, category } => {
                let (domain, category) = (appender.intern(domain)?, appender.intern(category)?);
                appender.library_call(&LibraryCallRow { api: id, domain, category })?;
            }
            _ => {}
        }
        self.stack(appender, id, frames)
    }

    /// The stack frames of a call whose row is there.
    fn stack(&mut self, appender: &mut Appender, id: ApiId, words: &[u8]) -> Result<(), Error> {
        let Some(frames) = &mut self.frames else { return Ok(()) };
        let words = words.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
        self.recorded.stacks += frames.add(appender, id, words)?;
        Ok(())
    }

    /// A launch that dispatched nothing: it was captured, it failed, or HIP times it.
    fn launch(&mut self, appender: &mut Appender, call: &Call, launch: &Launch) -> Result<(), Error> {
        let kernel = match call.kernel {
            NO_KERNEL => None,
            id => Some(self.names.get(id, appender)?),
        };
        let row = KernelApiRow {
            api: self.call_id(call.correlation),
            stream: launch.stream,
            grid: launch.grid,
            workgroup: launch.workgroup,
            group_segment_size: launch.shared,
            private_segment_size: 0,
            kernarg_address: 0,
            acquire_fence: Fence::Unknown,
            release_fence: Fence::Unknown,
            code_object: kernel.map_or(rpd_schema::CodeObjectId::UNKNOWN, |kernel| kernel.code_object),
            kernel_name: kernel.map_or(appender.empty(), |kernel| kernel.name),
        };
        appender.kernel_api(&row)?;
        if call.commanded != 0 {
            self.described.add(call.correlation, row);
        }
        Ok(())
    }

    fn transfer(&mut self, appender: &mut Appender, call: &Call, copy: &Transfer) -> Result<(), Error> {
        let device = |gpu: u32| if gpu == NO_GPU { -1 } else { gpu as i32 };
        let direction = CopyDirection::between(call.src_gpu, call.dst_gpu);
        appender.copy_api(&CopyApiRow {
            api: self.call_id(call.correlation),
            stream: copy.stream,
            size: copy.bytes,
            width: copy.width,
            height: copy.height,
            kind: copy.kind.unwrap_or(direction.kind()),
            dst: copy.dst,
            src: copy.src,
            dst_device: device(call.dst_gpu),
            src_device: device(call.src_gpu),
            sync: copy.sync,
            pinned: call.pinned != 0,
        })
    }
}
