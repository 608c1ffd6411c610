-- How long do kernels wait? Per kernel: time from the start of the launching call to the start of the kernel, in
-- microseconds. Launches of one kernel only: a graph launch has many.
SELECT
    K.kernelName AS kernel,
    count(*) AS launches,
    avg(K.start - C.start) / 1000.0 AS average_us,
    min(K.start - C.start) / 1000.0 AS min_us,
    max(K.start - C.start) / 1000.0 AS max_us
FROM kernel K
    JOIN rocpd_api_ops L ON L.op_id = K.id
    JOIN rocpd_api C ON C.id = L.api_id
GROUP BY K.kernelName
ORDER BY average_us DESC, kernel;
