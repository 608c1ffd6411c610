//! What messages of instrumented kernels cost once they are there: taking the bytes out of sub-buffers against a memcpy of the same bytes,
//! decoding them, and what each analyzer makes of them.
//!
//! `cargo bench -p rpd-analyzers`. Medians of nine turns; numbers of lines with one name compare.

use std::hint::black_box;
use std::ptr::NonNull;
use std::time::Instant;

use bytemuck::{Zeroable, bytes_of};
use rpd_analyzers::{Analysis, Analyzers, BlockFilter, SourceFiles, Subject};
use rpd_dh_comms::layout::WaveHeader;
use rpd_dh_comms::message;
use rpd_dh_comms::reader::{Reader, Regions};
use rpd_duration_log::LogFormat;

/// Sub-buffers, and bytes of each, as a dispatch has them by default.
const COUNT: usize = 256;
const CAPACITY: usize = 64 << 10;
const TURNS: usize = 9;

fn main() {
    let messages = sub_buffer();
    let per_buffer = {
        let mut count = 0;
        message::each(&messages, |_| count += 1, |_, _| {});
        count
    };
    let (bytes, messages_of_all) = (COUNT * messages.len(), COUNT * per_buffer);

    let mut memory = Memory::new(&messages);
    let mut out = vec![0_u8; COUNT * CAPACITY];
    let (copied, drained) = (&mut Vec::new(), &mut Vec::new());
    for _ in 0..TURNS {
        copied.push(timed(|| {
            for (from, to) in memory.buffer.chunks(CAPACITY).zip(out.chunks_mut(CAPACITY)) {
                to[..messages.len()].copy_from_slice(&from[..messages.len()]);
            }
            black_box(&mut out);
        }));
        memory.fill(messages.len());
        let mut reader = memory.reader();
        drained.push(timed(|| {
            let mut place = 0;
            let taken = reader.drain(|bytes| {
                out[place..place + bytes.len()].copy_from_slice(bytes);
                place += CAPACITY;
            });
            assert_eq!(taken, COUNT);
            black_box(&mut out);
        }));
    }
    let (copied, drained) = (median(copied), median(drained));
    let rate = |ns: f64| bytes as f64 / ns;
    println!("memcpy of {} MiB: {:.2} GB/s", bytes >> 20, rate(copied));
    println!("reader, with the copy: {:.2} GB/s, {:.2} of memcpy", rate(drained), copied / drained);

    let mut decoded = Vec::new();
    for _ in 0..TURNS {
        decoded.push(timed(|| {
            for _ in 0..COUNT {
                let mut lanes = 0;
                message::each(&messages, |message| lanes += message.addresses().count(), |_, _| {});
                black_box(lanes);
            }
        }));
    }
    let show = |name: &str, ns: f64| {
        println!("{name}: {:.2} M messages/s, {:.2} GB/s", messages_of_all as f64 / ns * 1e3, rate(ns));
    };
    show("decoding, with all addresses", median(&mut decoded));
    let files = SourceFiles::default();
    let subject =
        Subject { kernel: "k", dispatch: 1, target: "gfx90a", blocks: [4096, 1, 1], waves: 4, files: &files };
    for name in ["Heatmap", "MemoryAnalysis", "TimeInterval", "BasicBlockAnalysis", "MessageLogger"] {
        let (analyzers, _) = Analyzers::named(name);
        let mut times = Vec::new();
        for _ in 0..TURNS {
            let mut analysis = Analysis::new(&analyzers, &BlockFilter::default(), LogFormat::Csv, &subject);
            times.push(timed(|| {
                for _ in 0..COUNT {
                    analysis.bytes(&messages, &subject);
                    black_box(analysis.take_log());
                }
            }));
            black_box(analysis.finish(&subject));
        }
        show(name, median(&mut times));
    }
}

/// A sub-buffer full of messages about strided accesses of whole wavefronts to memory and LDS, one block each.
fn sub_buffer() -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0_u64.. {
        let header = |kind, detail, data_size| WaveHeader {
            exec: u64::MAX,
            data_size,
            timestamp: number * 100,
            line: 7 + (number % 5) as u32,
            kind,
            detail,
            block: [number as u16, 0, 0],
            lanes: 64,
            ..WaveHeader::zeroed()
        };
        let mut message = Vec::new();
        if number % 4 == 3 {
            message.extend(bytes_of(&header(2, (number % 9) as u32, 0)));
        } else {
            let space = if number % 4 == 2 { 3 } else { 1 };
            let data_size = (64 * 4 + 64 * 8) | WaveHeader::VECTOR | WaveHeader::LANE_HEADERS;
            message.extend(bytes_of(&header(0, 1 | space << 2 | 4 << 6, data_size)));
            message.extend((0..64_u32).flat_map(u32::to_le_bytes));
            let address = |lane: u64| 0x7f00_0000_0000 + number % 16 * 65536 + lane * 4 * (1 + number % 8);
            message.extend((0..64).flat_map(|lane| (address(lane) as u32).to_le_bytes()));
            message.extend((0..64).flat_map(|lane| ((address(lane) >> 32) as u32).to_le_bytes()));
        }
        if bytes.len() + message.len() > CAPACITY {
            break;
        }
        bytes.extend(message);
    }
    bytes
}

/// What a device and the reader share.
struct Memory {
    buffer: Vec<u8>,
    sizes: Vec<u64>,
    errors: Box<u32>,
    full: Vec<u8>,
}

impl Memory {
    fn new(messages: &[u8]) -> Memory {
        let mut buffer = vec![0; COUNT * CAPACITY];
        buffer.chunks_mut(CAPACITY).for_each(|part| part[..messages.len()].copy_from_slice(messages));
        Memory { buffer, sizes: vec![0; COUNT], errors: Box::new(0), full: vec![0; COUNT] }
    }

    /// All sub-buffers are full.
    fn fill(&mut self, size: usize) {
        self.sizes.fill(size as u64);
        self.full.fill(1);
    }

    #[allow(unsafe_code)]
    fn reader(&mut self) -> Reader {
        let regions = Regions {
            count: COUNT,
            capacity: CAPACITY,
            buffer: NonNull::from(self.buffer.as_mut_slice()).cast(),
            sizes: NonNull::from(self.sizes.as_mut_slice()).cast(),
            errors: NonNull::from(&mut *self.errors),
            full: NonNull::from(self.full.as_mut_slice()).cast(),
        };
        // SAFETY: memory of these sizes, which stays as it is while the reader is used.
        unsafe { Reader::new(regions) }
    }
}

fn timed(body: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    body();
    begin.elapsed().as_nanos() as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
