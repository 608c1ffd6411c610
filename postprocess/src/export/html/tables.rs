//! The tables of the page: the reports' rows as tables with typed columns.

use std::io::{self, Write};

use anyhow::Result;
use regex::Regex;
use rpd_schema::Version;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::super::Exported;
use super::super::call_tree::{self, TreeOptions, Width};
use super::super::timeline::begin_reading;
use super::operators::{OperatorKernel, Operators};
use crate::notes::{Notes, look};
use crate::region::{Region, Selected};
use crate::report::copies::Copies;
use crate::report::markers::Markers;
use crate::report::overlap::{COMMUNICATION, Overlap};
use crate::report::rank_by::RankBy;
use crate::report::ranking::{Counted, NameGroup, Ranking};
use crate::report::utilisation::Utilisation;
use crate::text::escape;

/// Rows of a table, of more those with the most time.
const MOST: usize = 200_000;

/// Title, kind and meaning of a column. Kinds: `name` (from the trace, long), `words` (short), `count`, `ns`, `percent`, `bytes`, `rate` (GB/s).
type Column = (&'static str, &'static str, &'static str);

/// A text from the trace, made harmless.
fn name(text: &str) -> Value {
    Value::String(escape(text).into_owned())
}

/// Columns of rankings, behind the name.
const TIMES: [Column; 9] = [
    ("total", "ns", "sum of the durations"),
    ("%", "percent", "share of total in that of all rows"),
    ("calls", "count", "how many"),
    ("average", "ns", "total by calls"),
    ("min", "ns", "the shortest"),
    ("p50", "ns", "the half is no longer than this"),
    ("p90", "ns", "90 percent are no longer than this"),
    ("p99", "ns", "99 percent are no longer than this"),
    ("max", "ns", "the longest"),
];

fn times(group: &NameGroup) -> Vec<Value> {
    let [p50, p90, p99] = match &group.percentiles {
        Some(percentiles) => [percentiles.p50_ns, percentiles.p90_ns, percentiles.p99_ns].map(Value::from),
        None => [Value::Null, Value::Null, Value::Null],
    };
    vec![
        group.total_ns.into(),
        json!(group.percent),
        group.calls.into(),
        json!(group.average_ns),
        group.min_ns.into(),
        p50,
        p90,
        p99,
        group.max_ns.into(),
    ]
}

/// Reads the reports, and writes each one's rows before the next is read: a large trace's tables are never in memory together.
struct Reports<'a> {
    trace: (&'a Connection, Version),
    selected: Selected,
    notes: &'a dyn Notes,
    out: Inside<'a>,
    /// What separates the next section or table from what is before it.
    separator: &'static str,
    impossible: u64,
}

impl Reports<'_> {
    /// Says what is being worked on, and fails if a signal came.
    fn show(&self, what: &str) -> Result<()> {
        self.notes.show(what);
        look(self.notes)
    }

    /// Begins a section; its tables follow.
    fn begin_section(&mut self, id: &str, title: &str) -> Result<()> {
        write!(self.out, "{}\n{{\"id\":\"{id}\",\"title\":\"{title}\",\"tables\":[", self.separator)?;
        self.separator = "";
        Ok(())
    }

    fn end_section(&mut self) -> Result<()> {
        self.out.write_all(b"]}")?;
        self.separator = ",";
        Ok(())
    }

    /// Writes a table of the section that was begun.
    fn table(
        &mut self,
        title: &str,
        help: &str,
        columns: &[Column],
        rows: impl ExactSizeIterator<Item = Vec<Value>>,
    ) -> Result<()> {
        let total = rows.len() as u64;
        self.table_of((title, help), columns, total, rows.map(Ok))
    }

    /// One whose rows, `total` in all, are read as they are written.
    fn table_of(
        &mut self,
        (title, help): (&str, &str),
        columns: &[Column],
        total: u64,
        rows: impl Iterator<Item = Result<Vec<Value>>>,
    ) -> Result<()> {
        let columns: Vec<Value> = columns
            .iter()
            .map(|(title, kind, help)| json!({"title": title, "kind": kind, "help": help}))
            .collect();
        let (title, help, columns) = (json!(title), json!(help), Value::from(columns));
        let separator = self.separator;
        write!(
            self.out,
            "{separator}{{\"title\":{title},\"help\":{help},\"total\":{total},\"columns\":{columns},\"rows\":["
        )?;
        for (at, row) in rows.take(MOST).enumerate() {
            self.out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut self.out, &row?).map_err(std::io::Error::from)?;
        }
        self.out.write_all(b"]}")?;
        self.separator = ",";
        Ok(())
    }

    fn ranking(&mut self, by: RankBy, of: Column, title: &str, help: &str) -> Result<()> {
        self.show(&format!("adding up {}", by.noun().1))?;
        let counted = Counted { instrumented: true, percentiles: true, gpu_times: false };
        let ranking = Ranking::of(self.trace, by, &self.selected, counted)?;
        if matches!(by, RankBy::Kernel | RankBy::Copy | RankBy::Api | RankBy::Marker) {
            self.impossible += ranking.impossible;
        }
        let mut columns = vec![of];
        columns.extend(TIMES);
        if by.nests() {
            columns.insert(4, ("own", "ns", "total without calls inside"));
        }
        let total = ranking.count;
        let rows = ranking.map(|group| {
            let group = group?;
            let mut row = vec![name(&group.name)];
            row.extend(times(&group));
            if by.nests() {
                row.insert(4, group.self_ns.into());
            }
            Ok(row)
        });
        self.table_of((title, help), &columns, total, rows)
    }

    fn markers(&mut self) -> Result<()> {
        self.show("putting markers together")?;
        let nodes = Markers::of(self.trace, &self.selected, false)?.nodes;
        let total = nodes.count as u64;
        let rows = nodes.longest_first()?.map(|node| {
            let (node, around) = node?;
            Ok(vec![
                name(node.name.as_deref().unwrap_or("(no marker)")),
                name(around.as_deref().unwrap_or("")),
                node.gpu_ns.into(),
                json!(node.gpu_percent),
                node.gpu_own_ns.into(),
                node.cpu_ns.into(),
                node.cpu_own_ns.into(),
                node.ranges.into(),
                node.operations.into(),
                node.depth.into(),
            ])
        });
        let columns: [Column; 10] = [
            ("marker", "name", "its text; of PyTorch's operators the name alone"),
            ("inside of", "words", "the marker around it"),
            ("GPU", "ns", "time in which the GPU was busy with what was launched in it"),
            ("GPU %", "percent", "share of that in the time of all GPUs"),
            ("GPU own", "ns", "of that, what was launched in no marker inside"),
            ("CPU", "ns", "time in it on its thread"),
            ("CPU own", "ns", "of that, what is in no marker inside"),
            ("ranges", "count", "how many"),
            ("ops", "count", "operations launched in them"),
            ("depth", "count", "markers around it"),
        ];
        let help = "Ranges with one text inside of the same others are one row. Times of rows below a row are part of it.";
        self.table_of(("Markers", help), &columns, total, rows)
    }

    fn copies(&mut self) -> Result<()> {
        self.show("adding up copies")?;
        let copies = Copies::of(self.trace.0, self.trace.1, &self.selected)?;
        let sizes: Vec<_> = copies
            .kinds
            .iter()
            .flat_map(|kind| kind.sizes.iter().map(move |size| (&kind.kind, size)))
            .collect();
        let rows = sizes.into_iter().map(|(kind, size)| {
            vec![
                name(kind),
                size.from_bytes.into(),
                size.to_bytes.into(),
                size.all.total_ns.into(),
                size.all.copies.into(),
                size.all.bytes.into(),
                json!(size.all.gb_per_s),
                json!(size.all.best_gb_per_s),
            ]
        });
        let columns: [Column; 8] = [
            ("copies", "name", "direction"),
            ("from", "bytes", "the smallest size that counts; none where sizes are not known"),
            ("below", "bytes", "the smallest size that does not count any more"),
            ("total", "ns", "sum of the durations"),
            ("count", "count", "how many"),
            ("bytes", "bytes", "what they moved, as far as it is known"),
            ("speed", "rate", "bytes by their time, in 10^9 bytes a second"),
            ("best", "rate", "speed of the fastest one"),
        ];
        self.table("Copies by size", "By direction and size.", &columns, rows)
    }

    fn operators(&mut self, region: &Region) -> Result<Exported> {
        self.show("putting operators together")?;
        let mut operators = Operators::of(self.trace)?;
        let options = TreeOptions { width: Width::Gpu, exact: true, region: region.clone() };
        let exported = call_tree::walk(self.trace, &options, self.notes, &mut operators)?;
        let (mut texts, by_operator, by_kernel) = operators.into_sums()?;
        let all = by_operator.total_ns;
        let percent = |ns: u64| if all > 0 { 100.0 * ns as f64 / all as f64 } else { 0.0 };
        let total = by_operator.count;
        let sums = by_operator.rows(&mut texts, true).map(|row| {
            let OperatorKernel { operator, calls, total_ns, .. } = row?;
            Ok(vec![
                name(&operator),
                total_ns.into(),
                json!(percent(total_ns)),
                calls.into(),
                json!(total_ns as f64 / calls as f64),
            ])
        });
        let of_sums: [Column; 5] = [
            ("operator", "name", "PyTorch's operator"),
            ("total", "ns", "sum of the durations of what it launched"),
            ("%", "percent", "share of total in that of all operators"),
            ("ops", "count", "operations launched in it and in no operator inside"),
            ("average", "ns", "total by ops"),
        ];
        self.table_of(
            (
                "Operators",
                "What PyTorch's operators launched. An operation belongs to the innermost operator around its launch.",
            ),
            &of_sums,
            total,
            sums,
        )?;
        let total = by_kernel.count;
        let details = by_kernel.rows(&mut texts, false).map(|row| {
            let row = row?;
            Ok(vec![
                name(&row.kernel),
                name(&row.operator),
                name(&row.shapes),
                row.total_ns.into(),
                json!(percent(row.total_ns)),
                row.calls.into(),
                json!(row.total_ns as f64 / row.calls as f64),
            ])
        });
        let of_details: [Column; 7] = [
            ("kernel", "name", "kernel, or kind of the operation"),
            ("operator", "words", "PyTorch's operator around the launch"),
            ("shapes", "words", "of the operator's inputs"),
            ("total", "ns", "sum of the durations"),
            ("%", "percent", "share of total in that of all operators"),
            ("ops", "count", "how many"),
            ("average", "ns", "total by ops"),
        ];
        self.table_of(
            ("Operators, kernels and shapes", "The same by operator, kernel and shapes of the inputs."),
            &of_details,
            total,
            details,
        )?;
        Ok(exported)
    }
}

/// Reads the part `region` of a trace and writes it as JSON that can be in an element of HTML.
///
/// # Errors
/// When the trace, or a temporary file, cannot be read, or a signal came; those of `out`.
pub(super) fn write(
    title: &str,
    (trace, version): (&Connection, Version),
    region: &Region,
    notes: &dyn Notes,
    out: &mut dyn Write,
) -> Result<Exported> {
    begin_reading(trace)?;
    let selected = region.select(trace, version)?;
    let mut reports =
        Reports { trace: (trace, version), selected, notes, out: Inside(out), separator: "", impossible: 0 };
    reports.show("adding up what the GPUs did")?;
    let overlap = Overlap::of(trace, &reports.selected, &Regex::new(COMMUNICATION)?)?;
    let utilisation = Utilisation::of(trace, &reports.selected)?;
    let gpus = gpus(trace, &overlap, &utilisation)?;
    reports.out.write_all(b"{\"sections\":[")?;
    reports.begin_section("overview", "Overview")?;
    reports.end_section()?;
    reports.begin_section("kernels", "Kernels")?;
    reports.ranking(
        RankBy::Kernel,
        ("kernel", "name", "as the compiler's symbol says it"),
        "Kernels",
        "Kernels that ran, by name. Where two run at once, both count.",
    )?;
    reports.end_section()?;
    reports.begin_section("operators", "Operators")?;
    let mut exported = reports.operators(region)?;
    reports.end_section()?;
    reports.begin_section("calls", "Calls")?;
    reports.ranking(
        RankBy::Api,
        ("function", "name", "of HIP, HSA or CUDA"),
        "Calls",
        "What the program called, by function. Where a call is inside another one of that name, total has the outer one alone.",
    )?;
    reports.end_section()?;
    reports.begin_section("markers", "Markers")?;
    reports.markers()?;
    reports.end_section()?;
    reports.begin_section("copies", "Copies")?;
    reports.ranking(RankBy::Copy, ("copies", "name", "direction"), "Copies", "Copies that ran.")?;
    reports.copies()?;
    reports.end_section()?;
    reports.begin_section("places", "Streams and ranks")?;
    for (by, of, title, help) in [
        (
            RankBy::Stream,
            ("stream", "name", "as the launch has it"),
            "By stream",
            "Operations by the stream of their launch.",
        ),
        (
            RankBy::Queue,
            ("queue", "name", "GPU and queue"),
            "By queue",
            "Operations by the queue that they ran on.",
        ),
        (
            RankBy::Thread,
            ("thread", "name", "that launched them"),
            "By thread",
            "Operations by the thread that launched them.",
        ),
        (
            RankBy::Session,
            ("session", "name", "recording of a process"),
            "By session",
            "Operations by the process that launched them.",
        ),
        (
            RankBy::Rank,
            ("rank", "name", "as the launcher said it"),
            "By rank",
            "Operations by the rank of their process.",
        ),
    ] {
        reports.ranking(by, of, title, help)?;
    }
    reports.end_section()?;
    exported.impossible = exported.impossible.max(reports.impossible);
    let operations: u64 = overlap.gpus.iter().map(|gpu| gpu.operations).sum();
    let span = overlap.gpus.iter().map(|gpu| gpu.span_ns).max().unwrap_or(0);
    let mut facts = vec![
        json!(["calls and markers", exported.calls, "count"]),
        json!(["operations", operations, "count"]),
        json!(["GPUs", overlap.gpus.len(), "count"]),
        json!(["longest GPU span", span, "ns"]),
    ];
    facts.extend(losses(reports.trace.0)?);
    let facts = Value::from(facts);
    let (title, mut out) = (json!(escape(title)), reports.out);
    writeln!(out, "],\n\"title\":{title},\"facts\":{facts},\"gpus\":{gpus}}}")?;
    Ok(exported)
}

/// What was lost while recording, in all of the trace; nothing where it is complete.
fn losses(trace: &Connection) -> Result<Vec<Value>> {
    let lost = rpd_schema::lost(trace)?;
    let total = lost.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let causes: Vec<String> =
        lost.iter().map(|(cause, count)| format!("{count} {}", escape(cause))).collect();
    let records =
        json!([format!("incomplete: records lost while recording ({})", causes.join(", ")), total, "count"]);
    let open = rpd_schema::launches_without_op(trace)?;
    let launches = json!(["incomplete: launches without an operation", open, "count"]);
    Ok([(total, records), (open, launches)]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, fact)| fact)
        .collect())
}

/// What each GPU did.
fn gpus(trace: &Connection, overlap: &Overlap, utilisation: &Utilisation) -> Result<Value> {
    let known = rpd_schema::gpus(trace)?;
    let of = |gpu: i64| known.iter().find(|info| i64::from(info.gpu) == gpu);
    let gpus = overlap.gpus.iter().map(|gpu| {
        let name = of(gpu.gpu).and_then(|info| info.get(rpd_schema::session_fact::GPU_NAME)).unwrap_or("");
        let longest = utilisation
            .gpus
            .iter()
            .find(|other| other.gpu == gpu.gpu)
            .and_then(|other| other.longest.as_ref());
        json!({
            "gpu": gpu.gpu,
            "name": escape(name),
            "operations": gpu.operations,
            "span_ns": gpu.span_ns,
            "busy_ns": gpu.busy_ns,
            "idle_ns": gpu.idle_ns,
            "compute_ns": gpu.compute_ns,
            "exposed_communication_ns": gpu.exposed_communication_ns,
            "exposed_copies_ns": gpu.exposed_copies_ns,
            "longest_ns": longest.map_or(0, |gap| gap.idle_ns),
            "longest_before": escape(longest.map_or("", |gap| gap.before.as_str())),
        })
    });
    Ok(gpus.collect())
}

/// JSON inside of an element of HTML: `<` could end the element, and is written as JSON can too.
struct Inside<'a>(&'a mut dyn Write);

impl Write for Inside<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut parts = bytes.split(|byte| *byte == b'<');
        if let Some(first) = parts.next() {
            self.0.write_all(first)?;
        }
        for part in parts {
            self.0.write_all(b"\\u003c")?;
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
