-- Where does the host spend its time, each moment counted once? Calls by name and markers by message with their exclusive time:
-- what of it lies in no call or marker inside, on the same thread. Count, total and average in microseconds, and the share of
-- all exclusive time. Calls that overlap without nesting are as good as their order allows. Threads are those of one session: a
-- range ends with its session.
WITH
ranges AS (
    SELECT C.id AS id, C.id >> 32 AS session, C.pid AS pid, C.tid AS tid, C.start AS start, C."end" AS "end",
        N.string = 'UserMarker' AS is_marker,
        CASE WHEN N.string = 'UserMarker' THEN C.args_id ELSE C.apiName_id END AS name_id
    FROM rocpd_api C
        JOIN rocpd_string N ON N.id = C.apiName_id
    WHERE C."end" >= C.start
),
-- Ends come before starts at one time; of starts the longer range's, of ends the later start's first.
edges AS (
    SELECT id, session, pid, tid, is_marker, name_id, start AS time, 1 AS step, -"end" AS tie FROM ranges WHERE "end" > start
    UNION ALL
    SELECT id, session, pid, tid, is_marker, name_id, "end", -1, -start FROM ranges WHERE "end" > start
),
ordered AS (
    SELECT session, pid, tid, is_marker, name_id, time, step,
        row_number() OVER (PARTITION BY session, pid, tid ORDER BY time, step, tie, id * step) AS place,
        sum(step) OVER (
            PARTITION BY session, pid, tid ORDER BY time, step, tie, id * step ROWS UNBOUNDED PRECEDING
        ) AS depth,
        lead(time) OVER (PARTITION BY session, pid, tid ORDER BY time, step, tie, id * step) - time AS until_next
    FROM edges
),
-- The innermost range from an edge to the next is the one that last began at that depth.
begun AS (
    SELECT session, pid, tid, is_marker, name_id, place, depth, until_next,
        sum(step = 1) OVER (PARTITION BY session, pid, tid, depth ORDER BY place ROWS UNBOUNDED PRECEDING) AS nth
    FROM ordered
    WHERE depth > 0
),
innermost AS (
    SELECT until_next,
        first_value(is_marker) OVER (PARTITION BY session, pid, tid, depth, nth ORDER BY place) AS is_marker,
        first_value(name_id) OVER (PARTITION BY session, pid, tid, depth, nth ORDER BY place) AS name_id
    FROM begun
),
exclusive AS (
    SELECT is_marker, name_id, sum(until_next) AS duration FROM innermost GROUP BY is_marker, name_id
),
counts AS (SELECT is_marker, name_id, count(*) AS sections FROM ranges GROUP BY is_marker, name_id)
SELECT
    CASE WHEN C.is_marker THEN M.string ELSE A.string END AS ApiName,
    sum(C.sections) AS TotalSections,
    sum(coalesce(E.duration, 0)) / 1000.0 AS TotalDuration_us,
    sum(coalesce(E.duration, 0)) / (1000.0 * sum(C.sections)) AS Ave_us,
    sum(coalesce(E.duration, 0)) * 100.0 / nullif(sum(sum(coalesce(E.duration, 0))) OVER (), 0) AS Percentage
FROM counts C
    LEFT JOIN rocpd_string A ON A.id = C.name_id
    LEFT JOIN "rocpd_string" /* schema 3: rocpd_ustring */ M ON M.id = C.name_id
    LEFT JOIN exclusive E ON E.is_marker = C.is_marker AND E.name_id = C.name_id
GROUP BY 1
ORDER BY TotalDuration_us DESC, ApiName;
