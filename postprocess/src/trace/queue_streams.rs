//! Queues that are streams: the recorder numbers the streams of NVIDIA's GPUs as queues, each number once for a GPU.
//!
//! So the stream of an operation there needs nothing of the call that caused it. Kernels of graphs and fills have no other.

use rusqlite::Connection;

/// The GPUs whose queues are streams.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueStreams(Vec<i64>);

impl QueueStreams {
    /// Those of a trace.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn of(trace: &Connection) -> rusqlite::Result<QueueStreams> {
        let gpus = rpd_schema::gpus(trace)?;
        Ok(QueueStreams(gpus.iter().filter(|gpu| gpu.is_nvidia()).map(|gpu| gpu.gpu.into()).collect()))
    }

    /// Whether the queues of that GPU are streams.
    pub(crate) fn has(&self, gpu: i64) -> bool {
        self.0.contains(&gpu)
    }

    /// The stream of the row `alias` of rocpd_op as a text of SQL; `otherwise`, where its queue is none.
    pub(crate) fn or_sql(&self, alias: &str, otherwise: &str) -> String {
        if self.0.is_empty() {
            return otherwise.to_string();
        }
        let gpus: Vec<String> = self.0.iter().map(i64::to_string).collect();
        format!(
            "CASE WHEN {alias}.gpuId IN ({}) THEN CAST({alias}.queueId AS TEXT) ELSE {otherwise} END",
            gpus.join(", ")
        )
    }
}
