-- How busy is each GPU? Time in which at least one op ran (ops that overlap count once), against the time from the
-- GPU's first start to its last end, in microseconds. Barriers are left out: a GPU that waits does no work. The view "busy" adds
-- overlapping ops up instead.
WITH ordered AS (
    SELECT gpuId, start, "end",
        max("end") OVER (
            PARTITION BY gpuId ORDER BY start, "end" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered
    FROM rocpd_op
    WHERE id NOT IN (SELECT op_ptr_id FROM rocpd_barrierop WHERE op_ptr_id IS NOT NULL)
        AND (opType_id IN (SELECT id FROM rocpd_string WHERE string = 'Barrier')) IS NOT TRUE
),
alone AS (
    SELECT gpuId, start, "end",
        CASE
            WHEN "end" <= start OR "end" <= covered THEN 0
            WHEN covered > start THEN "end" - covered
            ELSE "end" - start
        END AS duration
    FROM ordered
)
SELECT
    gpuId AS gpu,
    count(*) AS ops,
    sum(duration) / 1000.0 AS busy_us,
    (max("end") - min(start)) / 1000.0 AS span_us,
    round(100.0 * sum(duration) / nullif(max("end") - min(start), 0), 2) AS percent
FROM alone
GROUP BY gpuId
ORDER BY gpuId;
