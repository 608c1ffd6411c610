//! Queues that are streams: the recorder numbers the streams of NVIDIA's GPUs as queues, each number once for a GPU.
//!
//! So the stream of an operation there needs nothing of the call that caused it. Kernels of graphs and fills have no other.

use rusqlite::Connection;

use super::layout::Layout;
use super::strides::Strides;

/// The GPUs whose queues are streams.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueStreams {
    gpus: Vec<i64>,
    /// In a merged trace, what was added to GPUs and queues once for each number of a node.
    stride: Option<i64>,
}

impl QueueStreams {
    /// Those of a trace.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn of(trace: &Connection) -> rusqlite::Result<QueueStreams> {
        let gpus = rpd_schema::gpus(trace)?;
        let gpus: Vec<i64> = gpus.iter().filter(|gpu| gpu.is_nvidia()).map(|gpu| gpu.gpu.into()).collect();
        let strides = if gpus.is_empty() { None } else { Strides::of(trace, &Layout::of(trace)?)? };
        Ok(QueueStreams { gpus, stride: strides.map(|strides| strides.gpu) })
    }

    /// Whether there is no such GPU.
    pub(crate) fn is_empty(&self) -> bool {
        self.gpus.is_empty()
    }

    /// The stream that is that queue of that GPU; nothing where its queues are none.
    pub(crate) fn stream(&self, gpu: i64, queue: i64) -> Option<i64> {
        let added = self.stride.map_or(0, |stride| gpu / stride * stride);
        self.gpus.contains(&gpu).then(|| queue.saturating_sub(added))
    }

    /// The stream of the row `alias` of rocpd_op as a text of SQL; `otherwise`, where its queue is none.
    pub(crate) fn or_sql(&self, alias: &str, otherwise: &str) -> String {
        if self.gpus.is_empty() {
            return otherwise.to_string();
        }
        let gpus: Vec<String> = self.gpus.iter().map(i64::to_string).collect();
        let added =
            self.stride.map_or("0".to_string(), |stride| format!("{alias}.gpuId / {stride} * {stride}"));
        format!(
            "CASE WHEN {alias}.gpuId IN ({}) THEN CAST({alias}.queueId - {added} AS TEXT) ELSE {otherwise} END",
            gpus.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_node_of_a_merged_trace_has_the_streams_of_its_own_numbers() {
        let trace = Connection::open_in_memory().unwrap();
        trace
            .execute_batch(
                "CREATE TABLE rocpd_metadata (id INTEGER PRIMARY KEY, tag, value);
                 CREATE TABLE rocpd_op (gpuId INTEGER, queueId INTEGER);
                 INSERT INTO rocpd_op VALUES (0, 13), (1000, 1013), (1000, 132085), (1, 13);
                 INSERT INTO rocpd_metadata (tag, value) VALUES ('gpu::0::target', 'sm_90'), ('gpu::1000::target', 'sm_90'),
                     ('gpu::1::target', 'gfx906'), ('pid_stride', '1000000'), ('gpu_stride', '1000')",
            )
            .unwrap();
        let queues = QueueStreams::of(&trace).unwrap();
        let expected =
            [(0, 13, Some(13)), (1000, 1013, Some(13)), (1000, 132_085, Some(131_085)), (1, 13, None)];
        for (gpu, queue, stream) in expected {
            assert_eq!(queues.stream(gpu, queue), stream);
        }
        let select = format!("SELECT {} FROM rocpd_op O", queues.or_sql("O", "'-'"));
        let mut rows = trace.prepare(&select).unwrap();
        let found: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(found, ["13", "13", "131085", "-"]);
    }
}
