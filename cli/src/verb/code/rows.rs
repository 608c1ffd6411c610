//! Kernels as rows: for people, as JSON, as CSV.

use std::io::{self, Write};

use rpd_postprocess::code::{KernelArgument, KernelFacts};

use crate::output;
use crate::output::csv_field::csv_field;
use crate::output::json::json;
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

/// Where kernels are written, and how.
pub(super) struct KernelRows<'a, W> {
    out: &'a mut W,
    form: RowsForm,
    has_arguments: bool,
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
    pub(super) fn begin(out: &'a mut W, form: RowsForm, has_arguments: bool) -> io::Result<Self> {
        use Align::{Left, Right};
        let table = Table::new(&[
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
            ("kernel", Left),
        ])
        .sparing(&[
            "kernarg",
            "wave",
            "groups",
            "scratch",
            "AGPR",
            "workgroup",
            "SGPR",
            "spills",
            "LDS",
            "target",
        ]);
        match form {
            RowsForm::Json => write!(out, "[")?,
            RowsForm::Csv => {
                let arguments = if has_arguments { &ARGUMENT_FIELDS[..] } else { &[] };
                output::write_csv_record(out, FIELDS.iter().chain(arguments))?;
            }
            RowsForm::Table { .. } => {}
        }
        Ok(KernelRows { out, form, has_arguments, table, is_first: true })
    }

    pub(super) fn row(&mut self, kernel: &KernelFacts) -> io::Result<()> {
        match self.form {
            RowsForm::Table { .. } => {
                self.table.row(cells(kernel));
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
        let record = record(kernel);
        if !self.has_arguments {
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

fn cells(kernel: &KernelFacts) -> Vec<String> {
    let fit = kernel.occupancy.as_ref();
    let or_unknown = |cell: Option<String>| cell.unwrap_or_else(|| UNKNOWN.to_string());
    vec![
        kernel.target.clone(),
        kernel.vgpr.to_string(),
        kernel.agpr.to_string(),
        kernel.sgpr.to_string(),
        kernel.lds.to_string(),
        format!("{}{}", kernel.scratch, if kernel.has_dynamic_stack { "+" } else { "" }),
        format!("{}/{}", kernel.vgpr_spills, kernel.sgpr_spills),
        kernel.kernarg.to_string(),
        kernel.wavefront.to_string(),
        workgroup(kernel),
        or_unknown(fit.map(|fit| format!("{}/{}", fit.waves, fit.hardware))),
        or_unknown(fit.map(|fit| fit.limited_by.join("+"))),
        or_unknown(fit.map(|fit| fit.workgroups.to_string())),
        kernel.kernel.clone(),
    ]
}

fn workgroup(kernel: &KernelFacts) -> String {
    match (kernel.required_workgroup, kernel.max_workgroup) {
        (Some([x, y, z]), _) => format!("{x}x{y}x{z}"),
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

fn record(kernel: &KernelFacts) -> Vec<String> {
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
    record
}
