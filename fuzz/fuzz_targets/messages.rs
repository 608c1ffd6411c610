//! Bytes of a sub-buffer: every byte is of a message or is skipped, and no analyzer fails on any of them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rpd_analyzers::{Analysis, Analyzers, BlockFilter, SourceFiles, Subject};
use rpd_dh_comms::message;
use rpd_duration_log::LogFormat;

fuzz_target!(|bytes: &[u8]| {
    let (mut read, mut skipped) = (0, 0);
    message::each(bytes, |message| read += message.len(), |_, damaged| skipped += damaged);
    assert_eq!(read + skipped, bytes.len());
    let files = SourceFiles::default();
    let subject = Subject { kernel: "k", dispatch: 1, target: "gfx90a", blocks: [1 << 20, 1, 1], waves: 16, files: &files };
    let (analyzers, _) = Analyzers::named("MessageLogger,Heatmap,MemoryAnalysis,TimeInterval,BasicBlockAnalysis");
    for format in [LogFormat::Csv, LogFormat::Json] {
        let mut analysis = Analysis::new(&analyzers, &BlockFilter::default(), format, &subject);
        analysis.bytes(bytes, &subject);
        for report in analysis.finish(&subject) {
            assert!(report.bytes as usize <= bytes.len());
        }
    }
});
