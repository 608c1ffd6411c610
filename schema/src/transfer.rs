//! From waiting rows to the file: a few one by one, many by way of a [`TableImage`], whose module says what that brings.

use crate::image::{EmptyImage, TableImage};
use crate::pending::Pending;
use rusqlite::Connection;

/// With fewer rows than this an image is not worth its making.
const FEW: usize = 256;
/// Images in one transaction at most: they stay attached until its end, and SQLite has room for ten.
const MOST_IMAGES: usize = 8;

/// The images of one connection.
#[derive(Debug, Default)]
pub(crate) struct ImageTransfer {
    template: Option<EmptyImage>,
    /// The last image: memory for the next.
    image: Vec<u8>,
    attached: usize,
}

impl ImageTransfer {
    /// Writes every row, inside of a transaction. After a failure some may be written.
    pub(crate) fn write(&mut self, connection: &mut Connection, rows: &mut Pending) -> rusqlite::Result<()> {
        rows.all().filter(|batch| !batch.fits()).try_for_each(|batch| batch.write_each(connection))?;
        let many = rows.all().map(|batch| batch.rows()).sum::<usize>() >= FEW;
        if many && self.attached < MOST_IMAGES && is_utf_8(connection)? {
            // Without memory for an image the rows go one by one.
            if let Ok(name) = self.attach(connection, rows) {
                return rows.all().try_for_each(|batch| batch.copy(connection, &name));
            }
        }
        rows.all().try_for_each(|batch| batch.write_each(connection))
    }

    /// Makes an image of the rows; what it is called on this connection.
    fn attach(&mut self, connection: &mut Connection, rows: &mut Pending) -> rusqlite::Result<String> {
        let template = match &mut self.template {
            Some(template) => template,
            none => none.insert(EmptyImage::new(Pending::TABLES)?),
        };
        let mut image = TableImage::new(template, &mut self.image);
        rows.all().for_each(|batch| batch.fill(&mut image));
        image.finish();
        let name = format!("rows{}", self.attached);
        connection.execute_batch(&format!("ATTACH ':memory:' AS {name}"))?;
        self.attached += 1;
        connection.deserialize_read_exact(&*name, &*self.image, self.image.len(), true)?;
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
