-- How much energy did the GPUs take? For each GPU that a rank recorded the sensors of, by sensor: power is summed over the time of each
-- reading, energy is what the GPU's own counter rose by. Two sensors of one GPU tell the same energy twice, and so do two ranks that
-- recorded the same GPU. rpd energy shares the energy out to kernels.
WITH numbers AS (
    SELECT job, node, rank, "deviceId", "monitorType" AS sensor, "start", "end",
        -- Left out are what is no number without a sign, and a number of more than 30 digits.
        CASE WHEN LENGTH(REPLACE(value, '.', '')) BETWEEN 1 AND 30 AND LENGTH(value) - LENGTH(REPLACE(value, '.', '')) <= 1
            AND LENGTH(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(REPLACE(
            REPLACE(value, '.', ''), '0', ''), '1', ''), '2', ''), '3', ''), '4', ''), '5', ''), '6', ''), '7', ''), '8', ''), '9', '')) = 0
            THEN CAST(value AS DOUBLE)
        END AS number,
        ("end" - "start" - ("end" - "start") % 1000) AS whole_us_ns
    FROM monitor
    WHERE "deviceType" = 'gpu' AND "monitorType" IN ('power', 'energy') AND "end" >= "start"
),
readings AS (
    SELECT job, node, rank, "deviceId", sensor, "start", "end", whole_us_ns,
        -- Thousandths, whole, so that sums are the same in whatever order. No counter has 10^15 joules, and no GPU takes 10 MJ between
        -- two readings: left out, so that no sum is too large for a number.
        CASE WHEN number < 1e15 AND (sensor = 'energy' OR number * whole_us_ns < 1e16)
            THEN CAST(ROUND(number * 1e3) AS BIGINT)
        END AS thousandths
    FROM numbers
),
sums AS (
    SELECT job, node, rank, "deviceId", sensor,
        COUNT(*) AS readings,
        CAST(CASE WHEN sensor = 'power' THEN SUM("end" - "start") ELSE MAX("start") - MIN("start") END AS BIGINT) AS measured_ns,
        -- Milliwatts times microseconds are nanojoules.
        CASE
            WHEN sensor = 'power'
            THEN SUM(CASE WHEN sensor = 'power' THEN thousandths * CAST(whole_us_ns / 1000 AS BIGINT) END) / 1e9
            ELSE (MAX(thousandths) - MIN(thousandths)) / 1e3
        END AS joules
    FROM readings
    WHERE thousandths IS NOT NULL
    GROUP BY job, node, rank, "deviceId", sensor
)
SELECT
    job, node, rank, "deviceId", sensor, readings, measured_ns, joules,
    joules * 1e9 / NULLIF(measured_ns, 0) AS mean_watts
FROM sums
ORDER BY job, node, rank, "deviceId", sensor
