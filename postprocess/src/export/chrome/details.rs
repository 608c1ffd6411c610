//! How a kernel was launched, and what was copied, as arguments with rocprofv3's names.
//!
//! Of a launch that ext_dispatch knows (kernels of graphs too) it is asked, of others the call that launched them.

use anyhow::Result;
use rpd_schema::text::{shown, text_of};
use rusqlite::{Connection, OptionalExtension, Row, Statement};
use rustc_hash::FxHashMap;

use super::digits;
use crate::export::texts::escape_into;
use crate::trace::layout::{Layout, TableLayout, quote};
use crate::trace::op_kind::OpKind;

/// What launches are described by, in the order in which it is read.
const LAUNCH: [&str; 9] = [
    "gridX",
    "gridY",
    "gridZ",
    "workgroupX",
    "workgroupY",
    "workgroupZ",
    "groupSegmentSize",
    "privateSegmentSize",
    "codeObject_id",
];

/// Code objects that are remembered at once.
const REMEMBERED: usize = 1 << 14;

/// Arguments of operations.
pub(super) struct Details<'trace> {
    dispatches: Option<Statement<'trace>>,
    launches: Option<Statement<'trace>>,
    copies: Option<Statement<'trace>>,
    registers: Option<Statement<'trace>>,
    /// Registers of code objects, as arguments.
    known_registers: FxHashMap<i64, Vec<u8>>,
    /// The last call that was asked of, and its arguments: one launch may have hundreds of operations.
    last: Option<(i64, bool, Vec<u8>)>,
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
    /// Those of a trace.
    ///
    /// # Errors
    /// When its tables cannot be read.
    pub(super) fn of(trace: &'trace Connection) -> Result<Details<'trace>> {
        let layout = Layout::of(trace)?;
        let launch: Vec<&str> = LAUNCH.into_iter().chain(["stream"]).collect();
        Ok(Details {
            dispatches: question(trace, &layout, ("ext_dispatch", "op_id"), &LAUNCH)?,
            launches: question(trace, &layout, ("rocpd_kernelapi", "api_ptr_id"), &launch)?,
            copies: question(trace, &layout, ("rocpd_copyapi", "api_ptr_id"), &["size", "stream"])?,
            registers: question(trace, &layout, ("rocpd_kernelcodeobject", "id"), &["vgpr", "sgpr"])?,
            known_registers: FxHashMap::default(),
            last: None,
        })
    }

    /// Appends the arguments of an operation, each behind a comma.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn write(
        &mut self,
        bytes: &mut Vec<u8>,
        kind: OpKind,
        op: i64,
        call: Option<i64>,
    ) -> Result<()> {
        let mut is_known = false;
        if kind == OpKind::Kernel
            && let Some(dispatches) = &mut self.dispatches
            && let Some(launch) = dispatches.query_row([op], launch).optional()?
        {
            is_known = true;
            self.write_launch(bytes, &launch)?;
        }
        let Some(call) = call else { return Ok(()) };
        if self.last.as_ref().is_none_or(|(last, knew, _)| (*last, *knew) != (call, is_known)) {
            let mut arguments = self.last.take().map_or_else(Vec::new, |(_, _, arguments)| arguments);
            arguments.clear();
            self.write_call(&mut arguments, call, is_known)?;
            self.last = Some((call, is_known, arguments));
        }
        if let Some((_, _, arguments)) = &self.last {
            bytes.extend_from_slice(arguments);
        }
        Ok(())
    }

    /// Appends what the rows of the call say: geometry unless it is known, and stream.
    fn write_call(&mut self, bytes: &mut Vec<u8>, call: i64, is_known: bool) -> Result<()> {
        if let Some(launches) = &mut self.launches {
            let found =
                launches.query_row([call], |row| Ok((launch(row)?, text(row, LAUNCH.len())?))).optional()?;
            if let Some((launch, stream)) = found {
                if !is_known {
                    self.write_launch(bytes, &launch)?;
                }
                write_stream(bytes, &stream);
                return Ok(());
            }
        }
        if let Some(copies) = &mut self.copies {
            let found = copies
                .query_row([call], |row| Ok((row.get_ref(0)?.as_i64().ok(), text(row, 1)?)))
                .optional()?;
            if let Some((size, stream)) = found {
                number(bytes, "copy_bytes", size);
                write_stream(bytes, &stream);
            }
        }
        Ok(())
    }

    fn write_launch(&mut self, bytes: &mut Vec<u8>, launch: &Launch) -> Result<()> {
        let [grid_x, grid_y, grid_z, x, y, z, lds, scratch, code_object] = *launch;
        if let (Some(grid), Some(workgroup)) = (size([grid_x, grid_y, grid_z]), size([x, y, z])) {
            for (name, [x, y, z]) in [("grid", grid), ("workgroup", workgroup)] {
                bytes.extend_from_slice(b",\"");
                bytes.extend_from_slice(name.as_bytes());
                bytes.extend_from_slice(b"\":[");
                digits(bytes, x);
                bytes.push(b',');
                digits(bytes, y);
                bytes.push(b',');
                digits(bytes, z);
                bytes.push(b']');
            }
            let product = |sizes: &[i64]| sizes.iter().try_fold(1_i64, |all, size| all.checked_mul(*size));
            // rocprofv3 counts work-items.
            number(
                bytes,
                "grid_size",
                product(&grid).zip(product(&workgroup)).and_then(|(of, each)| of.checked_mul(each)),
            );
            number(bytes, "workgroup_size", product(&workgroup));
        }
        number(bytes, "LDS_Block_Size", lds);
        number(bytes, "Scratch_Size", scratch);
        if let Some(code_object) = code_object.filter(|id| *id != 0) {
            self.write_registers(bytes, code_object)?;
        }
        Ok(())
    }

    fn write_registers(&mut self, bytes: &mut Vec<u8>, code_object: i64) -> Result<()> {
        let Some(registers) = &mut self.registers else { return Ok(()) };
        if !self.known_registers.contains_key(&code_object) {
            let mut arguments = Vec::new();
            let found = registers.query_row([code_object], |row| {
                Ok((row.get_ref(0)?.as_i64().ok(), row.get_ref(1)?.as_i64().ok()))
            });
            if let Some((vgpr, sgpr)) = found.optional()? {
                number(&mut arguments, "VGPR_Count", vgpr);
                number(&mut arguments, "SGPR_Count", sgpr);
            }
            if self.known_registers.len() == REMEMBERED {
                self.known_registers.clear();
            }
            self.known_registers.insert(code_object, arguments);
        }
        bytes.extend_from_slice(self.known_registers.get(&code_object).map_or(b"".as_slice(), Vec::as_slice));
        Ok(())
    }
}

/// The values of [`LAUNCH`]; none where the trace has no number.
type Launch = [Option<i64>; LAUNCH.len()];

fn launch(row: &Row<'_>) -> rusqlite::Result<Launch> {
    let mut launch = Launch::default();
    for (column, value) in launch.iter_mut().enumerate() {
        *value = row.get_ref(column)?.as_i64().ok();
    }
    Ok(launch)
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(text_of(row.get_ref(column)?).into_owned())
}

/// Three dimensions, if they can be.
fn size(values: [Option<i64>; 3]) -> Option<[i64; 3]> {
    let [Some(x), Some(y), Some(z)] = values else { return None };
    [x, y, z].iter().all(|extent| *extent > 0).then_some([x, y, z])
}

/// Appends a number that is known.
fn number(bytes: &mut Vec<u8>, name: &str, value: Option<i64>) {
    if let Some(value) = value {
        bytes.extend_from_slice(b",\"");
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b"\":");
        digits(bytes, value);
    }
}

/// Appends a stream: as the trace has it, and as the number that it is.
fn write_stream(bytes: &mut Vec<u8>, stream: &str) {
    let stream = stream.trim();
    if stream.is_empty() {
        return;
    }
    bytes.extend_from_slice(b",\"stream\":\"");
    escape_into(bytes, stream);
    bytes.push(b'"');
    let handle = stream.strip_prefix("0x").and_then(|handle| i64::from_str_radix(handle, 16).ok());
    number(bytes, "stream_ID", handle);
}
