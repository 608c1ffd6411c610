-- What is lost between kernels although there was work? Per GPU and queue, for ops that were submitted before the op in front of
-- them had ended: how many, the average gap to that op and the average duration in microseconds, and the share of the gaps in the
-- time of both. (An op that was submitted later waits for the host, which is another question: launch_delay.)
WITH
ordered AS (
    SELECT id, gpuId, queueId, start, "end",
        max("end") OVER (
            PARTITION BY gpuId, queueId ORDER BY start, "end" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS previous_end
    FROM rocpd_op
),
submitted AS (
    SELECT L.op_id AS op_id, min(C."end") AS time
    FROM rocpd_api_ops L
        JOIN rocpd_api C ON C.id = L.api_id
    GROUP BY L.op_id
),
queued AS (
    SELECT O.gpuId AS gpuId, O.queueId AS queueId,
        CASE WHEN O.start > O.previous_end THEN O.start - O.previous_end ELSE 0 END AS delay,
        O."end" - O.start AS duration
    FROM ordered O
        JOIN submitted S ON S.op_id = O.id
    WHERE S.time < O.previous_end
)
SELECT
    gpuId AS gpu,
    queueId AS queue,
    count(*) AS ops,
    avg(delay) / 1000.0 AS avgDelay_us,
    avg(duration) / 1000.0 AS avgDuration_us,
    round(100.0 * sum(delay) / nullif(sum(delay) + sum(duration), 0), 2) AS percentGapLoss
FROM queued
GROUP BY gpuId, queueId
ORDER BY gpu, queue;
