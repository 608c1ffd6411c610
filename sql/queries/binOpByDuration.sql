-- Are the ops long or short? Ops of each GPU by how long they take: how many, their total time in microseconds and their shares of
-- the GPU's ops and of their time. Many short ones want to be fused or put into a graph.
WITH
bins (place, bin, least, below) AS (
    VALUES
        (1, 'under 10 us', 0, 10000),
        (2, '10 to 25 us', 10000, 25000),
        (3, '25 to 100 us', 25000, 100000),
        (4, '100 us to 1 ms', 100000, 1000000),
        (5, '1 ms and more', 1000000, 9223372036854775807)
),
durations AS (SELECT gpuId, "end" - start AS duration FROM rocpd_op WHERE "end" >= start)
SELECT
    D.gpuId AS gpu,
    B.bin AS duration,
    count(*) AS ops,
    sum(D.duration) / 1000.0 AS total_us,
    round(100.0 * count(*) / sum(count(*)) OVER (PARTITION BY D.gpuId), 2) AS percent_of_ops,
    round(100.0 * sum(D.duration) / nullif(sum(sum(D.duration)) OVER (PARTITION BY D.gpuId), 0), 2) AS percent_of_time
FROM durations D
    JOIN bins B ON D.duration >= B.least AND D.duration < B.below
GROUP BY D.gpuId, B.place, B.bin
ORDER BY gpu, B.place;
