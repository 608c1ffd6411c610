//! What AMD's rocprofv3 writes: its JSON, and its tables of comma-separated values.

mod json;
mod records;
mod tables;

pub use json::export;
pub use tables::{CsvTable, TABLES, table_file, tables};
