//! From waiting rows to the file: a few one by one; many as pages, where most belong into one gap of their table ([`crate::leaves`]), or else
//! by way of a [`TableImage`]. The modules of both say what that brings.

use crate::batch::Batch;
use crate::image::{EmptyImage, TableImage};
use crate::leaves::{Appending, OwnTables};
use crate::pending::Pending;
use rusqlite::Connection;

/// With fewer rows than this an image is not worth its making.
const FEW: usize = 256;
/// Images in one transaction at most: they stay attached until its end, and SQLite has room for ten.
const MOST_IMAGES: usize = 8;

/// What one connection has to put rows into the file with.
#[derive(Debug, Default)]
pub(crate) struct Transfer {
    own: OwnTables,
    template: Option<EmptyImage>,
    /// The last image: memory for the next.
    image: Vec<u8>,
    attached: usize,
}

impl Transfer {
    /// Writes every row at the end of a transaction. Whether the connection is sealed: nothing but its end may follow.
    pub(crate) fn finish(
        &mut self,
        connection: &mut Connection,
        rows: &mut Pending,
    ) -> rusqlite::Result<bool> {
        if rows.all().map(|batch| batch.rows()).sum::<usize>() >= FEW {
            let mut others = rows.all().collect();
            let appending = Appending::choose(&mut self.own, connection, &mut others)?;
            if appending.rows() >= FEW {
                self.insert(connection, others)?;
                return appending.write(connection).map(|()| true);
            }
        }
        self.write(connection, rows).map(|()| false)
    }

    /// Writes every row, inside of a transaction. After a failure some may be written.
    pub(crate) fn write(&mut self, connection: &mut Connection, rows: &mut Pending) -> rusqlite::Result<()> {
        self.insert(connection, rows.all().collect())
    }

    /// Has SQLite look for the place of each row.
    fn insert(&mut self, connection: &mut Connection, mut rows: Vec<&mut Batch>) -> rusqlite::Result<()> {
        rows.iter_mut().filter(|batch| !batch.fits()).try_for_each(|batch| batch.write_each(connection))?;
        let many = rows.iter().map(|batch| batch.rows()).sum::<usize>() >= FEW;
        if many && self.attached < MOST_IMAGES && is_utf_8(connection)? {
            // Without memory for an image the rows go one by one.
            if let Ok(name) = self.attach(connection, &mut rows) {
                return rows.into_iter().try_for_each(|batch| batch.copy(connection, &name));
            }
        }
        rows.into_iter().try_for_each(|batch| batch.write_each(connection))
    }

    /// Makes an image of the rows; what it is called on this connection.
    fn attach(&mut self, connection: &mut Connection, rows: &mut [&mut Batch]) -> rusqlite::Result<String> {
        let template = match &mut self.template {
            Some(template) => template,
            none => none.insert(EmptyImage::new(Pending::TABLES)?),
        };
        let mut image = TableImage::new(template, &mut self.image);
        rows.iter_mut().for_each(|batch| batch.fill(&mut image));
        image.finish();
        let name = format!("rows{}", self.attached);
        connection.execute_batch(&format!("ATTACH ':memory:' AS {name}"))?;
        self.attached += 1;
        // Nobody writes it, but pages begin a write in every database (crate::leaves).
        connection.deserialize_read_exact(&*name, &*self.image, self.image.len(), false)?;
        // Every page is read once.
        connection.execute_batch(&format!("PRAGMA {name}.cache_size = 8"))?;
        Ok(name)
    }

    /// The transaction is over.
    pub(crate) fn end(&mut self, connection: &Connection) {
        while self.attached > 0 {
            // None that is known keeps SQLite from it; where one does, there are other images.
            if connection.execute_batch(&format!("DETACH rows{}", self.attached - 1)).is_err() {
                break;
            }
            self.attached -= 1;
        }
    }
}

/// Images are, and SQLite attaches nothing whose texts are encoded in another way than the file's.
fn is_utf_8(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA encoding", [], |row| Ok(row.get_ref(0)?.as_str()? == "UTF-8"))
}
