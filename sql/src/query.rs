//! Ready-made questions. Those to one trace run unchanged in the `sqlite3` shell: `sqlite3 trace.rpd < FILE`. Those to the traces of a job
//! are of the tables of a dataset, and their text is the same for SQLite, DuckDB and Spark.

/// A ready-made query.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Short name: the file's name without `.sql`.
    pub name: &'static str,
    /// The statement, headed by a comment that says what it answers.
    pub text: &'static str,
}

impl Query {
    /// What it answers: the comment at its head, as one line.
    #[must_use]
    pub fn description(&self) -> String {
        let comment = self.text.lines().map_while(|line| line.strip_prefix("-- "));
        comment.map(str::trim).collect::<Vec<_>>().join(" ")
    }

    /// The question itself: the description up to its question mark.
    #[must_use]
    pub fn question(&self) -> String {
        let description = self.description();
        let end = description.find('?').map_or(description.len(), |at| at + 1);
        description[..end].to_string()
    }
}

/// Every ready-made query to one trace, in the order in which people tend to ask.
pub const ALL: [Query; 13] = [
    Query { name: "top_kernels", text: include_str!("../queries/top_kernels.sql") },
    Query { name: "busy", text: include_str!("../queries/busy.sql") },
    Query { name: "copies", text: include_str!("../queries/copies.sql") },
    Query { name: "longest_gaps", text: include_str!("../queries/longest_gaps.sql") },
    Query { name: "launchers", text: include_str!("../queries/launchers.sql") },
    Query { name: "launch_delay", text: include_str!("../queries/launch_delay.sql") },
    Query { name: "top_apis", text: include_str!("../queries/top_apis.sql") },
    Query { name: "markers", text: include_str!("../queries/markers.sql") },
    Query { name: "ktop", text: include_str!("../queries/ktop.sql") },
    Query { name: "topEx", text: include_str!("../queries/topEx.sql") },
    Query { name: "topDiff", text: include_str!("../queries/topDiff.sql") },
    Query { name: "binOpByDuration", text: include_str!("../queries/binOpByDuration.sql") },
    Query { name: "kernelKernelDelay", text: include_str!("../queries/kernelKernelDelay.sql") },
];

/// Every ready-made query to the ranks of jobs: of the tables `op`, `api` and `monitor` of a dataset.
///
/// They are written in what SQLite, DuckDB and Spark have in common. Names that are not lower case, and `start` and `end`, are in double
/// quotes. Numbers with a fraction are written with an exponent (`1e2`): `100.0` is a decimal number to some. Nothing divides two
/// integers, or by what may be 0, or casts what is not whole. `LIKE`, `max(a, b)` and functions of one engine are left out. What orders
/// rows in a window, or the answer, leaves no two rows equal.
pub const JOBS: [Query; 8] = [
    Query { name: "job_top", text: include_str!("../job_queries/job_top.sql") },
    Query { name: "job_busy", text: include_str!("../job_queries/job_busy.sql") },
    Query { name: "job_gaps", text: include_str!("../job_queries/job_gaps.sql") },
    Query { name: "job_overlap", text: include_str!("../job_queries/job_overlap.sql") },
    Query { name: "job_iterations", text: include_str!("../job_queries/job_iterations.sql") },
    Query { name: "job_stragglers", text: include_str!("../job_queries/job_stragglers.sql") },
    Query { name: "job_skew", text: include_str!("../job_queries/job_skew.sql") },
    Query { name: "job_energy", text: include_str!("../job_queries/job_energy.sql") },
];

/// All of them.
pub fn every() -> impl Iterator<Item = &'static Query> {
    ALL.iter().chain(&JOBS)
}

#[cfg(test)]
mod tests {
    use super::{JOBS, every};

    #[test]
    fn every_query_begins_with_a_question() {
        for query in every() {
            let question = query.question();
            assert!(question.ends_with('?') && question.len() < 100, "{}: {question}", query.name);
            assert!(query.description().len() > question.len(), "{}", query.name);
        }
    }

    /// The statement without its comments and texts.
    fn bare(text: &str) -> String {
        let lines = text.lines().map(|line| line.split("--").next().unwrap_or_default());
        let mut is_text = false;
        let mut bare = String::new();
        for letter in lines.collect::<Vec<_>>().join("\n").chars() {
            is_text ^= letter == '\'';
            if !is_text {
                bare.push(letter);
            }
        }
        bare
    }

    #[test]
    fn queries_to_jobs_keep_to_what_all_engines_have() {
        for query in JOBS {
            let bare = bare(query.text);
            let words: Vec<&str> =
                bare.split(|c: char| !(c.is_alphanumeric() || "_.\"".contains(c))).collect();
            for word in &words {
                let lower = word.to_lowercase();
                let foreign = [
                    "like",
                    "glob",
                    "regexp",
                    "group_concat",
                    "string_agg",
                    "printf",
                    "greatest",
                    "least",
                    "floor",
                    "ceil",
                ];
                assert!(!foreign.contains(&lower.as_str()), "{}: {word}", query.name);
                let column = word.rsplit('.').next().unwrap_or_default();
                // Spark takes upper and lower case for the same, and \"end\" has a meaning of its own in all.
                let needs_quotes = column.starts_with(|c: char| c.is_ascii_lowercase())
                    && (column.contains(|c: char| c.is_ascii_uppercase())
                        || ["start", "end"].contains(&column));
                assert!(!needs_quotes, "{}: {word} is not in double quotes", query.name);
                let is_number = word.starts_with(|c: char| c.is_ascii_digit());
                assert!(!is_number || !word.contains('.'), "{}: {word} is a decimal number", query.name);
            }
            assert!(!bare.contains("/ 0") && !bare.contains(';'), "{}", query.name);
        }
    }
}
