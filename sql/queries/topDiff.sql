-- What became faster or slower between two traces? The ops of both by name: calls and average duration in microseconds before and
-- after, and the change of the average and of the total in percent. What is in one of the two only has no values of the other.
-- The trace from before is attached as "before":
--   sqlite3 -cmd "attach 'before.rpd' as before" after.rpd < topDiff.sql
WITH
old AS (
    SELECT CASE WHEN D.string = '' THEN T.string ELSE D.string END AS Name, count(*) AS calls, sum(O."end" - O.start) AS duration
    FROM before.rocpd_op O
        JOIN before.rocpd_string D ON D.id = O.description_id
        JOIN before.rocpd_string T ON T.id = O.opType_id
    GROUP BY 1
),
new AS (
    SELECT CASE WHEN D.string = '' THEN T.string ELSE D.string END AS Name, count(*) AS calls, sum(O."end" - O.start) AS duration
    FROM main.rocpd_op O
        JOIN main.rocpd_string D ON D.id = O.description_id
        JOIN main.rocpd_string T ON T.id = O.opType_id
    GROUP BY 1
),
names AS (SELECT Name FROM old UNION SELECT Name FROM new)
SELECT
    names.Name AS Name,
    old.calls AS CallsBefore,
    new.calls AS CallsAfter,
    old.duration / 1000.0 / old.calls AS AveBefore_us,
    new.duration / 1000.0 / new.calls AS AveAfter_us,
    (1.0 * new.duration / new.calls) * 100.0 / nullif(1.0 * old.duration / old.calls, 0) - 100.0 AS PctDiff,
    new.duration * 100.0 / nullif(old.duration, 0) - 100.0 AS PctDiffTotal
FROM names
    LEFT JOIN old ON old.Name = names.Name
    LEFT JOIN new ON new.Name = names.Name
ORDER BY abs(coalesce(new.duration, 0) - coalesce(old.duration, 0)) DESC, Name;
