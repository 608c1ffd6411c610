//! Kernels as rows: for people, as JSON, as CSV.

use std::io::{self, Write};

use rpd_postprocess::code::{KernelArgument, KernelFacts};

use crate::output;
use crate::output::csv_field::csv_field;
use crate::output::json::json;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};

/// How kernels are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsForm {
    /// Aligned, in at most so many columns.
    Table { room: Option<usize> },
    /// A JSON array of objects, one per line.
    Json,
    /// A header line, a line per kernel; per argument where these were asked for.
    Csv,
}

/// What there is beside the facts of a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowsColumns {
    /// Arguments were asked for.
    pub(super) arguments: bool,
    /// The kernels are those of a trace: each row is a size that they were launched in.
    pub(super) launches: bool,
}

/// Where kernels are written, and how.
pub(super) struct KernelRows<'a, W> {
    out: &'a mut W,
    form: RowsForm,
    columns: RowsColumns,
    table: Table,
    is_first: bool,
}

/// Columns of CSV.
const FIELDS: [&str; 25] = [
    "kernel",
    "symbol",
    "target",
    "vgpr",
    "agpr",
    "sgpr",
    "lds",
    "scratch",
    "has_dynamic_stack",
    "vgpr_spills",
    "sgpr_spills",
    "kernarg",
    "wavefront",
    "max_workgroup",
    "required_workgroup",
    "waves",
    "hardware_waves",
    "limited_by",
    "by_vgpr",
    "by_sgpr",
    "by_lds",
    "by_workgroup",
    "workgroup",
    "workgroup_lds",
    "workgroups",
];
const LAUNCH_FIELDS: [&str; 4] = ["launched_workgroup", "launched_lds", "calls", "total_ns"];
const ARGUMENT_FIELDS: [&str; 7] = [
    "argument",
    "argument_offset",
    "argument_size",
    "argument_kind",
    "argument_type",
    "argument_address_space",
    "argument_access",
];
/// Shown where a fact is not known.
const UNKNOWN: &str = "-";

impl<'a, W: Write> KernelRows<'a, W> {
    pub(super) fn begin(out: &'a mut W, form: RowsForm, columns: RowsColumns) -> io::Result<Self> {
        match form {
            RowsForm::Json => write!(out, "[")?,
            RowsForm::Csv => {
                let mut fields = FIELDS.to_vec();
                fields.extend(LAUNCH_FIELDS.iter().filter(|_| columns.launches));
                fields.extend(ARGUMENT_FIELDS.iter().filter(|_| columns.arguments));
                output::write_csv_record(out, fields)?;
            }
            RowsForm::Table { .. } => {}
        }
        Ok(KernelRows { out, form, columns, table: table(columns), is_first: true })
    }

    pub(super) fn row(&mut self, kernel: &KernelFacts) -> io::Result<()> {
        match self.form {
            RowsForm::Table { .. } => {
                self.table.row(cells(kernel, self.columns));
                for argument in kernel.arguments.iter().flatten() {
                    self.table.below(&argument_line(argument));
                }
                Ok(())
            }
            RowsForm::Json => {
                let separator = if self.is_first { "\n" } else { ",\n" };
                self.is_first = false;
                write!(self.out, "{separator}{}", json(serde_json::to_string(kernel)?))
            }
            RowsForm::Csv => self.records(kernel),
        }
    }

    fn records(&mut self, kernel: &KernelFacts) -> io::Result<()> {
        let record = record(kernel, self.columns);
        if !self.columns.arguments {
            return output::write_csv_record(self.out, record);
        }
        let none = [const { String::new() }; ARGUMENT_FIELDS.len()];
        let mut arguments: Vec<_> = kernel.arguments.iter().flatten().map(argument_record).collect();
        if arguments.is_empty() {
            arguments.push(none);
        }
        let mut lines = arguments.iter().map(|argument| record.iter().chain(argument));
        lines.try_for_each(|line| output::write_csv_record(self.out, line))
    }

    pub(super) fn end(self) -> io::Result<()> {
        match self.form {
            RowsForm::Table { room } if !self.table.is_empty() => self.table.write(self.out, 0, room),
            RowsForm::Table { .. } | RowsForm::Csv => Ok(()),
            RowsForm::Json => writeln!(self.out, "\n]"),
        }
    }
}

/// An empty table. `launches`: with how often the kernels were launched, and for how long.
fn table(columns: RowsColumns) -> Table {
    use Align::{Left, Right};
    let mut header = vec![
        ("target", Left),
        ("VGPR", Right),
        ("AGPR", Right),
        ("SGPR", Right),
        ("LDS", Right),
        ("scratch", Right),
        ("spills", Right),
        ("kernarg", Right),
        ("wave", Right),
        ("workgroup", Right),
        ("occupancy", Right),
        ("limit", Left),
        ("groups", Right),
    ];
    let mut spare =
        vec!["kernarg", "wave", "groups", "scratch", "AGPR", "workgroup", "SGPR", "spills", "LDS", "target"];
    if columns.launches {
        header.extend([("calls", Right), ("total", Right)]);
        spare.extend(["calls", "total"]);
    }
    header.push(("kernel", Left));
    Table::new(&header).sparing(&spare)
}

fn cells(kernel: &KernelFacts, columns: RowsColumns) -> Vec<String> {
    let fit = kernel.occupancy.as_ref();
    let launches = kernel.launches.as_ref();
    let or_unknown = |cell: Option<String>| cell.unwrap_or_else(|| UNKNOWN.to_string());
    let mut cells = vec![
        if kernel.target.is_empty() { UNKNOWN.to_string() } else { kernel.target.clone() },
        kernel.vgpr.to_string(),
        kernel.agpr.to_string(),
        kernel.sgpr.to_string(),
        launches.map_or(kernel.lds, |launches| launches.lds).to_string(),
        format!("{}{}", kernel.scratch, if kernel.has_dynamic_stack { "+" } else { "" }),
        format!("{}/{}", kernel.vgpr_spills, kernel.sgpr_spills),
        kernel.kernarg.to_string(),
        kernel.wavefront.to_string(),
        launches.map_or_else(|| workgroup(kernel), |launches| size(launches.workgroup)),
        or_unknown(fit.map(|fit| format!("{}/{}", fit.waves, fit.hardware))),
        or_unknown(fit.map(|fit| fit.limited_by.join("+"))),
        or_unknown(fit.map(|fit| fit.workgroups.to_string())),
    ];
    if columns.launches {
        cells.push(or_unknown(launches.map(|launches| launches.calls.to_string())));
        cells.push(or_unknown(launches.map(|launches| duration(launches.total_ns as f64))));
    }
    cells.push(kernel.kernel.clone());
    cells
}

/// `16x16`: directions of one work-item at the end are left out.
fn size(workgroup: [u32; 3]) -> String {
    match workgroup {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}x{y}"),
        [x, y, z] => format!("{x}x{y}x{z}"),
    }
}

fn workgroup(kernel: &KernelFacts) -> String {
    match (kernel.required_workgroup, kernel.max_workgroup) {
        (Some(required), _) => format!("={}", size(required)),
        (None, 0) => UNKNOWN.to_string(),
        (None, most) => most.to_string(),
    }
}

fn argument_line(argument: &KernelArgument) -> String {
    let mut line = format!("{:>5} {:>4}  {}", argument.offset, argument.size, argument.kind);
    let more = [&argument.address_space, &argument.access, &argument.r#type, &argument.name];
    for word in more.into_iter().flatten() {
        line.push(' ');
        line.push_str(word);
    }
    line
}

fn argument_record(argument: &KernelArgument) -> [String; ARGUMENT_FIELDS.len()] {
    let text = |text: &Option<String>| csv_field(text.as_deref().unwrap_or_default()).into_owned();
    [
        text(&argument.name),
        argument.offset.to_string(),
        argument.size.to_string(),
        csv_field(&argument.kind).into_owned(),
        text(&argument.r#type),
        text(&argument.address_space),
        text(&argument.access),
    ]
}

fn record(kernel: &KernelFacts, columns: RowsColumns) -> Vec<String> {
    let mut record = vec![
        csv_field(&kernel.kernel).into_owned(),
        csv_field(&kernel.symbol).into_owned(),
        csv_field(&kernel.target).into_owned(),
    ];
    let numbers =
        [kernel.vgpr, kernel.agpr, kernel.sgpr, kernel.lds, kernel.scratch, kernel.has_dynamic_stack.into()];
    record.extend(numbers.map(|number| number.to_string()));
    let numbers =
        [kernel.vgpr_spills, kernel.sgpr_spills, kernel.kernarg, kernel.wavefront, kernel.max_workgroup];
    record.extend(numbers.map(|number| number.to_string()));
    record.push(kernel.required_workgroup.map_or(String::new(), |[x, y, z]| format!("{x}x{y}x{z}")));
    match &kernel.occupancy {
        Some(fit) => {
            record.extend([fit.waves.to_string(), fit.hardware.to_string(), fit.limited_by.join("+")]);
            let numbers = [fit.by_vgpr, fit.by_sgpr, fit.by_lds, fit.by_workgroup];
            record.extend(numbers.map(|number| number.to_string()));
            record.extend([fit.workgroup, fit.lds, fit.workgroups].map(|number| number.to_string()));
        }
        None => record.resize(FIELDS.len(), String::new()),
    }
    if columns.launches {
        match &kernel.launches {
            Some(launches) => {
                let [x, y, z] = launches.workgroup;
                record.push(format!("{x}x{y}x{z}"));
                record.extend(
                    [launches.lds.into(), launches.calls, launches.total_ns].map(|n: u64| n.to_string()),
                );
            }
            None => record.resize(FIELDS.len() + LAUNCH_FIELDS.len(), String::new()),
        }
    }
    record
}
