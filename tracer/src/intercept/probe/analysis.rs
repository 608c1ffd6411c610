//! Analysis of the messages of instrumented dispatches, on a thread that no kernel waits for.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rpd_analyzers::{Analysis, Report, SourceFiles, Subject};
use rpd_preload::lock::lock;
use rpd_transport::records::Analyzed;
use rpd_transport::source::AnalysisText;
use rpd_transport::{analyzed, provoked, recorder, writer};

use super::handlers::{self, Ending};
use super::pool::{Dispatched, Pool};

/// A kernel, as far as analyzers need to know it.
pub(crate) struct AnalyzedCode {
    name: String,
    target: String,
    files: SourceFiles,
    /// A number of the name, the same in every run.
    pub(super) seed: u64,
}

impl AnalyzedCode {
    /// The kernel of that demangled name, of the code object that `bytes` are.
    pub(crate) fn new(name: String, target: &str, bytes: Option<&[u8]>) -> AnalyzedCode {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let files = bytes.map(SourceFiles::of).unwrap_or_default();
        AnalyzedCode { name, target: target.to_string(), files, seed: hasher.finish() }
    }
}

/// What the thread is to do.
pub(super) enum AnalysisWork {
    /// These bytes came, of one sub-buffer.
    Bytes(Arc<Pool>, Arc<Dispatched>, Vec<u8>),
    /// No more come: whether the kernel has run to its end, and what was wrong.
    End(Arc<Pool>, Arc<Dispatched>, bool, Vec<String>),
}

/// How far a dispatch is.
#[derive(Default)]
pub(super) struct DispatchAnalysis {
    analysis: Option<Analysis>,
    /// An analyzer has panicked: nothing more is made of the messages.
    failed: bool,
}

/// The body of the thread.
pub(super) fn work(all: Vec<AnalysisWork>) {
    for work in all {
        match work {
            AnalysisWork::Bytes(pool, dispatch, bytes) => {
                of_dispatch(&pool, &dispatch, |analysis, subject| {
                    analysis.bytes(&bytes, subject);
                    log(analysis.take_log());
                });
                let handlers = &pool.config.handlers;
                if !handlers.is_empty() {
                    let bytes = bytes.into();
                    handlers.iter().for_each(|handler| handler.bytes(&pool, &dispatch, &bytes));
                }
            }
            AnalysisWork::End(pool, dispatch, completed, trouble) => {
                of_dispatch(&pool, &dispatch, |_, _| {});
                let analyses = reports(&dispatch, &trouble);
                handlers::end(Ending { pool, dispatch, completed, trouble, analyses }, 0);
            }
        }
    }
}

/// Does something with the analyzers of a dispatch, which are made where there are none.
fn of_dispatch(pool: &Pool, dispatch: &Dispatched, body: impl FnOnce(&mut Analysis, &Subject<'_>)) {
    let mut state = lock(&dispatch.analysis);
    if state.failed {
        return;
    }
    let worked = catch_unwind(AssertUnwindSafe(|| {
        provoked::panic("analysis");
        let subject = subject(dispatch);
        let config = pool.config;
        let new = || Analysis::new(&config.analyzers, &config.filter, config.format, &subject);
        body(state.analysis.get_or_insert_with(new), &subject);
    }));
    if worked.is_err() {
        recorder::disable();
        *state = DispatchAnalysis { analysis: None, failed: true };
    }
}

/// What the analyzers have found.
fn reports(dispatch: &Dispatched, trouble: &[String]) -> Vec<AnalysisText> {
    let mut state = lock(&dispatch.analysis);
    let analysis = state.analysis.take();
    let reports =
        catch_unwind(AssertUnwindSafe(|| analysis.map(|analysis| analysis.finish(&subject(dispatch)))));
    drop(state);
    if reports.is_err() {
        recorder::disable();
    }
    let Ok(Some(reports)) = reports else { return vec![nothing(dispatch)] };
    reports.iter().for_each(|report| log(report.text.clone()));
    let dropped = dispatch.dropped.load(Ordering::Relaxed);
    let analysis = |Report { analyzer, messages, bytes, reason, findings, .. }: Report| {
        let reasons: Vec<String> =
            trouble.iter().cloned().chain((!reason.is_empty()).then_some(reason)).collect();
        AnalysisText {
            analyzer: analyzer.to_string(),
            messages,
            bytes,
            dropped,
            reason: reasons.join("; "),
            findings,
        }
    };
    reports.into_iter().map(analysis).collect()
}

/// Nothing was made of what came.
fn nothing(dispatch: &Dispatched) -> AnalysisText {
    let reason = "the analyzers have failed".to_string();
    AnalysisText { reason, dropped: dispatch.dropped.load(Ordering::Relaxed), ..AnalysisText::default() }
}

/// There is no thread that could analyze it.
pub(super) fn unanalyzed(pool: &Arc<Pool>, dispatch: &Arc<Dispatched>, completed: bool) {
    let (pool, dispatch, analyses) = (Arc::clone(pool), Arc::clone(dispatch), vec![nothing(dispatch)]);
    add(Ending { pool, dispatch, completed, trouble: Vec::new(), analyses });
}

/// For the writer.
pub(super) fn add(ending: Ending) {
    let Ending { dispatch, completed, analyses, .. } = ending;
    let (gpu, queue, sequence) = dispatch.place;
    if let Some(recorder) = recorder::get() {
        let completed = u32::from(completed);
        let record = Analyzed { sequence, gpu, queue, kernel: dispatch.kernel, completed };
        analyzed::push(recorder, &record, &analyses);
    }
}

/// The dispatch, as analyzers know it.
pub(super) fn subject(dispatch: &Dispatched) -> Subject<'_> {
    let launch = &dispatch.launch;
    let blocks = [0, 1, 2].map(|axis| launch.grid[axis].div_ceil(u32::from(launch.workgroup[axis]).max(1)));
    let items: u32 = launch.workgroup.iter().map(|size| u32::from(*size)).product();
    let code = &dispatch.code;
    let (_, _, sequence) = dispatch.place;
    Subject {
        kernel: &code.name,
        dispatch: sequence,
        target: &code.target,
        blocks,
        waves: items.div_ceil(64),
        files: &code.files,
    }
}

/// Text for the log, where there is one.
pub(super) fn log(text: String) {
    if let Some(recorder) = recorder::get().filter(|_| !text.is_empty()) {
        writer::log_report(recorder, text);
    }
}
