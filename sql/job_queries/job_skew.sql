-- Which kernels take longer on some ranks than on others? By job and kernel the ranks whose mean is lowest and highest; excess is what the
-- slowest rank would save if its kernels were as fast as the fastest rank's. Collectives are longest on the ranks that wait: those of
-- NCCL, RCCL and MSCCL++ are left out, and in job_stragglers.
WITH means AS (
    SELECT job, node, rank, description AS name, COUNT(*) AS ops, SUM("end" - "start") * 1e0 / COUNT(*) AS mean
    FROM op
    WHERE "opType" IN ('KernelExecution', 'Task') AND "end" >= "start" AND description <> ''
        AND INSTR(description, 'nccl') <> 1 AND INSTR(description, 'rccl') <> 1 AND INSTR(description, 'msccl') <> 1
    GROUP BY job, node, rank, description
),
ordered AS (
    SELECT job, rank, name, ops, mean,
        ROW_NUMBER() OVER (PARTITION BY job, name ORDER BY mean, rank, node) AS place,
        ROW_NUMBER() OVER (PARTITION BY job, name ORDER BY mean DESC, rank, node) AS place_from_end
    FROM means
),
kernels AS (
    SELECT job, name,
        COUNT(*) AS ranks,
        CAST(SUM(ops) AS BIGINT) AS ops,
        MAX(CASE WHEN place = 1 THEN rank END) AS fastest_rank,
        MIN(mean) AS fastest_mean_ns,
        MAX(CASE WHEN place_from_end = 1 THEN rank END) AS slowest_rank,
        MAX(mean) AS slowest_mean_ns,
        MAX(CASE WHEN place_from_end = 1 THEN ops END) AS slowest_ops
    FROM ordered
    GROUP BY job, name
)
SELECT
    job, name, ranks, ops, fastest_rank, fastest_mean_ns, slowest_rank, slowest_mean_ns,
    slowest_mean_ns / NULLIF(fastest_mean_ns, 0e0) AS ratio,
    (slowest_mean_ns - fastest_mean_ns) * slowest_ops AS excess_ns
FROM kernels
ORDER BY job, excess_ns DESC, name
