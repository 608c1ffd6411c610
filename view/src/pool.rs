//! Connections that read the file, a few at a time.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rpd_schema::{Version, open_read};
use rusqlite::Connection;
use thiserror::Error;

/// Connections at once.
const MOST: u32 = 4;

/// None is kept longer without use.
const IDLE: Duration = Duration::from_secs(10);

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum Failure {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] rpd_schema::Error),
    /// Another file has its name now.
    #[error("the trace was replaced by another file since it was read: start rpd view again")]
    Replaced,
    /// It is not there.
    #[error("the trace cannot be looked at")]
    Gone(#[from] io::Error),
}

/// Which file a name is of: device and inode.
type Identity = (u64, u64);

fn identity(file: &Path) -> io::Result<Identity> {
    fs::metadata(file).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Opens the trace as schema has it, for reading.
#[derive(Debug)]
pub struct Manager {
    file: PathBuf,
    identity: Identity,
}

impl Manager {
    fn look(&self) -> Result<(), Failure> {
        if identity(&self.file)? == self.identity { Ok(()) } else { Err(Failure::Replaced) }
    }
}

impl r2d2::ManageConnection for Manager {
    type Connection = (Connection, Version);
    type Error = Failure;

    fn connect(&self) -> Result<(Connection, Version), Failure> {
        self.look()?;
        Ok(open_read(&self.file)?)
    }

    fn is_valid(&self, _connection: &mut (Connection, Version)) -> Result<(), Failure> {
        self.look()
    }

    fn has_broken(&self, _connection: &mut (Connection, Version)) -> bool {
        false
    }
}

/// Connections to one trace.
#[derive(Debug, Clone)]
pub struct Pool {
    connections: r2d2::Pool<Manager>,
    file: PathBuf,
    identity: Identity,
}

impl Pool {
    /// Those to the trace `file`; none is opened yet.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn of(file: &Path) -> Result<Pool> {
        let identity = identity(file)?;
        let manager = Manager { file: file.to_path_buf(), identity };
        let connections = r2d2::Pool::builder()
            .max_size(MOST)
            .min_idle(Some(0))
            .idle_timeout(Some(IDLE))
            .connection_timeout(Duration::from_secs(2))
            .error_handler(Box::new(r2d2::NopErrorHandler))
            .build_unchecked(manager);
        Ok(Pool { connections, file: file.to_path_buf(), identity })
    }

    /// Looks whether the file is still the one that was opened.
    ///
    /// # Errors
    /// Where it is another one now, or gone.
    pub fn look(&self) -> Result<(), Failure> {
        Manager { file: self.file.clone(), identity: self.identity }.look()
    }

    /// A connection, as soon as one is free.
    ///
    /// # Errors
    /// Where the file is another one now, or cannot be opened.
    pub fn get(&self) -> Result<r2d2::PooledConnection<Manager>> {
        self.look()?;
        Ok(self.connections.get()?)
    }
}
