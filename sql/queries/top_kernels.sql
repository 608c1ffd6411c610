-- Where does GPU time go? Kernels by total time: calls, total, average, shortest and longest, in microseconds,
-- and the share of all kernel time.
SELECT
    N.string AS kernel,
    count(*) AS calls,
    sum(O."end" - O.start) / 1000.0 AS total_us,
    avg(O."end" - O.start) / 1000.0 AS average_us,
    min(O."end" - O.start) / 1000.0 AS min_us,
    max(O."end" - O.start) / 1000.0 AS max_us,
    round(100.0 * sum(O."end" - O.start) / sum(sum(O."end" - O.start)) OVER (), 2) AS percent
FROM rocpd_op O
    JOIN rocpd_string T ON T.id = O.opType_id AND T.string IN ('KernelExecution', 'Task')
    JOIN rocpd_string N ON N.id = O.description_id
GROUP BY N.string
ORDER BY total_us DESC, kernel;
