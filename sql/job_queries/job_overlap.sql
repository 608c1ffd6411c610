-- How much of the communication between ranks hides behind computing? For each GPU the time in which kernels computed, in which others
-- communicated (by their names: those of NCCL, RCCL, MSCCL++ and the like), and how much of the latter computing covered. Kernels that
-- run at once count once, as in rpd overlap.
WITH named AS (
    SELECT job, node, rank, "gpuId", "start", "end", "opType", REPLACE(LOWER(COALESCE(description, '')), '_', '') AS name
    FROM op
    -- What takes no time begins and ends at one moment, and would count as nothing anyway.
    WHERE "opType" <> 'Barrier' AND "end" > "start" AND SUBSTR("opType", 1, 4) NOT IN ('Copy', 'Fill')
),
work AS (
    SELECT job, node, rank, "gpuId", "start", "end",
        CASE WHEN "opType" IN ('KernelExecution', 'Task') AND (
            INSTR(name, 'nccl') > 0 OR INSTR(name, 'rccl') > 0 OR INSTR(name, 'msccl') > 0 OR INSTR(name, 'allreduce') > 0
            OR INSTR(name, 'crossdevicereduce') > 0 OR INSTR(name, 'allgather') > 0 OR INSTR(name, 'reducescatter') > 0
            OR INSTR(name, 'alltoall') > 0
        ) THEN 1 ELSE 0 END AS communicates
    FROM named
),
edges AS (
    SELECT job, node, rank, "gpuId", "start" AS moment, communicates AS communicating, 1 - communicates AS computing FROM work
    UNION ALL
    SELECT job, node, rank, "gpuId", "end" AS moment, -communicates AS communicating, communicates - 1 AS computing FROM work
),
moments AS (
    SELECT job, node, rank, "gpuId", moment, SUM(communicating) AS communicating, SUM(computing) AS computing
    FROM edges
    GROUP BY job, node, rank, "gpuId", moment
),
running AS (
    SELECT job, node, rank, "gpuId",
        LEAD(moment) OVER (PARTITION BY job, node, rank, "gpuId" ORDER BY moment) - moment AS duration,
        SUM(communicating) OVER (
            PARTITION BY job, node, rank, "gpuId" ORDER BY moment ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS communicating,
        SUM(computing) OVER (
            PARTITION BY job, node, rank, "gpuId" ORDER BY moment ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS computing
    FROM moments
),
sums AS (
    SELECT job, node, rank, "gpuId",
        CAST(SUM(CASE WHEN computing > 0 THEN duration ELSE 0 END) AS BIGINT) AS compute_ns,
        CAST(SUM(CASE WHEN communicating > 0 THEN duration ELSE 0 END) AS BIGINT) AS communication_ns,
        CAST(SUM(CASE WHEN communicating > 0 AND computing > 0 THEN duration ELSE 0 END) AS BIGINT) AS hidden_ns
    FROM running
    WHERE duration IS NOT NULL
    GROUP BY job, node, rank, "gpuId"
)
SELECT
    job, node, rank, "gpuId", compute_ns, communication_ns, hidden_ns,
    communication_ns - hidden_ns AS exposed_ns,
    hidden_ns * 1e2 / NULLIF(communication_ns, 0) AS hidden_percent
FROM sums
ORDER BY job, node, rank, "gpuId"
