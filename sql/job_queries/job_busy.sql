-- How busy is each GPU of each rank? Time in which at least one operation ran (what overlaps counts once), of the time from the GPU's
-- first start to its last end. Barriers are left out.
WITH ordered AS (
    SELECT job, node, rank, "gpuId", "start", "end",
        MAX("end") OVER (
            PARTITION BY job, node, rank, "gpuId" ORDER BY "start", "end", id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered
    FROM op
    WHERE "opType" <> 'Barrier' AND "end" >= "start"
),
alone AS (
    SELECT job, node, rank, "gpuId", "start", "end",
        CASE
            WHEN covered IS NULL OR covered <= "start" THEN "end" - "start"
            WHEN covered >= "end" THEN 0
            ELSE "end" - covered
        END AS duration
    FROM ordered
)
SELECT
    job, node, rank, "gpuId",
    COUNT(*) AS ops,
    CAST(SUM(duration) AS BIGINT) AS busy_ns,
    MAX("end") - MIN("start") AS span_ns,
    SUM(duration) * 1e2 / NULLIF(MAX("end") - MIN("start"), 0) AS percent
FROM alone
GROUP BY job, node, rank, "gpuId"
ORDER BY job, node, rank, "gpuId"
