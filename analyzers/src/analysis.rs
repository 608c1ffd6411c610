//! All analyzers of one dispatch.

use rpd_dh_comms::message::{self, Message};
use rpd_duration_log::LogFormat;
use rpd_schema::Finding;

use crate::basic_blocks::BasicBlocks;
use crate::heatmap::Heatmap;
use crate::memory_analysis::MemoryAnalysis;
use crate::message_logger::{self, MessageLogger};
use crate::time_interval::TimeInterval;
use crate::{AnalyzerKind, Analyzers, BlockFilter, SourceFiles};

/// The dispatch that messages are of.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The demangled name of the application's kernel.
    pub kernel: &'a str,
    /// A number for the dispatch.
    pub dispatch: u64,
    /// The processor, such as `gfx90a`.
    pub target: &'a str,
    /// Workgroups of the grid.
    pub blocks: [u32; 3],
    /// Waves of a workgroup.
    pub waves: u32,
    /// Files of its source.
    pub files: &'a SourceFiles,
}

impl Subject<'_> {
    /// The name of a file that a message names.
    pub(crate) fn file(&self, hash: u64) -> String {
        self.files.name(hash)
    }
}

enum Analyzer {
    MessageLogger(MessageLogger),
    Heatmap(Heatmap),
    MemoryAnalysis(MemoryAnalysis),
    TimeInterval(TimeInterval),
    BasicBlockAnalysis(BasicBlocks),
}

/// See the module.
pub struct Analysis {
    analyzers: Vec<(AnalyzerKind, Analyzer)>,
    filter: BlockFilter,
    format: LogFormat,
    messages: u64,
    bytes: u64,
    damaged: u64,
    unknown: u64,
}

/// A field of a line with commas.
pub(crate) fn quoted(text: &str) -> String {
    let field = rpd_escape::csv_field(text);
    if field.contains([',', '"']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.into_owned()
    }
}

/// What a log of these analyzers begins with, before what any dispatch has to say.
pub fn log_header(analyzers: &Analyzers, format: LogFormat) -> &'static str {
    let has_messages = analyzers.kinds().contains(&AnalyzerKind::MessageLogger);
    if has_messages && format == LogFormat::Csv { message_logger::HEADER } else { "" }
}

/// What an analyzer has found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The analyzer.
    pub analyzer: &'static str,
    /// Messages that it was given.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is missing, in words.
    pub reason: String,
    /// Rows for the file.
    pub findings: Vec<Finding>,
    /// For people, or as JSON.
    pub text: String,
}

impl Analysis {
    /// Nothing has come yet.
    pub fn new(
        analyzers: &Analyzers,
        filter: &BlockFilter,
        format: LogFormat,
        subject: &Subject<'_>,
    ) -> Analysis {
        let analyzer = |kind: &AnalyzerKind| {
            let analyzer = match kind {
                AnalyzerKind::MessageLogger => Analyzer::MessageLogger(MessageLogger::new(format)),
                AnalyzerKind::Heatmap => Analyzer::Heatmap(Heatmap::default()),
                AnalyzerKind::MemoryAnalysis => Analyzer::MemoryAnalysis(MemoryAnalysis::new(subject)),
                AnalyzerKind::TimeInterval => Analyzer::TimeInterval(TimeInterval::default()),
                AnalyzerKind::BasicBlockAnalysis => Analyzer::BasicBlockAnalysis(BasicBlocks::default()),
            };
            (*kind, analyzer)
        };
        let analyzers = analyzers.kinds().iter().map(analyzer).collect();
        let filter = filter.clone();
        Analysis { analyzers, filter, format, messages: 0, bytes: 0, damaged: 0, unknown: 0 }
    }

    /// The bytes of a sub-buffer, as they came.
    pub fn bytes(&mut self, bytes: &[u8], subject: &Subject<'_>) {
        let mut damaged = 0;
        message::each(bytes, |message| self.message(&message, subject), |_, bytes| damaged += bytes as u64);
        self.damaged += damaged;
    }

    fn message(&mut self, message: &Message<'_>, subject: &Subject<'_>) {
        if !self.filter.allows(message.header.block) {
            return;
        }
        self.messages += 1;
        self.bytes += message.len() as u64;
        self.unknown += u64::from(matches!(message.kind(), message::MessageKind::Other(_)));
        for (_, analyzer) in &mut self.analyzers {
            match analyzer {
                Analyzer::MessageLogger(logger) => logger.message(message, subject),
                Analyzer::Heatmap(heatmap) => heatmap.message(message),
                Analyzer::MemoryAnalysis(analysis) => analysis.message(message),
                Analyzer::TimeInterval(intervals) => intervals.message(message),
                Analyzer::BasicBlockAnalysis(blocks) => blocks.message(message),
            }
        }
    }

    /// What is to be logged already, once.
    pub fn take_log(&mut self) -> String {
        let mut log = String::new();
        for (_, analyzer) in &mut self.analyzers {
            if let Analyzer::MessageLogger(logger) = analyzer {
                log.push_str(&logger.take());
            }
        }
        log
    }

    /// No more messages come: a report of each analyzer.
    pub fn finish(mut self, subject: &Subject<'_>) -> Vec<Report> {
        let (messages, bytes, format) = (self.messages, self.bytes, self.format);
        let damaged =
            (self.damaged > 0).then(|| format!("{} bytes are no messages, and were skipped", self.damaged));
        let unknown = (self.unknown > 0).then(|| {
            format!("{} messages are of a kind that no analyzer knows; MessageLogger has them", self.unknown)
        });
        let report = |(kind, analyzer): &mut (AnalyzerKind, Analyzer)| {
            let (reason, findings, text, json) = match analyzer {
                Analyzer::MessageLogger(logger) => (None, Vec::new(), logger.take(), None),
                Analyzer::Heatmap(heatmap) => {
                    (heatmap.reason(), heatmap.findings(), heatmap.text(subject), Some(heatmap.json(subject)))
                }
                Analyzer::MemoryAnalysis(analysis) => (
                    analysis.reason(),
                    analysis.findings(subject),
                    analysis.text(subject),
                    Some(analysis.json(subject)),
                ),
                Analyzer::TimeInterval(intervals) => {
                    (None, intervals.findings(), intervals.text(subject), Some(intervals.json(subject)))
                }
                Analyzer::BasicBlockAnalysis(blocks) => (
                    blocks.reason(subject),
                    blocks.findings(subject),
                    blocks.text(subject),
                    Some(blocks.json(subject)),
                ),
            };
            let reasons: Vec<String> =
                [damaged.clone(), unknown.clone(), reason].into_iter().flatten().collect();
            let text = match (format, json) {
                (LogFormat::Json, Some(json)) => format!("{json}\n"),
                _ => text,
            };
            Report { analyzer: kind.name(), messages, bytes, reason: reasons.join("; "), findings, text }
        };
        self.analyzers.iter_mut().map(report).collect()
    }
}
