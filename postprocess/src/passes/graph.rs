//! Graphs: what was captured into them, under which handles they are launched, and how long launches take.

mod call;
mod captured;
mod composed;
pub(crate) mod function;
mod history;

use anyhow::Result;
use rpd_sql::ext;
use rpd_sql::insert::Insert;
use rusqlite::OptionalExtension;
use rusqlite::types::Value;

use super::subclass::{Base, Subclass};
use crate::pass::batch::InsertBatch;
use crate::pass::object::{has_table, has_view};
use crate::pass::sorted::Sorted;
use crate::pass::{Change, Definition, Making, Pass, PassReport};
use call::{FunctionNames, GraphCalls};
use captured::{Captured, CapturedLaunch};
use composed::Composition;
use history::GraphHistory;

/// The pass.
pub struct Graph;

/// What it is.
pub static DEFINITION: Definition = Definition {
    name: "graph",
    about: "Work out which kernels are in which graph, and what its launches take",
    tag: "Graph",
    reads: &["rocpd_api", "rocpd_kernelapi", "rocpd_api_ops", "rocpd_op"],
    tables: &[
        "ext_graph",
        "ext_graph_kernelapis",
        "ext_graph_kernelops",
        "rocpd_graphapi",
        "rocpd_graphLaunchapi",
    ],
    views: &["graphLaunch", "graphKernel", "graphapi", "graphLaunchapi"],
    changes: None,
    making: Some(Making {
        help: "\
Captures, instantiations and launches are matched within a process and by time. If only launches of
a graph were recorded, the graph is composed of what one of them ran: its row in ext_graph says so
(composed).

Example:
  rpd graph trace.rpd
  sqlite3 trace.rpd 'select * from graphLaunch order by gpuTime desc limit 10'
  sqlite3 trace.rpd 'select graphExec, count(*) from graphKernel group by 1'",
        options: &[],
        pass: |_| Box::new(Graph),
    }),
};

/// What stands for the handle of a graph that is composed of what its launches ran.
const COMPOSED: &str = "composed";

const GRAPH: Insert =
    Insert { table: "ext_graph", columns: &["id", "graph", "graphExec", "stream", "start", "end"] };
// Ids of these two are SQLite's own.
const KERNELAPIS: Insert =
    Insert { table: "ext_graph_kernelapis", columns: &["graph_id", "api_id", "sequence"] };
const KERNELOPS: Insert =
    Insert { table: "ext_graph_kernelops", columns: &["graph_id", "op_id", "sequence"] };

impl Pass for Graph {
    fn definition(&self) -> &'static Definition {
        &DEFINITION
    }

    fn run(&self, change: &Change<'_>) -> Result<PassReport> {
        let trace = change.trace;
        let names = FunctionNames::of(change)?;
        let mut report = PassReport::default();
        if !has_view(trace, "api")? {
            trace.execute_batch(&change.of_its_schema(rpd_sql::API_VIEW))?;
        }
        change.show("graphs: calls");
        let calls = GraphCalls::of(change, names.functions)?;
        calls.list(change)?;
        let subclasses = [
            ("graph", "rocpd_graphapi", &names.captures, &["stream", "graph", "graphExec"][..]),
            ("graphLaunch", "rocpd_graphLaunchapi", &names.launches, &["graphExec", "stream"][..]),
        ];
        for (name, table, members, columns) in subclasses {
            let members: Vec<&str> = members.iter().map(String::as_str).collect();
            let subclass = Subclass {
                base: Base::Api,
                name,
                members: &members,
                columns,
                types: &[],
                among: Some("temp.graph_call"),
            };
            report.rows.insert(table, subclass.make(trace, change.version)?.rows);
        }
        trace.execute_batch("DROP TABLE temp.graph_call")?;
        trace.execute_batch(ext::GRAPH)?;
        let has_dispatches = has_table(trace, "ext_dispatch")?;
        trace.execute_batch(if has_dispatches { ext::GRAPH_KERNEL } else { ext::GRAPH_KERNEL_PLAIN })?;

        let mut launch = trace.prepare("SELECT 1 FROM rocpd_kernelapi WHERE api_ptr_id = ?1")?;
        let history = GraphHistory::of(&calls.others, |api| {
            launch.query_row([api], |_| Ok(())).optional().map(|found| found.is_some())
        })?;
        let captured = Captured::of(change, &calls, &history)?;
        let composition = Composition::of(change, &calls, &history)?;
        remark(&mut report, &calls, &history, &captured, &composition);
        let WrittenRows { graphs, kernel_apis, kernel_ops } =
            fill(change, &calls, &history, captured, composition)?;
        report.rows.insert("ext_graph", graphs);
        report.rows.insert("ext_graph_kernelapis", kernel_apis);
        report.rows.insert("ext_graph_kernelops", kernel_ops);
        Ok(report)
    }
}

/// Rows written.
struct WrittenRows {
    graphs: u64,
    kernel_apis: u64,
    kernel_ops: u64,
}

fn fill(
    change: &Change<'_>,
    calls: &GraphCalls,
    history: &GraphHistory,
    captured: Captured,
    composition: Composition,
) -> Result<WrittenRows> {
    let trace = change.trace;
    let mut rows = InsertBatch::new(trace, &GRAPH)?;
    let text = |text: &str| Value::Text(text.to_string());
    let handle = |handle| text(calls.handles.text(handle));
    // Ids of the instances of each graph.
    let mut ids: Vec<Vec<i64>> = vec![Vec::new(); history.graphs.len()];
    let mut id = 0;
    for instance in &history.instances {
        let graph = &history.graphs[instance.graph];
        id += 1;
        ids[instance.graph].push(id);
        rows.push([
            Value::Integer(id),
            handle(graph.handle),
            handle(instance.exec),
            handle(graph.stream),
            Value::Integer(graph.start),
            Value::Integer(graph.end),
        ])?;
    }
    let first_composed = id + 1;
    for graph in &composition.graphs {
        id += 1;
        rows.push([
            Value::Integer(id),
            text(COMPOSED),
            handle(graph.exec),
            handle(graph.stream),
            Value::Integer(graph.start),
            Value::Integer(graph.end),
        ])?;
    }
    let composed_ids: Vec<Vec<i64>> = (first_composed..=id).map(|id| vec![id]).collect();
    Ok(WrittenRows {
        graphs: rows.finish()?,
        kernel_apis: number(InsertBatch::new(trace, &KERNELAPIS)?, captured.sorted, &ids)?,
        kernel_ops: number(InsertBatch::new(trace, &KERNELOPS)?, composition.kernels, &composed_ids)?,
    })
}

/// Writes the kernels of each graph, numbered from 1, once for each of its `ids`.
fn number(
    mut rows: InsertBatch<'_, i64, 3>,
    mut kernels: Sorted<CapturedLaunch>,
    ids: &[Vec<i64>],
) -> Result<u64> {
    let (mut graph, mut sequence) = (-1, 0);
    while let Some([of, _, kernel]) = kernels.next()? {
        sequence = if of == graph { sequence + 1 } else { 1 };
        graph = of;
        for id in &ids[of as usize] {
            rows.push([*id, kernel, sequence])?;
        }
    }
    Ok(rows.finish()?)
}

fn remark(
    report: &mut PassReport,
    calls: &GraphCalls,
    history: &GraphHistory,
    captured: &Captured,
    composition: &Composition,
) {
    report.remark(
        "impossible-calls",
        calls.impossible.len() as u64,
        "have no possible times or thread and are left out",
    );
    report.remark(
        "ambiguous-launches",
        captured.ambiguous,
        "were captured while several captures of their process were under way, on a stream and by a thread of none of them, \
         and are left out",
    );
    report.remark("unfinished-captures", history.unfinished, "have no begin or no end in the file");
    report.remark("failed-captures", history.failed, "gave no graph that the trace knows of");
    report.remark("unused-graphs", history.unused, "were never instantiated");
    report.remark(
        "composed-graphs",
        composition.graphs.len() as u64,
        "were made before the recording began, or by calls without arguments, and are composed of what one launch of each ran",
    );
    report.remark(
        "different-launches",
        composition.different,
        "ran another number of operations than the launch that their graph is composed of",
    );
}
