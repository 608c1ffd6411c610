-- What launched it? Kernels by the API call and thread (session, process, thread) that caused them, in microseconds of GPU time; kernels of
-- graph launches are counted by their dispatch rows.
SELECT
    C.id >> 32 AS session,
    C.pid AS pid,
    C.tid AS tid,
    A.string AS api,
    N.string AS kernel,
    count(*) AS kernels,
    sum(O."end" - O.start) / 1000.0 AS total_us
FROM rocpd_op O
    JOIN rocpd_string T ON T.id = O.opType_id AND T.string IN ('KernelExecution', 'Task')
    JOIN rocpd_string N ON N.id = O.description_id
    JOIN rocpd_api_ops L ON L.op_id = O.id
    JOIN rocpd_api C ON C.id = L.api_id
    JOIN rocpd_string A ON A.id = C.apiName_id
GROUP BY C.id >> 32, C.pid, C.tid, A.string, N.string
ORDER BY total_us DESC, session, pid, tid, api, kernel;
