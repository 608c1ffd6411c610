//! madengine's library_trace.csv: which configurations of libraries a run has used, and how often.
//!
//! Byte for byte as its get_library_trace.py writes it: CRLF, fields quoted where they hold a comma, a quote or a line end; the libraries in
//! that order, of each the configurations in the order in which they were seen first.

use std::collections::HashMap;
use std::io::{self, Write};

/// The libraries, in the order in which they are written.
pub const LIBRARIES: [&str; 5] = ["rocblas", "hipblaslt", "rocblas_function", "miopen", "tensile"];

/// What is in each row.
#[derive(Debug, Clone, Default)]
pub struct Job {
    /// Its number.
    pub id: String,
    /// When the file is written: `2026-11-22 10:03:46`.
    pub created: String,
    /// What runs.
    pub model: String,
}

/// Configurations as they are seen.
#[derive(Debug, Default)]
pub struct Seen {
    calls: Vec<(usize, String, u64)>,
    places: HashMap<(usize, String), usize>,
}

impl Seen {
    /// `library` was called with `configuration` so many times. Libraries that the format does not have are left out.
    pub fn add(&mut self, library: &str, configuration: &str, calls: u64) {
        let Some(library) = LIBRARIES.iter().position(|known| *known == library) else { return };
        let place = *self.places.entry((library, configuration.to_string())).or_insert(self.calls.len());
        if place == self.calls.len() {
            self.calls.push((library, configuration.to_string(), 0));
        }
        self.calls[place].2 += calls;
    }

    /// Keeps the configurations of these libraries alone.
    pub fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.calls.retain(|(library, ..)| is_wanted(LIBRARIES[*library]));
        let places = self.calls.iter().enumerate();
        self.places = places.map(|(place, (of, text, _))| ((*of, text.clone()), place)).collect();
    }

    /// How many rows there will be.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether there will be none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write(&self, job: &Job, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
        writer.write_record(["jobid", "created_date", "model", "library", "config", "calls"])?;
        for (number, library) in LIBRARIES.iter().enumerate() {
            for (_, configuration, calls) in self.calls.iter().filter(|(of, ..)| *of == number) {
                let calls = calls.to_string();
                writer.write_record([&*job.id, &job.created, &job.model, library, configuration, &calls])?;
            }
        }
        writer.flush()
    }
}
