-- How long do kernels wait? Per kernel and launching call: time from the start of the call to the start of the kernel, in microseconds.
-- Kernels of graphs wait from the launch of the graph on, for the kernels before them too.
SELECT
    N.string AS kernel,
    A.string AS api,
    count(*) AS launches,
    avg(O.start - C.start) / 1000.0 AS average_us,
    min(O.start - C.start) / 1000.0 AS min_us,
    max(O.start - C.start) / 1000.0 AS max_us
FROM rocpd_op O
    JOIN rocpd_string T ON T.id = O.opType_id AND T.string IN ('KernelExecution', 'Task')
    JOIN rocpd_string N ON N.id = O.description_id
    JOIN rocpd_api_ops L ON L.op_id = O.id
    JOIN rocpd_api C ON C.id = L.api_id
    JOIN rocpd_string A ON A.id = C.apiName_id
GROUP BY N.string, A.string
ORDER BY average_us DESC, kernel, api;
