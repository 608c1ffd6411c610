//! Ready-made questions to a trace. Each runs unchanged in the `sqlite3` shell: `sqlite3 trace.rpd < FILE`.

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

/// Every ready-made query, in the order in which people tend to ask.
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

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn every_query_begins_with_a_question() {
        for query in ALL {
            let question = query.question();
            assert!(question.ends_with('?') && question.len() < 100, "{}: {question}", query.name);
            assert!(query.description().len() > question.len(), "{}", query.name);
        }
    }
}
