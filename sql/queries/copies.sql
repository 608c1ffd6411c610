-- What is copied, which way, how fast? GPU-timed copies by direction: count, bytes where an API call tells them,
-- total time in microseconds and rate in GB/s (10^9 bytes). A call that became several ops shares its bytes out.
WITH
linked AS (SELECT op_id, min(api_id) AS api_id FROM rocpd_api_ops GROUP BY op_id),
parts AS (SELECT api_id, count(*) AS ops FROM linked GROUP BY api_id),
copied AS (
    SELECT L.op_id AS op_id, C.size * 1.0 / P.ops AS bytes
    FROM linked L
        JOIN parts P ON P.api_id = L.api_id
        JOIN rocpd_copyapi C ON C.api_ptr_id = L.api_id
)
SELECT
    T.string AS direction,
    O.gpuId AS gpu,
    count(*) AS copies,
    CAST(round(sum(C.bytes)) AS integer) AS bytes,
    sum(O."end" - O.start) / 1000.0 AS total_us,
    round(sum(C.bytes) / nullif(sum(CASE WHEN C.bytes IS NOT NULL THEN O."end" - O.start END), 0), 3) AS gb_per_s
FROM rocpd_op O
    JOIN rocpd_string T ON T.id = O.opType_id AND (T.string LIKE 'Copy%' OR T.string = 'FillBuffer')
    LEFT JOIN copied C ON C.op_id = O.id
GROUP BY T.string, O.gpuId
ORDER BY total_us DESC, direction, gpu;
