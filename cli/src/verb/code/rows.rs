//! Kernels as rows: for people, as JSON, as CSV.

use std::io::{self, Write};
use std::path::Path;

use rpd_escape::{csv_field, json};
use rpd_postprocess::code::{BuildLaunches, Fit, KernelArgument, KernelFacts, KernelNeeds, work_items};

use crate::output;
use crate::output::candidate::CacheDirectory;
use crate::output::quantity::duration;
use crate::output::table::{Align, Table};

/// How kernels are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verb) enum RowsForm {
    /// Aligned, in at most so many columns.
    Table { room: Option<usize> },
    /// A JSON array of objects, one per line.
    Json,
    /// A header line, a line per kernel; per argument where these were asked for.
    Csv,
}

/// What there is beside the facts of a kernel.
pub(in crate::verb) struct RowsColumns<'a> {
    /// Arguments were asked for.
    pub(in crate::verb) arguments: bool,
    /// A line below a kernel says that they are not known.
    pub(in crate::verb) says_unknown_arguments: bool,
    /// The kernels are those of a trace: each row is a size that they were launched in.
    pub(in crate::verb) launches: bool,
    /// Candidates ran in the place of some.
    pub(in crate::verb) ran: Option<CacheDirectory<'a>>,
    /// The kernels are those of the files in this directory.
    pub(in crate::verb) directory: Option<&'a Path>,
}

/// Where kernels are written, and how.
pub(in crate::verb) struct KernelRows<'a, W> {
    out: &'a mut W,
    form: RowsForm,
    columns: RowsColumns<'a>,
    table: Table,
    is_first: bool,
}

/// Columns of CSV; the last [`FIT_FIELDS`] are of the occupancy.
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
const FIT_FIELDS: usize = 10;
const LAUNCH_FIELDS: [&str; 6] =
    ["launched_workgroup", "launched_lds", "calls", "total_ns", "candidate", "sha256"];
const DIRECTORY_FIELD: &str = "file";
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
    pub(in crate::verb) fn begin(
        out: &'a mut W,
        form: RowsForm,
        columns: RowsColumns<'a>,
    ) -> io::Result<Self> {
        match form {
            RowsForm::Json => write!(out, "[")?,
            RowsForm::Csv => {
                let mut fields = FIELDS.to_vec();
                fields.extend(LAUNCH_FIELDS.iter().filter(|_| columns.launches));
                fields.extend(columns.directory.map(|_| DIRECTORY_FIELD));
                fields.extend(ARGUMENT_FIELDS.iter().filter(|_| columns.arguments));
                output::write_csv_record(out, fields)?;
            }
            RowsForm::Table { .. } => {}
        }
        let table = table(&columns);
        Ok(KernelRows { out, form, columns, table, is_first: true })
    }

    pub(in crate::verb) fn row(&mut self, kernel: &KernelFacts) -> io::Result<()> {
        match self.form {
            RowsForm::Table { .. } => {
                self.table.row(cells(kernel, &self.columns));
                if kernel.needs.is_none() {
                    self.table.below("the trace does not say what this build needs");
                } else if self.columns.says_unknown_arguments && kernel.arguments.is_none() {
                    self.table.below("its code object is not here, which has the arguments");
                }
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
        let record = record(kernel, &self.columns);
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

    pub(in crate::verb) fn end(self) -> io::Result<()> {
        match self.form {
            RowsForm::Table { room } if !self.table.is_empty() => self.table.write(self.out, 0, room),
            RowsForm::Table { .. } | RowsForm::Csv => Ok(()),
            RowsForm::Json => writeln!(self.out, "\n]"),
        }
    }
}

/// An empty table.
fn table(columns: &RowsColumns<'_>) -> Table {
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
    header.extend(columns.ran.as_ref().map(|_| ("ran", Left)));
    header.extend(columns.directory.map(|_| (DIRECTORY_FIELD, Left)));
    header.push(("kernel", Left));
    Table::new(&header).sparing(&spare)
}

fn cells(kernel: &KernelFacts, columns: &RowsColumns<'_>) -> Vec<String> {
    let fit = kernel.occupancy.as_ref();
    let needs = kernel.needs.as_ref();
    let launches = kernel.launches.as_ref();
    let or_unknown = |cell: Option<String>| cell.unwrap_or_else(|| UNKNOWN.to_string());
    let number = |number: fn(&KernelNeeds) -> u32| or_unknown(needs.map(|needs| number(needs).to_string()));
    let scratch =
        |needs: &KernelNeeds| format!("{}{}", needs.scratch, if needs.has_dynamic_stack { "+" } else { "" });
    let mut cells = vec![
        if kernel.target.is_empty() { UNKNOWN.to_string() } else { kernel.target.clone() },
        number(|needs| needs.vgpr),
        number(|needs| needs.agpr),
        number(|needs| needs.sgpr),
        or_unknown(lds(needs, fit, launches)),
        or_unknown(needs.map(scratch)),
        or_unknown(needs.map(|needs| format!("{}/{}", needs.vgpr_spills, needs.sgpr_spills))),
        number(|needs| needs.kernarg),
        number(|needs| needs.wavefront),
        or_unknown(workgroup(needs, fit, launches)),
        or_unknown(fit.map(|fit| format!("{}/{}", fit.waves, fit.hardware))),
        or_unknown(fit.map(|fit| fit.limited_by.join("+"))),
        or_unknown(fit.map(|fit| fit.workgroups.to_string())),
    ];
    if columns.launches {
        cells.push(or_unknown(launches.map(|launches| launches.calls.to_string())));
        cells.push(or_unknown(launches.map(|launches| duration(launches.total_ns as f64))));
    }
    if let Some(cache) = &columns.ran {
        let candidate = launches.and_then(|launches| launches.candidate.as_ref());
        cells.push(match candidate {
            Some(candidate) => cache.named(&candidate.path, &candidate.sha256),
            None => "original".to_string(),
        });
    }
    if let Some(directory) = columns.directory {
        cells.push(within(directory, kernel.file.as_deref().unwrap_or_default()));
    }
    cells.push(kernel.kernel.clone());
    cells
}

/// The path of a file from the directory on that it is in.
pub(super) fn within(directory: &Path, file: &str) -> String {
    let file = Path::new(file);
    file.strip_prefix(directory).unwrap_or(file).display().to_string()
}

/// The LDS that the occupancy is for; behind it that of the launches, where that is another.
fn lds(needs: Option<&KernelNeeds>, fit: Option<&Fit>, launches: Option<&BuildLaunches>) -> Option<String> {
    match (fit, launches) {
        (Some(fit), Some(BuildLaunches { lds: Some(lds), .. })) if *lds != fit.lds => {
            Some(format!("{} ({lds})", fit.lds))
        }
        (Some(fit), _) => Some(fit.lds.to_string()),
        (None, Some(launches)) => launches.lds.map(|lds| lds.to_string()),
        (None, None) => needs.map(|needs| needs.lds.to_string()),
    }
}

/// The workgroup that the occupancy is for; behind it that of the launches, where that has more or fewer work-items.
fn workgroup(
    needs: Option<&KernelNeeds>,
    fit: Option<&Fit>,
    launches: Option<&BuildLaunches>,
) -> Option<String> {
    match (fit, launches) {
        (Some(fit), Some(launches)) if work_items(launches.workgroup) != fit.workgroup => {
            Some(format!("{} ({})", fit.workgroup, size(launches.workgroup)))
        }
        (_, Some(launches)) => Some(size(launches.workgroup)),
        (fit, None) => {
            let required = needs.and_then(|needs| needs.required_workgroup);
            let is_it = |size: &[u32; 3]| fit.is_none_or(|fit| fit.workgroup == work_items(*size));
            match (required.filter(is_it), fit) {
                (Some(required), _) => Some(format!("={}", size(required))),
                (None, Some(fit)) => Some(fit.workgroup.to_string()),
                (None, None) => needs
                    .map(|needs| needs.max_workgroup)
                    .filter(|most| *most > 0)
                    .map(|most| most.to_string()),
            }
        }
    }
}

/// `16x16`: directions of one work-item at the end are left out.
fn size(workgroup: [u32; 3]) -> String {
    match workgroup {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{x}x{y}"),
        [x, y, z] => format!("{x}x{y}x{z}"),
    }
}

/// Offset, size, kind, and what else is known of an argument.
pub(super) fn argument_line(argument: &KernelArgument) -> String {
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

fn record(kernel: &KernelFacts, columns: &RowsColumns<'_>) -> Vec<String> {
    let mut record = vec![
        csv_field(&kernel.kernel).into_owned(),
        csv_field(&kernel.symbol).into_owned(),
        csv_field(&kernel.target).into_owned(),
    ];
    if let Some(needs) = &kernel.needs {
        let numbers =
            [needs.vgpr, needs.agpr, needs.sgpr, needs.lds, needs.scratch, needs.has_dynamic_stack.into()];
        record.extend(numbers.map(|number| number.to_string()));
        let numbers =
            [needs.vgpr_spills, needs.sgpr_spills, needs.kernarg, needs.wavefront, needs.max_workgroup];
        record.extend(numbers.map(|number| number.to_string()));
        record.push(needs.required_workgroup.map_or(String::new(), |[x, y, z]| format!("{x}x{y}x{z}")));
    }
    record.resize(FIELDS.len() - FIT_FIELDS, String::new());
    if let Some(fit) = &kernel.occupancy {
        record.extend([fit.waves.to_string(), fit.hardware.to_string(), fit.limited_by.join("+")]);
        let numbers = [fit.by_vgpr, fit.by_sgpr, fit.by_lds, fit.by_workgroup];
        record.extend(numbers.map(|number| number.to_string()));
        record.extend([fit.workgroup, fit.lds, fit.workgroups].map(|number| number.to_string()));
    }
    record.resize(FIELDS.len(), String::new());
    if columns.launches {
        if let Some(launches) = &kernel.launches {
            let [x, y, z] = launches.workgroup;
            record.push(format!("{x}x{y}x{z}"));
            record.push(launches.lds.map_or(String::new(), |lds| lds.to_string()));
            record.extend([launches.calls, launches.total_ns].map(|number| number.to_string()));
            if let Some(candidate) = &launches.candidate {
                record.push(csv_field(&candidate.path).into_owned());
                record.push(csv_field(&candidate.sha256).into_owned());
            }
        }
        record.resize(FIELDS.len() + LAUNCH_FIELDS.len(), String::new());
    }
    if columns.directory.is_some() {
        record.push(csv_field(kernel.file.as_deref().unwrap_or_default()).into_owned());
    }
    record
}
