-- How long does each iteration take on each rank? Ranges that the program marks, as 'step 3', by their message; nth counts those of one
-- rank with the same message. With the rank that took longest, and how far apart the ranks began, by the wall clocks of their nodes.
WITH ranges AS (
    SELECT job, node, rank, args AS name, "start", "end" - "start" AS duration,
        ROW_NUMBER() OVER (PARTITION BY job, node, rank, args ORDER BY "start", "end" DESC, id) AS nth
    FROM api
    WHERE "apiName" = 'UserMarker' AND "end" > "start" AND args IS NOT NULL
),
ordered AS (
    SELECT job, rank, name, nth, "start", duration,
        ROW_NUMBER() OVER (PARTITION BY job, name, nth ORDER BY duration DESC, rank, node) AS place
    FROM ranges
)
SELECT
    job, name, nth,
    COUNT(*) AS ranks,
    MIN("start") AS first_start_ns,
    MAX("start") - MIN("start") AS starts_apart_ns,
    MIN(duration) AS shortest_ns,
    SUM(duration) * 1e0 / COUNT(*) AS mean_ns,
    MAX(duration) AS longest_ns,
    MAX(CASE WHEN place = 1 THEN rank END) AS longest_rank
FROM ordered
GROUP BY job, name, nth
ORDER BY job, first_start_ns, name, nth
