-- How a kernel was launched, for kernels of which no row of rocpd_kernelapi says it: those of a graph, and of a call that launches several. The
-- view has all kernels. Part of a fresh file.
--
-- grid is in workgroups, workgroup in work-items, segment sizes in bytes; codeObject_id is 0 where it is not known.
CREATE TABLE IF NOT EXISTS "ext_dispatch" (
    "op_id" integer NOT NULL PRIMARY KEY REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED,
    "kernelName_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED,
    "gridX" integer NOT NULL,
    "gridY" integer NOT NULL,
    "gridZ" integer NOT NULL,
    "workgroupX" integer NOT NULL,
    "workgroupY" integer NOT NULL,
    "workgroupZ" integer NOT NULL,
    "groupSegmentSize" integer NOT NULL,
    "privateSegmentSize" integer NOT NULL,
    "kernelArgAddress" varchar(18) NOT NULL,
    "codeObject_id" integer NOT NULL
);

INSERT INTO "rocpd_metadata" ("tag", "value")
    SELECT 'references::rocpd_string.id', '("ext_dispatch", "kernelName_id")'
    WHERE NOT EXISTS (
        SELECT 1 FROM "rocpd_metadata"
        WHERE "tag" = 'references::rocpd_string.id' AND "value" = '("ext_dispatch", "kernelName_id")'
    );

-- One row per kernel that ran, with its launch geometry. Recorders before 2026-11-27 wrote a row of ext_dispatch for each.
CREATE VIEW IF NOT EXISTS "dispatch" AS
    SELECT O."id" AS "id", O."gpuId" AS "gpuId", O."queueId" AS "queueId", O."sequenceId" AS "sequenceId",
        O."start" AS "start", O."end" AS "end", E."string" AS "description", T."string" AS "opType",
        N."string" AS "kernelName",
        D."gridX" AS "gridX", D."gridY" AS "gridY", D."gridZ" AS "gridZ",
        D."workgroupX" AS "workgroupX", D."workgroupY" AS "workgroupY", D."workgroupZ" AS "workgroupZ",
        D."groupSegmentSize" AS "groupSegmentSize", D."privateSegmentSize" AS "privateSegmentSize",
        D."kernelArgAddress" AS "kernelArgAddress", D."codeObject_id" AS "codeObject_id"
    FROM (
        SELECT "op_id", "kernelName_id", "gridX", "gridY", "gridZ", "workgroupX", "workgroupY", "workgroupZ",
            "groupSegmentSize", "privateSegmentSize", "kernelArgAddress", "codeObject_id"
            FROM "ext_dispatch"
        UNION ALL
        SELECT L."op_id", K."kernelName_id", K."gridX", K."gridY", K."gridZ", K."workgroupX", K."workgroupY",
            K."workgroupZ", K."groupSegmentSize", K."privateSegmentSize", K."kernelArgAddress", K."codeObject_id"
            FROM "rocpd_api_ops" L
                JOIN "rocpd_kernelapi" K ON K."api_ptr_id" = L."api_id"
            WHERE NOT EXISTS (SELECT 1 FROM "ext_dispatch" X WHERE X."op_id" = L."op_id")
        ) D
        JOIN "rocpd_op" O ON O."id" = D."op_id"
        JOIN "rocpd_string" E ON E."id" = O."description_id"
        JOIN "rocpd_string" T ON T."id" = O."opType_id" AND T."string" = 'KernelExecution'
        JOIN "rocpd_string" N ON N."id" = D."kernelName_id";
