-- How busy is each GPU? Time in which at least one op ran (ops that overlap count once), against the time from the
-- GPU's first start to its last end, in microseconds. The view "busy" adds overlapping ops up instead.
WITH ordered AS (
    SELECT gpuId, start, "end",
        max("end") OVER (
            PARTITION BY gpuId ORDER BY start, "end" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered
    FROM rocpd_op
)
SELECT
    gpuId AS gpu,
    count(*) AS ops,
    sum(max(0, "end" - max(start, coalesce(covered, start)))) / 1000.0 AS busy_us,
    (max("end") - min(start)) / 1000.0 AS span_us,
    round(
        100.0 * sum(max(0, "end" - max(start, coalesce(covered, start)))) / nullif(max("end") - min(start), 0), 2
    ) AS percent
FROM ordered
GROUP BY gpuId
ORDER BY gpuId;
