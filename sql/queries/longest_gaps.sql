-- When did a GPU do nothing? The 20 longest gaps between ops of one GPU, in microseconds, with what ran before and
-- what came after. Barriers are left out: a GPU that waits does no work.
WITH ordered AS (
    SELECT gpuId, id, start,
        max("end") OVER (
            PARTITION BY gpuId ORDER BY start, "end" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS idle_since,
        lag(id) OVER (PARTITION BY gpuId ORDER BY start, "end") AS before_id
    FROM rocpd_op
    WHERE id NOT IN (SELECT op_ptr_id FROM rocpd_barrierop WHERE op_ptr_id IS NOT NULL)
        AND (opType_id IN (SELECT id FROM rocpd_string WHERE string = 'Barrier')) IS NOT TRUE
)
SELECT
    G.gpuId AS gpu,
    (G.start - G.idle_since) / 1000.0 AS gap_us,
    G.idle_since AS idle_since_ns,
    CASE WHEN B.description = '' THEN B.opType ELSE B.description END AS before,
    CASE WHEN A.description = '' THEN A.opType ELSE A.description END AS after
FROM (SELECT * FROM ordered WHERE start > idle_since ORDER BY start - idle_since DESC, id LIMIT 20) G
    LEFT JOIN op B ON B.id = G.before_id
    LEFT JOIN op A ON A.id = G.id
ORDER BY gap_us DESC, idle_since_ns;
