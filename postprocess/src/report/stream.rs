//! The stream of a call. Launches and copies have it in a column; of a launch of a graph it is read from the arguments.

use anyhow::Result;
use rpd_schema::Version;
use rpd_schema::text::shown;
use rusqlite::Connection;

use super::by_id::{ById, OrderedRows, text};
use crate::passes::graph::function::{GraphFunction, launch_stream};
use crate::trace::Strings;
use crate::trace::ids::Ids;

/// The streams of a trace.
pub(super) struct Streams<'trace> {
    tables: [ById<'trace>; 2],
    graphs: ById<'trace>,
}

impl<'trace> Streams<'trace> {
    /// Those of a trace; of schema 1 none.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn of(trace: &'trace Connection, version: Version) -> Result<Streams<'trace>> {
        let table = |table: &str| match version {
            Version::V1 => Ok(ById::none()),
            _ => ById::of(trace, table, "api_ptr_id", &shown("stream")),
        };
        let mut strings = Strings::of(trace)?;
        let graphs = "SELECT id FROM rocpd_string WHERE string GLOB '*GraphLaunch*'";
        let mut launches: Vec<String> = Vec::new();
        for id in Ids::of(trace, graphs, [])?.into_inner() {
            let id = id.cast_signed();
            if GraphFunction::of(&strings.get(id)?.unwrap_or_default()) == Some(GraphFunction::Launch) {
                launches.push(id.to_string());
            }
        }
        let texts = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
        let graphs = match launches.is_empty() || version == Version::V1 {
            true => ById::none(),
            false => ById::query(
                trace,
                &format!(
                    "SELECT A.id, {} FROM rocpd_api A JOIN {texts} G ON G.id = A.args_id
                     WHERE typeof(A.id) = 'integer' AND A.apiName_id IN ({}) ORDER BY A.id",
                    rpd_schema::text::arguments("G.string"),
                    launches.join(", ")
                ),
            )?,
        };
        Ok(Streams { tables: [table("rocpd_kernelapi")?, table("rocpd_copyapi")?], graphs })
    }

    /// Begins to read.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn rows(&mut self) -> rusqlite::Result<StreamRows<'_>> {
        let [kernels, copies] = &mut self.tables;
        Ok(StreamRows { tables: [kernels.rows()?, copies.rows()?], graphs: self.graphs.rows()? })
    }
}

/// The streams, as their calls are passed.
pub(super) struct StreamRows<'statement> {
    tables: [OrderedRows<'statement>; 2],
    graphs: OrderedRows<'statement>,
}

impl StreamRows<'_> {
    /// The stream of a call. Ids that are asked for never become smaller.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn at(&mut self, call: i64) -> rusqlite::Result<Option<String>> {
        for table in &mut self.tables {
            if let Some(values) = table.at(call)? {
                return Ok(Some(text(values, 0)).filter(|stream| !stream.is_empty()));
            }
        }
        let values = self.graphs.at(call)?;
        Ok(values.and_then(|values| launch_stream(&text(values, 0)).map(str::to_string)))
    }
}
