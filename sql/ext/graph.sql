-- Graphs: what was captured or put together, and under which handle it is launched. Added by `rpd graph`, together with the
-- subclasses graph (capture, instantiate) and graphLaunch of rocpd_api.
--
-- One row per instantiated graph. start and end, ns, are the span of the capture. A graph of which only launches were
-- recorded has "composed" for its handle, the span of the launch that it was composed of, and its kernels in
-- ext_graph_kernelops.
CREATE TABLE "ext_graph" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "graph" varchar(18) NOT NULL,
    "graphExec" varchar(18) NOT NULL,
    "stream" varchar(18) NOT NULL,
    "start" integer NOT NULL,
    "end" integer NOT NULL
);

-- The kernels of a graph by the calls that recorded them, numbered from 1.
CREATE TABLE "ext_graph_kernelapis" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "graph_id" integer NOT NULL REFERENCES "ext_graph" ("id") DEFERRABLE INITIALLY DEFERRED,
    "api_id" integer NOT NULL REFERENCES "rocpd_api" ("id") DEFERRABLE INITIALLY DEFERRED,
    "sequence" integer NOT NULL
);

-- The kernels of a composed graph by what one launch of it ran, numbered from 1 in the order in which they began.
CREATE TABLE "ext_graph_kernelops" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "graph_id" integer NOT NULL REFERENCES "ext_graph" ("id") DEFERRABLE INITIALLY DEFERRED,
    "op_id" integer NOT NULL REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED,
    "sequence" integer NOT NULL
);

-- Launches that ran something, in microseconds: the call, from the first op's start to the last op's end, the sum of the ops.
-- The last three columns are the names of the same in later files.
CREATE VIEW "graphLaunch" AS
    SELECT G.*, G."apiDuration" AS "apiDuration_usec", G."opDuration" AS "opDuration_usec",
        G."gpuTime" AS "gpuTime_usec"
    FROM (
        SELECT C."id" AS "id", C."pid" AS "pid", C."tid" AS "tid", N."string" AS "apiName",
            L."graphExec" AS "graphExec", L."stream" AS "stream", min(O."gpuId") AS "gpuId",
            min(O."queueId") AS "queueId", (C."end" - C."start") / 1000 AS "apiDuration",
            (max(O."end") - min(O."start")) / 1000 AS "opDuration", sum(O."end" - O."start") / 1000 AS "gpuTime"
        FROM "rocpd_api_ops" P
            JOIN "rocpd_graphLaunchapi" L ON L."api_ptr_id" = P."api_id"
            JOIN "rocpd_api" C ON C."id" = P."api_id"
            JOIN "rocpd_op" O ON O."id" = P."op_id"
            JOIN "rocpd_string" N ON N."id" = C."apiName_id"
        GROUP BY C."id"
    ) G;
