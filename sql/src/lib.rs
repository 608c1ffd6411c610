//! Every line of SQL text of the .rpd format.
//!
//! The text lives in plain `.sql` files, so that the `sqlite3` shell runs them too:
//! `sqlite3 fresh.rpd < tables.sql`. This crate carries them into the program and does nothing else: no connection,
//! no logic. Statements that create or describe something leave it alone where it exists already, so that running a
//! file a second time, or on an older trace, adds only what is missing.

#![forbid(unsafe_code)]

pub mod ext;
pub mod insert;
pub mod query;

/// The tables of schema version 2.
pub const TABLES: &str = include_str!("../tables.sql");

/// The one secondary index of a fresh file.
pub const INDEXES: &str = include_str!("../indexes.sql");

/// View `api`, which other views read.
pub const API_VIEW: &str = include_str!("../api.sql");

/// The other views of a fresh file, save `dispatch`, which is beside its table in [`ext::DISPATCH`].
pub const VIEWS: &str = include_str!("../views.sql");

/// What `rocpd_metadata` says of a fresh file: the schema version, and which columns refer to strings.
pub const METADATA: &str = include_str!("../metadata.sql");

/// All that makes a fresh file, in the order in which it must run.
pub const FRESH: [&str; 6] = [TABLES, INDEXES, API_VIEW, VIEWS, METADATA, ext::DISPATCH];

/// The same statements for a file of schema 3, where the arguments of calls are texts of a table of their own.
#[must_use]
pub fn for_schema_3(statements: &str) -> String {
    statements.replace("\"rocpd_string\" /* schema 3: rocpd_ustring */", "\"rocpd_ustring\"")
}

/// View `nop` and the strides of nodes, for a file with traces of several hosts.
pub const NODES: &str = include_str!("../nodes.sql");

/// View `napi` for the same.
pub const NODE_API: &str = include_str!("../node_api.sql");

/// View `napi` for a file of schema 3.
pub const NODE_API_3: &str = include_str!("../node_api_3.sql");
