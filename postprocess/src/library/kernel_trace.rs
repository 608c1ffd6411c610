//! RCCL's kernel trace in its log (`RCCL_KERNEL_COLL_TRACE_ENABLE=1`): when each workgroup of its kernels began and ended a collective.
//!
//! A line has a time in seconds by the clock of its GPU, `[rank:block]` or, of later versions, `[rank:block:channel]` and
//! `[rank:block-channel:thread]`, the number of the collective, and what happened. KL: the kernel begins, with its first collective. CL: the
//! next collective of the same kernel begins. KE: the kernel ends. The thread of RCCL's that wrote a line serves one communicator, so its
//! number in front keeps communicators apart. RCCL up to 2.10 has `CE ... nt` in the place of CL. Later ones have CE and PE for collectives
//! that run beside the one that has just begun: these lines have no end of their own, and are left out.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

/// What a workgroup of a kernel did for one collective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkgroupSpan {
    /// Host, process and thread as the line has them.
    pub process: String,
    /// Of the communicator.
    pub rank: u64,
    /// The workgroup's number.
    pub block: u64,
    /// The channel that it serves; none where RCCL does not say. There the block's number is the channel's, unless channels are left out.
    pub channel: Option<u64>,
    /// Of the workgroup's threads the first one of a wavefront, of versions that trace each.
    pub thread: Option<u64>,
    /// The GPU's place on the PCI bus.
    pub pci: Option<String>,
    /// The collective's number, as RCCL writes it: hexadecimal, two of a pair of send and receive.
    pub op: String,
    /// The function that runs.
    pub function: String,
    /// When it began, us by the clock of the GPU.
    pub begin_us: u64,
    /// When it ended; none where the log does not say.
    pub end_us: Option<u64>,
}

/// Which workgroup, or wavefront, of which communicator.
type Place = (String, u64, u64, Option<u64>, Option<u64>);

/// Pairs beginnings with ends, while a log is read.
#[derive(Debug, Default)]
pub struct KernelTrace {
    open: HashMap<Place, WorkgroupSpan>,
    /// Ends without a beginning.
    pub without_begin: u64,
}

static LINE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let line = r"(?x)(\S+:\d+:\d+)\ \[\d+\]\ NCCL\ INFO\ \#\#\ \[\ *(\d{1,12})\.(\d{6})\]
        \ \[(\d+):(\d+)(?:[:-](\d+))?(?::([0-9a-f]+))?\]\ +([0-9a-f]+(?:-[0-9a-f]+)?)
        \ (?:(KL)\ HWID\ +[0-9a-f]+|(CL)(?:\ \d+)?|(CE)|(KE)|(Abort))(?:\ (\S+)(.*))?$";
    Regex::new(line).ok()
});

static BUS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bbusId ([0-9a-fA-F]{1,8})\b").ok());

impl KernelTrace {
    /// Takes a line of a log. What it begins ends what was open in its workgroup, as an end does: that is handed out.
    pub fn line(&mut self, line: &str) -> Option<WorkgroupSpan> {
        let found = LINE.as_ref()?.captures(line)?;
        let text = |group: usize| found.get(group).map(|found| found.as_str());
        let number = |group: usize| text(group)?.parse::<u64>().ok();
        let thread = text(7).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let us = number(2)?.checked_mul(1_000_000)?.checked_add(number(3)?)?;
        let place = (text(1)?.to_string(), number(4)?, number(5)?, number(6), thread);
        let rest = text(15).unwrap_or_default();
        let begins_kernel = text(9).is_some();
        let begins = begins_kernel || text(10).is_some() || (text(11).is_some() && rest.starts_with(" nt "));
        if !begins && text(12).or(text(13)).is_none() {
            return None;
        }
        let mut ended = self.open.remove(&place);
        match &mut ended {
            // The end of the kernel before is not in the log.
            Some(_) if begins_kernel => {}
            Some(ended) => ended.end_us = Some(us).filter(|end| *end >= ended.begin_us),
            None => self.without_begin += u64::from(!begins),
        }
        if begins {
            let (process, rank, block, channel, thread) = place.clone();
            let span = WorkgroupSpan {
                process,
                rank,
                block,
                channel,
                thread,
                pci: BUS.as_ref().and_then(|bus| pci(bus.captures(rest)?.get(1)?.as_str())),
                op: text(8)?.to_string(),
                function: text(14).unwrap_or_default().to_string(),
                begin_us: us,
                end_us: None,
            };
            self.open.insert(place, span);
        }
        ended
    }

    /// What is still open when the log ends, in order of time.
    #[must_use]
    pub fn rest(self) -> Vec<WorkgroupSpan> {
        let mut rest: Vec<WorkgroupSpan> = self.open.into_values().collect();
        rest.sort_by_cached_key(|of| (of.begin_us, of.process.clone(), of.rank, of.block, of.thread));
        rest
    }
}

/// `4000` is 0000:04:00.0.
fn pci(bus: &str) -> Option<String> {
    let bus = u64::from_str_radix(bus, 16).ok()?;
    Some(format!("{:04x}:{:02x}:{:02x}.{:x}", bus >> 20, bus >> 12 & 0xff, bus >> 4 & 0xff, bus & 0xf))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(log: &str) -> (Vec<WorkgroupSpan>, u64, Vec<WorkgroupSpan>) {
        let mut trace = KernelTrace::default();
        let ended = log.lines().filter_map(|line| trace.line(line)).collect();
        (ended, trace.without_begin, trace.rest())
    }

    fn shown(spans: &[WorkgroupSpan]) -> Vec<String> {
        let shown = |of: &WorkgroupSpan| {
            let took = of.end_us.map(|end| (end - of.begin_us).to_string()).unwrap_or_default();
            format!("{}:{} {} {} {took}", of.rank, of.channel.unwrap_or(of.block), of.op, of.function)
        };
        spans.iter().map(shown).collect()
    }

    #[test]
    fn a_real_log_has_begin_and_end_of_each_block() {
        let log = include_str!("../../../fixtures/library-logs/rccl-info-init-coll-2gpus.log");
        let (ended, without_begin, rest) = spans(log);
        assert_eq!((ended.len(), without_begin, rest.len()), (log.matches(" KL HWID ").count(), 0, 0));
        assert_eq!(
            shown(&ended[..6]),
            [
                "0:0 000000 AllReduceRingLLSum_f32 20508",
                "1:0 000000 AllReduceRingLLSum_f32 17865",
                "0:0 000001 AllReduceRingLLSum_f32 14510",
                "0:0 000002 BroadcastRingLLSum_i8 453",
                "1:0 000001 AllReduceRingLLSum_f32 12037",
                "1:0 000002 BroadcastRingLLSum_i8 387",
            ]
        );
        let first = &ended[0];
        assert_eq!((&*first.process, first.pci.as_deref()), ("vm:4643:4818", Some("0000:04:00.0")));
        assert_eq!((first.begin_us, first.end_us), (45_416_931_176, Some(45_416_951_684)));
        let gathers: Vec<(u64, u64)> = ended
            .iter()
            .filter(|of| of.function == "AllGatherRingLLSum_i8")
            .map(|of| (of.rank, of.block))
            .collect();
        assert_eq!(gathers, [(1, 0), (1, 1), (0, 0), (0, 1)], "it has two blocks");
    }

    #[test]
    fn lines_of_other_versions() {
        let log = "x1000:9:8 [2] NCCL INFO ## [951297.535389] [170:03-05:40] 000007 KL HWID   302510 ncclDevFunc_AllReduce_RING_LL_Sum_f32 nw 4 bi 0 nc 1 root 0 busId c9000 nRanks 256 comm 0x12345
x1000:9:8 [2] NCCL INFO ## [951297.535400] [170:03-05:40] 000008 CL 1 ncclDevFunc_AllGather_RING_LL_Sum_i8 nw 4 bi 0 nc 1 root 0 busId c9000 nRanks 256 comm 0x12345
x1000:9:8 [2] NCCL INFO ## [951297.535401] [170:03-05:40] 000009 CE ncclDevFunc_AllGather_RING_LL_Sum_i8 nw 4 bi 1 nc 1 root 0 busId c9000 nRanks 256
x1000:9:8 [2] NCCL INFO ## [951297.535410] [170:03-05:80] 000007 KL HWID   302510 ncclDevFunc_AllReduce_RING_LL_Sum_f32 nw 4 bi 0 nc 1 root 0 busId c9000 nRanks 256
x1000:9:8 [2] NCCL INFO ## [951297.535500] [170:03-05:40] 000008 KE busId c9000 nRanks 256
x1000:9:8 [2] NCCL INFO ## [951297.535600] [170:03-05:80] 000008 Abort
h:1:2 [0] NCCL INFO ## [170260.347287] [07:00:02] 000001-000002 KL HWID 42300700 ncclDevFunc_SendRecv_RING_SIMPLE_Sum_i8 Send 1 -> 1/0 ConnIdx/LL 1/0 -> Recv 1 nc 4 cb 1 busId df000 nRanks 8
h:1:2 [0] NCCL INFO ## [170260.347300] [07:00:02] 000000 KE busId df000 nRanks 8
o:1:2 [0] NCCL INFO ## [  1703.000001] [01:00] 000035 KL HWID 4230c540 AllReduceTreeLLSum_f32 nt 256 bi 0 nc 1 busId C3000
o:1:2 [0] NCCL INFO ## [  1703.000003] [01:00] 000036 CE BroadcastRingLLSum_i8 nt 256 bi 0 nc 1
o:1:2 [0] NCCL INFO ## [  1703.000006] [01:00] 000036 KE
";
        let (ended, without_begin, rest) = spans(log);
        assert_eq!((without_begin, rest.len()), (0, 0));
        assert_eq!(
            shown(&ended),
            [
                "170:5 000007 ncclDevFunc_AllReduce_RING_LL_Sum_f32 11",
                "170:5 000008 ncclDevFunc_AllGather_RING_LL_Sum_i8 100",
                "170:5 000007 ncclDevFunc_AllReduce_RING_LL_Sum_f32 190",
                "7:2 000001-000002 ncclDevFunc_SendRecv_RING_SIMPLE_Sum_i8 13",
                "1:0 000035 AllReduceTreeLLSum_f32 2",
                "1:0 000036 BroadcastRingLLSum_i8 3",
            ]
        );
        assert_eq!((ended[0].block, ended[0].thread), (3, Some(0x40)));
        assert_eq!(ended[0].pci.as_deref(), Some("0000:c9:00.0"));
    }

    #[test]
    fn logs_that_lack_something() {
        let at =
            |us: u64, what: &str| format!("h:1:2 [0] NCCL INFO ## [000001.{us:06}] [00:00] 000000 {what}\n");
        let log = [
            at(1, "KE busId 4000 nRanks 2"),
            at(2, "KL HWID 0 One nw 4"),
            at(3, "KL HWID 0 Two nw 4"),
            at(1, "KE"),
            at(5, "KL HWID 0 Three nw 4"),
            at(6, "DT 0 1 2"),
            "h:1:2 [0] NCCL INFO ## [99999999999999999999.000000] [00:00] 000000 KE".to_string(),
        ];
        let (ended, without_begin, rest) = spans(&log.concat());
        assert_eq!(
            shown(&ended),
            ["0:0 000000 One ", "0:0 000000 Two "],
            "its end is not known, and is not earlier"
        );
        assert_eq!((without_begin, shown(&rest)), (1, vec!["0:0 000000 Three ".to_string()]));
    }
}
