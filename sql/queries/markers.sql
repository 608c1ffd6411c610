-- Which ranges of the program are long? Markers by message: count, total and average in microseconds; marks are
-- instants and add no time.
SELECT
    G.string AS message,
    count(*) AS ranges,
    sum(C."end" - C.start) / 1000.0 AS total_us,
    avg(C."end" - C.start) / 1000.0 AS average_us
FROM rocpd_api C
    JOIN rocpd_string N ON N.id = C.apiName_id AND N.string = 'UserMarker'
    JOIN "rocpd_string" /* schema 3: rocpd_ustring */ G ON G.id = C.args_id
GROUP BY G.string
ORDER BY total_us DESC, message;
