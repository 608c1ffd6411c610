-- Nodes: traces of several hosts in one file. Process, thread, GPU and queue of node N have N strides added; this view
-- and napi (node_api.sql) take them apart again. Part of a merged file.

INSERT INTO "rocpd_metadata" ("tag", "value")
    SELECT 'pid_stride', '10000000' WHERE NOT EXISTS (SELECT 1 FROM "rocpd_metadata" WHERE "tag" = 'pid_stride');
INSERT INTO "rocpd_metadata" ("tag", "value")
    SELECT 'gpu_stride', '1000' WHERE NOT EXISTS (SELECT 1 FROM "rocpd_metadata" WHERE "tag" = 'gpu_stride');

CREATE VIEW IF NOT EXISTS "nop" AS
    SELECT O."id" AS "id", O."gpuId" / S."stride" AS "node", O."gpuId" % S."stride" AS "gpuId",
        O."queueId" % S."stride" AS "queueId", O."sequenceId" AS "sequenceId", O."start" AS "start",
        O."end" AS "end", D."string" AS "description", T."string" AS "opType"
    FROM "rocpd_op" O
        JOIN (SELECT CAST("value" AS integer) AS "stride" FROM "rocpd_metadata" WHERE "tag" = 'gpu_stride' LIMIT 1) S
        JOIN "rocpd_string" D ON D."id" = O."description_id"
        JOIN "rocpd_string" T ON T."id" = O."opType_id";
