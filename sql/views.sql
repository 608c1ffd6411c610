-- The views of a fresh file. Their column names and order are part of the format.

-- Ops with their texts.
CREATE VIEW IF NOT EXISTS "op" AS
    SELECT O."id" AS "id", O."gpuId" AS "gpuId", O."queueId" AS "queueId", O."sequenceId" AS "sequenceId",
        O."start" AS "start", O."end" AS "end", D."string" AS "description", T."string" AS "opType"
    FROM "rocpd_op" O
        JOIN "rocpd_string" D ON D."id" = O."description_id"
        JOIN "rocpd_string" T ON T."id" = O."opType_id";

-- Per GPU: the sum of its op durations over the time from the first start to the last end of all GPUs.
CREATE VIEW IF NOT EXISTS "busy" AS
    SELECT P."gpuId" AS "gpuId", P."GpuTime" AS "GpuTime", A."WallTime" AS "WallTime",
        P."GpuTime" * 1.0 / A."WallTime" AS "Busy"
    FROM (SELECT "gpuId", sum("end" - "start") AS "GpuTime" FROM "rocpd_op" GROUP BY "gpuId") P
        CROSS JOIN (SELECT max("end") - min("start") AS "WallTime" FROM "rocpd_op") A;

-- Ops by name (by type where they have none), longest in total first. Summed by id before the names come in: a
-- text may have several ids, and there are far fewer names than ops. UNION ALL, so that equal ops all count.
CREATE VIEW IF NOT EXISTS "top" AS
    SELECT N."string" AS "Name",
        sum(G."calls") AS "TotalCalls",
        sum(G."duration") / 1000 AS "TotalDuration_us",
        sum(G."duration") / sum(G."calls") / 1000.0 AS "Ave_us",
        sum(G."duration") * 100.0 / (SELECT sum("end" - "start") FROM "rocpd_op") AS "Percentage"
    FROM (
        SELECT "opType_id" AS "name_id", count(*) AS "calls", sum("end" - "start") AS "duration"
            FROM "rocpd_op"
            WHERE "description_id" IN (SELECT "id" FROM "rocpd_string" WHERE "string" = '')
            GROUP BY "opType_id"
        UNION ALL
        SELECT "description_id", count(*), sum("end" - "start")
            FROM "rocpd_op"
            WHERE "description_id" NOT IN (SELECT "id" FROM "rocpd_string" WHERE "string" = '')
            GROUP BY "description_id"
        ) G
        JOIN "rocpd_string" N ON N."id" = G."name_id"
    GROUP BY N."string"
    ORDER BY sum(G."duration") DESC, N."string";

-- Kernels that an API call launched one by one, with the arguments of the launch.
CREATE VIEW IF NOT EXISTS "kernel" AS
    SELECT O."id" AS "id", O."gpuId" AS "gpuId", O."queueId" AS "queueId", O."sequenceId" AS "sequenceId",
        O."start" AS "start", O."end" AS "end", O."end" - O."start" AS "duration", K."stream" AS "stream",
        K."gridX" AS "gridX", K."gridY" AS "gridY", K."gridZ" AS "gridZ",
        K."workgroupX" AS "workgroupX", K."workgroupY" AS "workgroupY", K."workgroupZ" AS "workgroupZ",
        K."groupSegmentSize" AS "groupSegmentSize", K."privateSegmentSize" AS "privateSegmentSize",
        N."string" AS "kernelName"
    FROM "rocpd_api_ops" L
        JOIN "rocpd_op" O ON O."id" = L."op_id"
        JOIN "rocpd_kernelapi" K ON K."api_ptr_id" = L."api_id"
        JOIN "rocpd_string" N ON N."id" = K."kernelName_id";

-- All copies, as the calling thread saw them.
CREATE VIEW IF NOT EXISTS "copy" AS
    SELECT C."id" AS "id", C."pid" AS "pid", C."tid" AS "tid", C."start" AS "start", C."end" AS "end",
        N."string" AS "apiName", M."stream" AS "stream", M."size" AS "size", M."width" AS "width",
        M."height" AS "height", M."kind" AS "kind", M."dst" AS "dst", M."src" AS "src",
        M."dstDevice" AS "dstDevice", M."srcDevice" AS "srcDevice", M."sync" AS "sync", M."pinned" AS "pinned"
    FROM "rocpd_copyapi" M
        JOIN "rocpd_api" C ON C."id" = M."api_ptr_id"
        JOIN "rocpd_string" N ON N."id" = C."apiName_id";

-- The copies that made GPU ops, as the GPU timed them.
CREATE VIEW IF NOT EXISTS "copyop" AS
    SELECT O."id" AS "id", O."gpuId" AS "gpuId", O."queueId" AS "queueId", O."sequenceId" AS "sequenceId",
        O."start" AS "start", O."end" AS "end", O."end" - O."start" AS "duration", M."stream" AS "stream",
        M."size" AS "size", M."width" AS "width", M."height" AS "height", M."kind" AS "kind", M."dst" AS "dst",
        M."src" AS "src", M."dstDevice" AS "dstDevice", M."srcDevice" AS "srcDevice", M."sync" AS "sync",
        M."pinned" AS "pinned", N."string" AS "apiName"
    FROM "rocpd_api_ops" L
        JOIN "rocpd_op" O ON O."id" = L."op_id"
        JOIN "rocpd_copyapi" M ON M."api_ptr_id" = L."api_id"
        JOIN "rocpd_api" C ON C."id" = L."api_id"
        JOIN "rocpd_string" N ON N."id" = C."apiName_id";

-- Stack frames of API calls: the call's id and name, then the frame. The odd last name is the format's.
CREATE VIEW IF NOT EXISTS "stackframe" AS
    SELECT C."id" AS "id", N."string" AS "string", F."depth" AS "depth", M."string" AS "string:1"
    FROM "rocpd_api" C
        JOIN "rocpd_stackframe" F ON F."api_ptr_id" = C."id"
        JOIN "rocpd_string" N ON N."id" = C."apiName_id"
        JOIN "rocpd_string" M ON M."id" = F."name_id";
