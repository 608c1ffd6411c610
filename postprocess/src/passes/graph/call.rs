//! The calls of a file that have to do with graphs, in small: handles as numbers.

use std::collections::HashMap;

use anyhow::Result;
use rpd_schema::{Processes, text};
use rusqlite::types::ValueRef;

use super::function::{GraphFunction, PREFIXES};
use crate::pass::Change;
use crate::trace::arguments;

/// A number for a handle that occurs in the file; [`NO_HANDLE`] where there is none or it is null.
pub(crate) type HandleNumber = u32;

/// No handle, or null.
pub(crate) const NO_HANDLE: HandleNumber = 0;

/// A process: its first session and its process id, because containers and hosts have process ids of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GraphProcess {
    session: i64,
    pid: i64,
}

/// A call to a [`GraphFunction`]. Ordered as things happen in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GraphCall {
    pub(crate) process: GraphProcess,
    /// Times of the call, ns.
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Row of `rocpd_api`.
    pub(crate) id: i64,
    pub(crate) tid: i64,
    pub(crate) function: GraphFunction,
    pub(crate) stream: HandleNumber,
    pub(crate) graph: HandleNumber,
    pub(crate) exec: HandleNumber,
}

/// Texts of handles and their numbers.
#[derive(Default)]
pub(crate) struct Handles {
    numbers: HashMap<String, HandleNumber>,
    texts: Vec<String>,
}

impl Handles {
    /// The number of a stream's text; the default stream, `0x0`, is a stream.
    pub(crate) fn stream(&mut self, text: &str) -> HandleNumber {
        let text = text.trim();
        if text.is_empty() {
            return NO_HANDLE;
        }
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.texts.push(text.to_string());
        let number = self.texts.len() as HandleNumber;
        self.numbers.insert(text.to_string(), number);
        number
    }

    /// The number of a graph's text.
    fn graph(&mut self, text: &str) -> HandleNumber {
        if matches!(text.trim(), "0x0" | "0" | "(nil)") { NO_HANDLE } else { self.stream(text) }
    }

    /// The number of a stream's text, if that has occurred.
    pub(crate) fn known(&self, text: &str) -> HandleNumber {
        self.numbers.get(text.trim()).copied().unwrap_or(NO_HANDLE)
    }

    /// The text of a number.
    pub(crate) fn text(&self, handle: HandleNumber) -> &str {
        (handle as usize).checked_sub(1).and_then(|at| self.texts.get(at)).map_or("", String::as_str)
    }
}

/// What a file has of calls about graphs.
pub(crate) struct GraphCalls {
    /// Launches, by process and time.
    pub(crate) launches: Vec<GraphCall>,
    /// All others, by process and time.
    pub(crate) others: Vec<GraphCall>,
    /// Ids of the texts that are names of such functions, and their functions.
    pub(crate) functions: HashMap<i64, GraphFunction>,
    pub(crate) handles: Handles,
    /// Rows of calls whose times or process cannot be.
    pub(crate) impossible: Vec<i64>,
    processes: Processes,
}

/// The names of functions that are in the file.
pub(crate) struct FunctionNames {
    /// By id of their text; one text may have several ids.
    pub(crate) functions: HashMap<i64, GraphFunction>,
    /// Of the subclass `graph`.
    pub(crate) captures: Vec<String>,
    /// Of the subclass `graphLaunch`.
    pub(crate) launches: Vec<String>,
}

impl FunctionNames {
    /// Looks for them.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn of(change: &Change<'_>) -> Result<FunctionNames> {
        // A range, so that an index on texts is of use.
        let mut select = change.trace.prepare(
            "SELECT id, string FROM rocpd_string WHERE string >= ?1 AND string < ?1 || char(1114111)",
        )?;
        let mut names =
            FunctionNames { functions: HashMap::new(), captures: Vec::new(), launches: Vec::new() };
        for prefix in PREFIXES {
            let mut rows = select.query([prefix])?;
            while let Some(row) = rows.next()? {
                let Ok(name) = row.get_ref(1)?.as_str() else { continue };
                let Some(function) = GraphFunction::of(name) else { continue };
                let list = match function {
                    GraphFunction::Launch => Some(&mut names.launches),
                    other => other.is_of_capture().then_some(&mut names.captures),
                };
                if let Some(list) = list.filter(|list| !list.iter().any(|known| known == name)) {
                    list.push(name.to_string());
                }
                names.functions.insert(row.get(0)?, function);
            }
        }
        Ok(names)
    }
}

impl GraphCalls {
    /// Reads every call whose name's id is among `functions`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn of(change: &Change<'_>, functions: HashMap<i64, GraphFunction>) -> Result<GraphCalls> {
        let texts = change.args_table();
        let names: Vec<String> = functions.keys().map(i64::to_string).collect();
        let mut select = change.trace.prepare(&format!(
            "SELECT A.id, A.pid, A.tid, A.start, A.\"end\", A.apiName_id, {}
             FROM rocpd_api A LEFT JOIN {texts} T ON T.id = A.args_id WHERE A.apiName_id IN ({})",
            text::arguments("T.string"),
            names.join(", ")
        ))?;
        let mut calls = GraphCalls {
            launches: Vec::new(),
            others: Vec::new(),
            functions,
            handles: Handles::default(),
            impossible: Vec::new(),
            processes: Processes::of(change.trace)?,
        };
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let number = |column| row.get_ref(column).ok().and_then(|value| value.as_i64().ok());
            let all = (|| Some([number(0)?, number(1)?, number(2)?, number(3)?, number(4)?, number(5)?]))();
            let Some([id, pid, tid, start, end, name]) = all.filter(|[.., start, end, _]| start <= end)
            else {
                calls.impossible.extend(number(0));
                continue;
            };
            let Some(&function) = calls.functions.get(&name) else { continue };
            let [stream, graph, exec] = calls.handles_of(row.get_ref(6)?);
            let process = calls.process(id, pid);
            let call = GraphCall { process, start, end, id, tid, function, stream, graph, exec };
            if function == GraphFunction::Launch {
                calls.launches.push(call)
            } else {
                calls.others.push(call)
            }
        }
        for list in [&mut calls.launches, &mut calls.others] {
            list.sort_unstable_by_key(|call| (call.process, call.start, call.id));
        }
        Ok(calls)
    }

    /// The process of the call with this row of `rocpd_api`.
    pub(crate) fn process(&self, api: i64, pid: i64) -> GraphProcess {
        GraphProcess { session: self.processes.of_row(api), pid }
    }

    /// Writes the ids of all calls into a table `temp.graph_call`: one look at every call of a file is enough.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub(crate) fn list(&self, change: &Change<'_>) -> Result<()> {
        change.trace.execute_batch("CREATE TEMP TABLE graph_call (id integer PRIMARY KEY)")?;
        let mut insert = change.trace.prepare("INSERT OR IGNORE INTO temp.graph_call VALUES (?1)")?;
        let possible = self.launches.iter().chain(&self.others).map(|call| call.id);
        for id in possible.chain(self.impossible.iter().copied()) {
            insert.execute([id])?;
        }
        Ok(())
    }

    /// Stream, graph and executable graph of a call's arguments.
    fn handles_of(&mut self, args: ValueRef<'_>) -> [HandleNumber; 3] {
        let mut found = [NO_HANDLE; 3];
        for (key, value) in arguments::pairs(args.as_str().unwrap_or_default()) {
            match key {
                "stream" => found[0] = self.handles.stream(value),
                "graph" | "pGraph" => found[1] = self.handles.graph(value),
                "graphExec" | "pGraphExec" => found[2] = self.handles.graph(value),
                _ => {}
            }
        }
        found
    }
}
