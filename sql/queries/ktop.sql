-- Where does kernel time go, in the columns of the view "top"? Kernels by name, longest in total first: calls, total and
-- average in microseconds, and the share of all kernel time. (rocmProfileData's view of that name.)
SELECT
    N.string AS Name,
    count(*) AS TotalCalls,
    sum(O."end" - O.start) / 1000.0 AS TotalDuration_us,
    avg(O."end" - O.start) / 1000.0 AS Ave_us,
    sum(O."end" - O.start) * 100.0 / sum(sum(O."end" - O.start)) OVER () AS Percentage
FROM rocpd_op O
    JOIN rocpd_string T ON T.id = O.opType_id AND T.string IN ('KernelExecution', 'Task')
    JOIN rocpd_string N ON N.id = O.description_id
GROUP BY N.string
ORDER BY TotalDuration_us DESC, Name;
