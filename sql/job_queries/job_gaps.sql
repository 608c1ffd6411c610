-- When did the GPUs of the ranks do nothing? For each GPU the times in which no operation ran between two that did, and the longest of
-- them: its length, when it began (ns since 1970), and the operation that ended it. The GPUs that were idle longest first.
WITH ordered AS (
    SELECT job, node, rank, "gpuId", id, "start", COALESCE(NULLIF(description, ''), "opType") AS name,
        MAX("end") OVER (
            PARTITION BY job, node, rank, "gpuId" ORDER BY "start", "end", id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered
    FROM op
    WHERE "opType" <> 'Barrier' AND "end" >= "start"
),
gaps AS (
    SELECT job, node, rank, "gpuId", "start" - covered AS gap, covered AS since, name,
        ROW_NUMBER() OVER (PARTITION BY job, node, rank, "gpuId" ORDER BY "start" - covered DESC, "start", id) AS nth
    FROM ordered
    WHERE "start" > covered
)
SELECT
    job, node, rank, "gpuId",
    COUNT(*) AS gaps,
    CAST(SUM(gap) AS BIGINT) AS idle_ns,
    MAX(gap) AS longest_ns,
    MAX(CASE WHEN nth = 1 THEN since END) AS longest_since_ns,
    MAX(CASE WHEN nth = 1 THEN name END) AS next_operation
FROM gaps
GROUP BY job, node, rank, "gpuId"
ORDER BY job, idle_ns DESC, node, rank, "gpuId"
