//! The tables of a dataset, and their columns.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::format::SortingColumn;
use parquet::schema::types::ColumnPath;

/// Rows of a row group: what a reader takes or leaves as a whole.
pub(super) const GROUP_ROWS: usize = 1 << 17;

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Integers most of which are near the one before: each is written as its difference from that.
    Near,
    /// Integers few of which differ.
    Few,
    /// A time, ns.
    Time,
    /// A text.
    Text,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
}

use Kind::{Few, Near, Text, Time};

pub(super) const OP: Table = Table {
    name: "op",
    columns: &[
        ("id", Near),
        ("gpuId", Few),
        ("queueId", Few),
        ("sequenceId", Near),
        ("start", Time),
        ("end", Time),
        ("description", Text),
        ("opType", Text),
        ("api_id", Near),
        ("part", Near),
    ],
};

pub(super) const KERNEL: Table = Table {
    name: "kernel",
    columns: &[
        ("id", Near),
        ("gpuId", Few),
        ("queueId", Few),
        ("sequenceId", Near),
        ("start", Time),
        ("end", Time),
        ("stream", Text),
        ("gridX", Few),
        ("gridY", Few),
        ("gridZ", Few),
        ("workgroupX", Few),
        ("workgroupY", Few),
        ("workgroupZ", Few),
        ("groupSegmentSize", Few),
        ("privateSegmentSize", Few),
        ("kernelName", Text),
        ("api_id", Near),
        ("part", Near),
    ],
};

pub(super) const API: Table = Table {
    name: "api",
    columns: &[
        ("id", Near),
        ("pid", Few),
        ("tid", Few),
        ("start", Time),
        ("end", Time),
        ("apiName", Text),
        ("args", Text),
        ("domain", Text),
        ("category", Text),
        ("part", Near),
    ],
};

pub(super) const COPY: Table = Table {
    name: "copy",
    columns: &[
        ("id", Near),
        ("pid", Few),
        ("tid", Few),
        ("start", Time),
        ("end", Time),
        ("apiName", Text),
        ("stream", Text),
        ("size", Few),
        ("width", Few),
        ("height", Few),
        ("kind", Few),
        ("dst", Text),
        ("src", Text),
        ("dstDevice", Few),
        ("srcDevice", Few),
        ("sync", Few),
        ("pinned", Few),
        ("part", Near),
    ],
};

pub(super) const MONITOR: Table = Table {
    name: "monitor",
    columns: &[
        ("id", Near),
        ("deviceType", Text),
        ("deviceId", Few),
        ("monitorType", Text),
        ("start", Time),
        ("end", Time),
        ("value", Text),
        ("part", Near),
    ],
};

pub(super) const SESSION: Table =
    Table { name: "session", columns: &[("session", Few), ("key", Text), ("value", Text), ("part", Near)] };

pub(super) const GPU: Table =
    Table { name: "gpu", columns: &[("gpuId", Few), ("key", Text), ("value", Text), ("part", Near)] };

/// All of them.
pub(super) const TABLES: [&Table; 7] = [&OP, &KERNEL, &API, &COPY, &MONITOR, &SESSION, &GPU];

impl Table {
    /// Names and types of its columns.
    pub(super) fn schema(&self) -> Arc<Schema> {
        let field = |(name, kind): &(&str, Kind)| {
            let of = match kind {
                Kind::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
                Kind::Near | Kind::Few | Kind::Time => DataType::Int64,
            };
            Field::new(*name, of, true)
        };
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// How its columns are written. Differences of neighbours save far more than any compression does, which finds nothing in them. The rest
    /// is compressed by Snappy, which takes little time, needs no C, and every reader has it.
    pub(super) fn properties(&self) -> WriterProperties {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_size(GROUP_ROWS)
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_created_by(concat!("rpd ", env!("CARGO_PKG_VERSION")).to_string());
        for (name, _) in self.columns.iter().filter(|(_, kind)| matches!(kind, Kind::Near | Kind::Time)) {
            let path = ColumnPath::from(*name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_compression(path, Compression::UNCOMPRESSED);
        }
        // Nearly every row group has texts from A to Z: their first and last one would leave none out.
        for (name, _) in self.columns.iter().filter(|(_, kind)| *kind == Kind::Text) {
            let path = ColumnPath::from(*name);
            properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
        let start = self.columns.iter().position(|(name, _)| *name == "start");
        let sorted = start
            .and_then(|start| i32::try_from(start).ok())
            .map(|column_idx| vec![SortingColumn { column_idx, descending: false, nulls_first: true }]);
        properties.set_sorting_columns(sorted).build()
    }
}
