//! The floor: the rows that a pass made, inserted into another copy of the trace, 100 per statement, in one transaction
//! and with the settings of a pass. Reading them is not counted.

use std::fs;
use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::measured::Measured;

/// Rows that are read before they are inserted.
const ROWS_PER_STATEMENT: usize = 500_000;

/// Rows of one INSERT.
const ROWS: usize = 100;

/// Inserts the rows that `made` has in `tables` into `trace`.
pub(crate) fn of(made: &Path, trace: &Path, tables: &[&str]) -> Measured {
    let source = Connection::open(made).unwrap();
    let (target, _) = rpd_schema::open_write(trace).unwrap();
    let mut floor = Measured { wall: 0.0, cpu: 0.0, peak_mb: 0.0 };
    floor.time(|| target.execute_batch("BEGIN IMMEDIATE"));
    for table in tables {
        let statement = "SELECT sql FROM sqlite_master WHERE name = ?1";
        let sql: String = source.query_row(statement, [table], |row| row.get(0)).unwrap();
        floor.time(|| target.execute_batch(&sql));
        let mut select = source.prepare(&format!("SELECT * FROM {table}")).unwrap();
        // Without the id, which SQLite gives, where there is one.
        let names: Vec<String> = select.column_names().map(ToString::to_string).collect();
        let first = usize::from(names[0] == "id");
        let row = format!("({})", vec!["?"; names.len() - first].join(","));
        let insert = |rows: usize| {
            format!(
                "INSERT INTO {table} ({}) VALUES {}",
                names[first..].join(","),
                vec![row.as_str(); rows].join(",")
            )
            .replace(",end", ",\"end\"")
        };
        let mut rows = select.query([]).unwrap();
        loop {
            let mut values: Vec<Value> = Vec::new();
            while values.len() < ROWS_PER_STATEMENT * (names.len() - first) {
                let Some(row) = rows.next().unwrap() else { break };
                values.extend((first..names.len()).map(|column| row.get::<_, Value>(column).unwrap()));
            }
            if values.is_empty() {
                break;
            }
            floor.time(|| {
                values.chunks(ROWS * (names.len() - first)).try_for_each(|chunk| {
                    let mut statement =
                        target.prepare_cached(&insert(chunk.len() / (names.len() - first)))?;
                    for (at, value) in chunk.iter().enumerate() {
                        statement.raw_bind_parameter(at + 1, value)?;
                    }
                    statement.raw_execute().map(drop)
                })
            });
        }
    }
    floor.time(|| target.execute_batch("COMMIT"));
    floor
}

impl Measured {
    fn time(&mut self, work: impl FnOnce() -> rusqlite::Result<()>) {
        let (wall, cpu) = (Instant::now(), cpu());
        work().unwrap();
        self.wall += wall.elapsed().as_secs_f64();
        self.cpu += self::cpu() - cpu;
    }
}

/// Processor time of this process, s.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap();
    // Of the main thread, which is the only one: ns on a processor.
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}
