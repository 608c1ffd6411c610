-- Where does the host spend its time in the GPU's API? Calls by name, in microseconds. A call inside another counts
-- in both; markers are left out.
SELECT
    N.string AS api,
    count(*) AS calls,
    sum(C."end" - C.start) / 1000.0 AS total_us,
    avg(C."end" - C.start) / 1000.0 AS average_us,
    max(C."end" - C.start) / 1000.0 AS max_us
FROM rocpd_api C
    JOIN rocpd_string N ON N.id = C.apiName_id
-- Recorders give markers ids of their own, whatever their names are.
WHERE N.string <> 'UserMarker' AND C.id & 4294967295 < 2147483648
GROUP BY N.string
ORDER BY total_us DESC, api;
