-- Which rank is late at which collective, and why? Collectives are kernels of NCCL, RCCL and MSCCL++; the nth one of a name on each GPU of
-- a job are taken for one, and those that cost most waiting come first. Of each: how many GPUs took part and of how many it is missing,
-- the rank that began last, how late that was after the first, how long its GPU had done nothing by then, how late the call was that
-- launched it, and how long the other GPUs waited in all. verdict says what made it slow: compute (the late rank's GPU worked until
-- then), launch (its GPU was idle, and the call was late), queue (the GPU was idle and the call in time, so it waited for something
-- else), network (none was late, and it took more than twice the mean of its name; more data does that too), or count (a GPU lacks one
-- of this name, so that all behind that may be taken for others). Those that nothing made slow are left out. Late by less than a tenth
-- of the mean counts as in time. Ranks of several nodes compare as well as the wall clocks of these agree.
WITH ordered AS (
    SELECT job, node, rank, "gpuId", part, id, api_id, "start", "end", "opType", description AS name,
        MAX("end") OVER (
            PARTITION BY job, node, rank, "gpuId" ORDER BY "start", "end", id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered
    FROM op
    WHERE "opType" <> 'Barrier' AND "end" >= "start"
),
collectives AS (
    SELECT o.job, o.node, o.rank, o."gpuId", o.name, o."start", o."end" - o."start" AS duration, a."start" AS called,
        CASE WHEN o.covered < o."start" THEN o."start" - o.covered ELSE 0 END AS idle,
        ROW_NUMBER() OVER (PARTITION BY o.job, o.node, o.rank, o."gpuId", o.name ORDER BY o."start", o."end", o.id) AS nth
    FROM ordered o LEFT JOIN api a ON a.part = o.part AND a.id = o.api_id
    WHERE o."opType" IN ('KernelExecution', 'Task')
        AND (INSTR(o.name, 'nccl') = 1 OR INSTR(o.name, 'rccl') = 1 OR INSTR(o.name, 'msccl') = 1)
),
takers AS (
    SELECT job, name, COUNT(*) AS gpus
    FROM (SELECT DISTINCT job, name, node, rank, "gpuId" FROM collectives) d
    GROUP BY job, name
),
ranked AS (
    SELECT job, name, nth, rank, "gpuId", "start", duration, called, idle,
        ROW_NUMBER() OVER (PARTITION BY job, name, nth ORDER BY "start" DESC, rank, node, "gpuId") AS place
    FROM collectives
),
collective AS (
    SELECT job, name, nth,
        COUNT(*) AS gpus,
        MAX(CASE WHEN place = 1 THEN rank END) AS last_rank,
        MAX("start") - MIN("start") AS late,
        MAX(CASE WHEN place = 1 THEN idle END) AS idle,
        MAX(CASE WHEN place = 1 THEN called END) - MIN(called) AS call_late,
        MIN(duration) AS shortest,
        CAST(SUM(duration) AS BIGINT) - COUNT(*) * MIN(duration) AS waiting
    FROM ranked
    GROUP BY job, name, nth
),
means AS (
    SELECT job, name, SUM(shortest) * 1e0 / COUNT(*) AS mean FROM collective GROUP BY job, name
),
judged AS (
    SELECT e.job, e.name, e.nth, e.gpus, t.gpus - e.gpus AS missing, e.last_rank, e.late, e.idle, e.call_late, e.shortest, e.waiting,
        CASE
            WHEN e.gpus < t.gpus THEN 'count'
            WHEN e.late * 1e1 > m.mean AND e.idle * 2 < e.late THEN 'compute'
            WHEN e.late * 1e1 > m.mean AND e.call_late * 2 < e.late THEN 'queue'
            WHEN e.late * 1e1 > m.mean THEN 'launch'
            WHEN e.shortest > m.mean * 2e0 THEN 'network'
        END AS verdict
    FROM collective e
        JOIN takers t ON t.job = e.job AND t.name = e.name
        JOIN means m ON m.job = e.job AND m.name = e.name
)
SELECT
    job, name, nth, gpus, missing, verdict, last_rank, late AS late_ns, idle AS idle_ns, call_late AS call_late_ns,
    shortest AS shortest_ns, waiting AS waiting_ns
FROM judged
WHERE verdict IS NOT NULL
ORDER BY job, waiting_ns DESC, name, nth
