-- Which operations take the GPU time of all ranks? By job and name, the longest in all first; percent is of all operations of the
-- job. Times of operations that ran at once add up.
SELECT
    job,
    COALESCE(NULLIF(description, ''), "opType") AS name,
    COUNT(*) AS ops,
    COUNT(DISTINCT rank) AS ranks,
    CAST(SUM("end" - "start") AS BIGINT) AS total_ns,
    SUM("end" - "start") * 1e0 / COUNT(*) AS mean_ns,
    MIN("end" - "start") AS shortest_ns,
    MAX("end" - "start") AS longest_ns,
    SUM("end" - "start") * 1e2 / NULLIF(SUM(SUM("end" - "start")) OVER (PARTITION BY job), 0) AS percent
FROM op
-- A GPU that waits at a barrier does no work.
WHERE "opType" <> 'Barrier' AND "end" >= "start"
GROUP BY job, COALESCE(NULLIF(description, ''), "opType")
ORDER BY job, total_ns DESC, name
