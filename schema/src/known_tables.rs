//! What a writer knows of its file's tables: which are there, and whether others have written since it looked.

use crate::create::complete;
use crate::transaction::Presence;
use rpd_sql::ext::RECORDERS;
use rusqlite::Connection;

/// Tables that no fresh file has: they are added with their first row. In the order of [`RECORDERS`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum LateTables {
    KernelCodeObject,
    CodeObject,
    Replacement,
    Validation,
    Instrumentation,
    LibraryCall,
    LaunchAttribute,
    Tick,
}

#[derive(Debug, Default)]
pub(crate) struct KnownTables {
    /// SQLite's number for what others have written: their commits change it, the writer's own do not.
    data_version: i64,
    /// SQLite's number of the schema when it was last known to be complete.
    schema_version: i64,
    late: [Presence; RECORDERS.len()],
}

impl KnownTables {
    /// All tables of a fresh file are there.
    pub(crate) fn are_complete(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.data_version = data_version(connection)?;
        self.schema_version = schema_version(connection)?;
        Ok(())
    }

    /// Whether others have written since this was last asked. Tables that they have removed are added again.
    pub(crate) fn are_in_doubt(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let version = data_version(connection)?;
        if version == self.data_version {
            return Ok(false);
        }
        if schema_version(connection)? != self.schema_version {
            self.late = Default::default();
            complete(connection)?;
            self.schema_version = schema_version(connection)?;
        }
        self.data_version = version;
        Ok(true)
    }

    /// Makes sure that these tables are there.
    pub(crate) fn add(&mut self, connection: &Connection, tables: LateTables) -> rusqlite::Result<()> {
        let presence = &mut self.late[tables as usize];
        if *presence == Presence::Unknown {
            connection.execute_batch(RECORDERS[tables as usize])?;
            *presence = Presence::InTransaction;
        }
        Ok(())
    }

    /// The open transaction is in the file.
    pub(crate) fn commit(&mut self) {
        self.late.iter_mut().for_each(Presence::commit);
    }

    /// The open transaction is not in the file.
    pub(crate) fn roll_back(&mut self) {
        self.late.iter_mut().for_each(Presence::roll_back);
    }
}

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA schema_version", [], |row| row.get(0))
}
