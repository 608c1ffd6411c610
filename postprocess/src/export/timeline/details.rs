//! How a kernel was launched, and what was copied.
//!
//! For a launch that ext_dispatch has (kernels of graphs too) this comes from there, for others from the call that launched them.

use std::fmt::Write as _;

use anyhow::Result;
use rpd_schema::text::{arguments, shown, text_of};
use rusqlite::{Connection, OptionalExtension, Row, Statement};
use rustc_hash::FxHashMap;

use crate::passes::graph::function::stream_of_launch;
use crate::trace::launch::LAUNCH_COLUMNS;
use crate::trace::layout::{Layout, TableLayout, quote};
use crate::trace::op_kind::OpKind;
use crate::trace::queue_streams::QueueStreams;

/// What CUDA tells of a kernel besides, in the order in which it is read.
const ATTRIBUTES: [&str; 5] = ["graph", "graphNode", "clusterX", "clusterY", "clusterZ"];

/// Code objects that are remembered at once.
const REMEMBERED: usize = 1 << 14;

/// Launches of which is known how they were made, and how many forms there are, at most: of others the trace is asked one by one.
const MOST_LAUNCHES: (usize, usize) = (3 << 19, 1 << 14);

/// How a kernel was launched.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::export) struct LaunchColumns {
    /// Workgroups, and work-items of each, by dimension.
    pub(in crate::export) sizes: Option<([i64; 3], [i64; 3])>,
    /// LDS of a workgroup, bytes.
    pub(in crate::export) lds: Option<i64>,
    /// Scratch memory of a work-item, bytes.
    pub(in crate::export) scratch: Option<i64>,
    /// Vector registers.
    pub(in crate::export) vgprs: Option<i64>,
    /// Scalar registers.
    pub(in crate::export) sgprs: Option<i64>,
}

/// What is known of an operation.
#[derive(Debug, Clone, Copy)]
pub(in crate::export) struct OpDetails<'a> {
    /// How it was launched.
    pub(in crate::export) launch: Option<LaunchColumns>,
    /// Which node of which graph a kernel of CUDA is.
    pub(in crate::export) graph_node: Option<(i64, i64)>,
    /// Workgroups of its clusters by dimension, where it was launched in clusters.
    pub(in crate::export) cluster: Option<[i64; 3]>,
    /// What was copied, bytes.
    pub(in crate::export) copy_bytes: Option<i64>,
    /// The GPUs from which and to which it was copied, where these are two. Other recorders number GPUs here otherwise than in rocpd_op, so one of them
    /// has to be the GPU of the operation.
    pub(in crate::export) copy_gpus: Option<(i64, i64)>,
    /// Where it was launched, as the trace has it; empty where that is not known.
    pub(in crate::export) stream: &'a str,
    /// Where its queue is a stream, the number of that.
    pub(in crate::export) queue_stream: Option<i64>,
}

impl OpDetails<'_> {
    /// The number that its stream is, if it is written as one.
    pub(in crate::export) fn stream_number(&self) -> Option<i64> {
        let handle = self.stream.strip_prefix("0x");
        self.queue_stream.or_else(|| i64::from_str_radix(handle?, 16).ok())
    }
}

/// Answers what is known of operations.
pub(in crate::export) struct Details<'trace> {
    dispatches: Option<Statement<'trace>>,
    attributes: Option<Statement<'trace>>,
    launches: Option<Statement<'trace>>,
    copies: Option<Statement<'trace>>,
    /// Name and arguments of a call: of a launch of a graph they say the stream.
    calls: Option<Statement<'trace>>,
    registers: Registers<'trace>,
    known: &'trace KnownLaunches,
    /// What is known of each of the forms to launch.
    of_forms: Vec<OfCall>,
    /// The last call that was asked of: one launch may have hundreds of operations.
    last: Option<(i64, Found)>,
    queues: QueueStreams,
    /// The last queue that is a stream, as a text.
    queue: String,
}

/// What the rows of a call say.
#[derive(Default)]
struct OfCall {
    launch: Option<LaunchColumns>,
    copy_bytes: Option<i64>,
    copy_gpus: Option<(i64, i64)>,
    stream: String,
}

/// Where something is known of a call.
enum Found {
    /// The form of its launch.
    Launch(usize),
    Own(OfCall),
}

/// How calls launched kernels: few forms, many calls.
#[derive(Default)]
pub(in crate::export) struct KnownLaunches {
    /// Ids of calls, ascending.
    calls: Vec<i64>,
    form_of: Vec<u32>,
    /// Values and stream.
    forms: Vec<(Values, String)>,
    /// Whether calls that are not among them launched no kernel by themselves.
    is_complete: bool,
}

impl KnownLaunches {
    /// Reads them.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(in crate::export) fn of(trace: &Connection) -> Result<KnownLaunches> {
        let layout = Layout::of(trace)?;
        let key = "api_ptr_id";
        let Some(table) = layout.table("rocpd_kernelapi").filter(|table| table.has(key)) else {
            return Ok(KnownLaunches { is_complete: true, ..KnownLaunches::default() });
        };
        let columns: Vec<String> = [key]
            .iter()
            .chain(&LAUNCH_COLUMNS)
            .chain(&["stream"])
            .map(|name| column_of(table, name))
            .collect();
        let columns = columns.join(", ");
        let mut rows = trace.prepare(&format!(
            "SELECT {columns} FROM {} WHERE typeof({key}) = 'integer' ORDER BY {key}",
            quote(&table.name)
        ))?;
        let mut rows = rows.query([])?;
        let mut numbers: FxHashMap<(Values, String), u32> = FxHashMap::default();
        let mut launches = KnownLaunches::default();
        while let Some(row) = rows.next()? {
            let call = row.get(0)?;
            // A table without a key may have a call twice.
            if launches.calls.last() == Some(&call) {
                continue;
            }
            if launches.calls.len() == MOST_LAUNCHES.0 || launches.forms.len() == MOST_LAUNCHES.1 {
                return Ok(launches);
            }
            let form = (values_from(row, 1)?, text(row, 1 + LAUNCH_COLUMNS.len())?);
            let number = match numbers.get(&form) {
                Some(number) => *number,
                None => {
                    let number = launches.forms.len() as u32;
                    launches.forms.push(form.clone());
                    numbers.insert(form, number);
                    number
                }
            };
            launches.calls.push(call);
            launches.form_of.push(number);
        }
        launches.is_complete = true;
        Ok(launches)
    }

    /// The form in which a call launched.
    fn form(&self, call: i64) -> Option<usize> {
        let at = self.calls.binary_search(&call).ok()?;
        Some(self.form_of[at] as usize)
    }
}

/// Registers of code objects: vector and scalar ones.
struct Registers<'trace> {
    rows: Option<Statement<'trace>>,
    known: FxHashMap<i64, [Option<i64>; 2]>,
}

/// Prepares the question for columns of a table by its key; a column that is not there is NULL.
fn question<'trace>(
    trace: &'trace Connection,
    layout: &Layout,
    (table, key): (&str, &str),
    columns: &[&str],
) -> Result<Option<Statement<'trace>>> {
    let Some(found) = layout.table(table).filter(|table| table.has(key)) else { return Ok(None) };
    let column = |name: &&str| column_of(found, name);
    let columns: Vec<String> = columns.iter().map(column).collect();
    let query =
        format!("SELECT {} FROM {} WHERE {} = ?1", columns.join(", "), quote(&found.name), quote(key));
    Ok(Some(trace.prepare(&query)?))
}

fn column_of(table: &TableLayout, name: &str) -> String {
    match (table.has(name), name) {
        (false, _) => "NULL".to_string(),
        (true, "stream") => shown(&quote(name)),
        (true, _) => quote(name),
    }
}

impl<'trace> Details<'trace> {
    /// Those of a trace of which the launches are `known`.
    ///
    /// # Errors
    /// When its tables cannot be read.
    pub(in crate::export) fn of(
        trace: &'trace Connection,
        known: &'trace KnownLaunches,
    ) -> Result<Details<'trace>> {
        let layout = Layout::of(trace)?;
        let launch: Vec<&str> = LAUNCH_COLUMNS.into_iter().chain(["stream"]).collect();
        let texts = if layout.table("rocpd_ustring").is_some() { "rocpd_ustring" } else { "rocpd_string" };
        let has_arguments = layout.table("rocpd_api").is_some_and(|table| table.has("args_id"));
        let calls = match has_arguments {
            true => Some(trace.prepare(&format!(
                "SELECT N.string, {} FROM rocpd_api A JOIN rocpd_string N ON N.id = A.apiName_id JOIN {texts} G ON G.id = A.args_id
                 WHERE A.id = ?1",
                arguments("G.string")
            ))?),
            false => None,
        };
        let rows = question(trace, &layout, ("rocpd_kernelcodeobject", "id"), &["vgpr", "sgpr"])?;
        let mut registers = Registers { rows, known: FxHashMap::default() };
        let of_way = |(values, stream): &(Values, String)| {
            let launch = Some(registers.launch(*values)?);
            Ok(OfCall { launch, stream: stream.clone(), ..OfCall::default() })
        };
        let of_forms = known.forms.iter().map(of_way).collect::<Result<_>>()?;
        let launches = match known.is_complete {
            true => None,
            false => question(trace, &layout, ("rocpd_kernelapi", "api_ptr_id"), &launch)?,
        };
        Ok(Details {
            dispatches: question(trace, &layout, ("ext_dispatch", "op_id"), &LAUNCH_COLUMNS)?,
            attributes: question(trace, &layout, ("ext_launchattribute", "op_id"), &ATTRIBUTES)?,
            launches,
            copies: question(
                trace,
                &layout,
                ("rocpd_copyapi", "api_ptr_id"),
                &["size", "stream", "srcDevice", "dstDevice"],
            )?,
            calls,
            registers,
            known,
            of_forms,
            last: None,
            queues: QueueStreams::of(trace)?,
            queue: String::new(),
        })
    }

    /// What is known of the operation `op` on a queue of a GPU, which `call` caused.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(in crate::export) fn of_op(
        &mut self,
        kind: OpKind,
        op: i64,
        (gpu, queue): (i64, i64),
        call: Option<i64>,
    ) -> Result<OpDetails<'_>> {
        let (mut own, mut graph_node, mut cluster) = (None, None, None);
        if kind == OpKind::Kernel
            && let Some(dispatches) = &mut self.dispatches
            && let Some(values) = dispatches.query_row([op], values).optional()?
        {
            own = Some(self.registers.launch(values)?);
        }
        if kind == OpKind::Kernel
            && let Some(attributes) = &mut self.attributes
            && let Some([graph, node, x, y, z]) = attributes.query_row([op], values).optional()?
        {
            graph_node = graph.filter(|graph| *graph != 0).zip(node);
            cluster = size([x, y, z]);
        }
        if let Some(call) = call
            && self.last.as_ref().is_none_or(|(last, _)| *last != call)
        {
            let found = match self.known.form(call) {
                Some(form) => Found::Launch(form),
                None => Found::Own(self.of_call(call)?),
            };
            self.last = Some((call, found));
        }
        let of = match &self.last {
            Some((last, found)) if call == Some(*last) => Some(match found {
                Found::Launch(form) => &self.of_forms[*form],
                Found::Own(of) => of,
            }),
            _ => None,
        };
        let (launch, copy_bytes, copy_gpus, mut stream) = match of {
            Some(of) => (of.launch, of.copy_bytes, of.copy_gpus, of.stream.trim()),
            None => (None, None, None, ""),
        };
        let copy_gpus = copy_gpus.filter(|(from, to)| from != to && [from, to].contains(&&gpu));
        let queue_stream = self.queues.stream(gpu, queue);
        if let Some(number) = queue_stream {
            self.queue.clear();
            write!(self.queue, "{number}")?;
            stream = &self.queue;
        }
        let launch = own.or(launch);
        Ok(OpDetails { launch, graph_node, cluster, copy_bytes, copy_gpus, stream, queue_stream })
    }

    fn of_call(&mut self, call: i64) -> Result<OfCall> {
        if let Some(launches) = &mut self.launches {
            let found = launches
                .query_row([call], |row| Ok((values(row)?, text(row, LAUNCH_COLUMNS.len())?)))
                .optional()?;
            if let Some((values, stream)) = found {
                let launch = Some(self.registers.launch(values)?);
                return Ok(OfCall { launch, stream, ..OfCall::default() });
            }
        }
        if let Some(copies) = &mut self.copies {
            let found = copies.query_row([call], |row| {
                let number = |column| row.get_ref(column).map(|value| value.as_i64().ok());
                let gpus = number(2)?.zip(number(3)?).filter(|(from, to)| *from >= 0 && *to >= 0);
                Ok(OfCall { launch: None, copy_bytes: number(0)?, copy_gpus: gpus, stream: text(row, 1)? })
            });
            if let Some(found) = found.optional()? {
                return Ok(found);
            }
        }
        let mut stream = String::new();
        if let Some(calls) = &mut self.calls
            && let Some((function, arguments)) =
                calls.query_row([call], |row| Ok((text(row, 0)?, text(row, 1)?))).optional()?
        {
            stream = stream_of_launch(&function, &arguments).unwrap_or_default().to_string();
        }
        Ok(OfCall { stream, ..OfCall::default() })
    }
}

impl Registers<'_> {
    /// The launch with these values.
    fn launch(&mut self, values: Values) -> Result<LaunchColumns> {
        let [grid_x, grid_y, grid_z, x, y, z, lds, scratch, code_object] = values;
        let [vgprs, sgprs] = match code_object.filter(|id| *id != 0) {
            Some(code_object) => self.of(code_object)?,
            None => [None, None],
        };
        let sizes = size([grid_x, grid_y, grid_z]).zip(size([x, y, z]));
        Ok(LaunchColumns { sizes, lds, scratch, vgprs, sgprs })
    }

    fn of(&mut self, code_object: i64) -> Result<[Option<i64>; 2]> {
        let Some(rows) = &mut self.rows else { return Ok([None, None]) };
        if let Some(known) = self.known.get(&code_object) {
            return Ok(*known);
        }
        let found =
            rows.query_row([code_object], |row| Ok([0, 1].map(|at| row.get_ref(at).ok()?.as_i64().ok())));
        let found = found.optional()?.unwrap_or_default();
        if self.known.len() == REMEMBERED {
            self.known.clear();
        }
        self.known.insert(code_object, found);
        Ok(found)
    }
}

impl LaunchColumns {
    /// Work-items of the grid and of a workgroup; none where they are more than there are numbers.
    pub(in crate::export) fn work_items(&self) -> (Option<i64>, Option<i64>) {
        let product = |sizes: [i64; 3]| sizes.iter().try_fold(1_i64, |all, size| all.checked_mul(*size));
        let Some((grid, workgroup)) = self.sizes else { return (None, None) };
        let each = product(workgroup);
        (product(grid).zip(each).and_then(|(of, each)| of.checked_mul(each)), each)
    }
}

/// The values of [`LAUNCH_COLUMNS`].
type Values = [Option<i64>; LAUNCH_COLUMNS.len()];

/// The first columns of a row; none where the trace has no number.
fn values<const COLUMNS: usize>(row: &Row<'_>) -> rusqlite::Result<[Option<i64>; COLUMNS]> {
    values_from(row, 0)
}

/// The columns of a row from `first` on.
fn values_from<const COLUMNS: usize>(
    row: &Row<'_>,
    first: usize,
) -> rusqlite::Result<[Option<i64>; COLUMNS]> {
    let mut values = [None; COLUMNS];
    for (at, value) in values.iter_mut().enumerate() {
        *value = row.get_ref(first + at)?.as_i64().ok();
    }
    Ok(values)
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(text_of(row.get_ref(column)?).into_owned())
}

/// Three dimensions, if they can be.
fn size(values: [Option<i64>; 3]) -> Option<[i64; 3]> {
    let [Some(x), Some(y), Some(z)] = values else { return None };
    [x, y, z].iter().all(|extent| *extent > 0).then_some([x, y, z])
}
