-- Which ranges of the program are long? Markers by message: count, total and average in microseconds; marks are
-- instants and add no time. Markers that have no message, as those of Python functions, go by their names.
SELECT
    CASE WHEN N.string = 'UserMarker' THEN G.string ELSE N.string END AS message,
    count(*) AS ranges,
    sum(C."end" - C.start) / 1000.0 AS total_us,
    avg(C."end" - C.start) / 1000.0 AS average_us
FROM rocpd_api C
    JOIN rocpd_string N ON N.id = C.apiName_id
    LEFT JOIN "rocpd_string" /* schema 3: rocpd_ustring */ G ON G.id = C.args_id
-- Recorders give markers ids of their own, whatever their names are.
WHERE N.string = 'UserMarker' OR C.id & 4294967295 >= 2147483648
GROUP BY 1
ORDER BY total_us DESC, message;
