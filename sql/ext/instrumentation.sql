-- What instrumented kernels streamed out, and what analyzers made of it. Added by a recorder that was asked to run instrumented kernels.
--
-- One row per instrumented dispatch and analyzer. op_id is empty where the dispatch has no operation, because it did not complete. messages
-- and bytes are what the analyzer was given; dropped is how many bytes never reached it, and incomplete is 1 where the kernel did not
-- run to its end. reason says what else is missing, in words.
CREATE TABLE IF NOT EXISTS "ext_instrumentation" (
    "id" integer NOT NULL PRIMARY KEY,
    "op_id" integer REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED,
    "kernelName_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED,
    "gpuId" integer NOT NULL,
    "queueId" integer NOT NULL,
    "sequenceId" integer NOT NULL,
    "analyzer" varchar(64) NOT NULL,
    "messages" integer NOT NULL,
    "bytes" integer NOT NULL,
    "dropped" integer NOT NULL,
    "incomplete" integer NOT NULL,
    "reason" varchar(4096) NOT NULL
);

-- Accesses to memory of one place in the source, of one kind and size. accessKind is read, write or read_write; space is flat, global,
-- lds or another address space; size is the bytes of a lane's access, accesses how many wavefronts made it. linesNeeded and
-- linesUsed are cache lines: as few as the lanes' bytes fit into, and as many as they lie in; where lanes access the same bytes, the
-- former is no more than the latter. conflicts are conflicts of LDS banks.
CREATE TABLE IF NOT EXISTS "ext_memoryaccess" (
    "id" integer NOT NULL PRIMARY KEY,
    "instrumentation_id" integer NOT NULL REFERENCES "ext_instrumentation" ("id") DEFERRABLE INITIALLY DEFERRED,
    "file" varchar(4096) NOT NULL,
    "line" integer NOT NULL,
    "column" integer NOT NULL,
    "accessKind" varchar(16) NOT NULL,
    "space" varchar(16) NOT NULL,
    "size" integer NOT NULL,
    "accesses" integer NOT NULL,
    "linesNeeded" integer NOT NULL,
    "linesUsed" integer NOT NULL,
    "conflicts" integer NOT NULL
);

-- How often lanes accessed a page of memory: size bytes from address on.
CREATE TABLE IF NOT EXISTS "ext_heatmap" (
    "id" integer NOT NULL PRIMARY KEY,
    "instrumentation_id" integer NOT NULL REFERENCES "ext_instrumentation" ("id") DEFERRABLE INITIALLY DEFERRED,
    "address" integer NOT NULL,
    "size" integer NOT NULL,
    "accesses" integer NOT NULL
);

-- Intervals that wavefronts measured, in ticks of the device's clock: total of all of them, first begin, last end.
CREATE TABLE IF NOT EXISTS "ext_timeinterval" (
    "id" integer NOT NULL PRIMARY KEY,
    "instrumentation_id" integer NOT NULL REFERENCES "ext_instrumentation" ("id") DEFERRABLE INITIALLY DEFERRED,
    "count" integer NOT NULL,
    "total" integer NOT NULL,
    "firstBegin" integer NOT NULL,
    "lastEnd" integer NOT NULL
);

-- A basic block: how often wavefronts entered it, and how long they stayed, in ticks of the device's clock. cu is the compute unit, or -1
-- for all of them together. The last block of a wavefront has no end: timed is how often one was seen. branchiness is the
-- part of the lanes that did not take part.
CREATE TABLE IF NOT EXISTS "ext_basicblock" (
    "id" integer NOT NULL PRIMARY KEY,
    "instrumentation_id" integer NOT NULL REFERENCES "ext_instrumentation" ("id") DEFERRABLE INITIALLY DEFERRED,
    "block" integer NOT NULL,
    "cu" integer NOT NULL,
    "file" varchar(4096) NOT NULL,
    "line" integer NOT NULL,
    "count" integer NOT NULL,
    "timed" integer NOT NULL,
    "total" integer NOT NULL,
    "min" integer NOT NULL,
    "p50" integer NOT NULL,
    "p90" integer NOT NULL,
    "p99" integer NOT NULL,
    "max" integer NOT NULL,
    "branchiness" real NOT NULL
);

-- A basic block of a kernel whose blocks are counted, and of the functions that it calls. kernel_id is the row of the application's
-- kernel; number counts its blocks from 0. functionName is the symbol of the function that the block is of; offset is its address in the code object
-- and size its bytes; file and line are those of its first instruction that has some. instructions is how many it has, and the columns behind
-- it how many of them are of one kind: they add up to instructions.
CREATE TABLE IF NOT EXISTS "ext_block" (
    "id" integer NOT NULL PRIMARY KEY,
    "kernel_id" integer NOT NULL REFERENCES "rocpd_kernelcodeobject" ("id") DEFERRABLE INITIALLY DEFERRED,
    "number" integer NOT NULL,
    "functionName" varchar(4096) NOT NULL,
    "offset" integer NOT NULL,
    "size" integer NOT NULL,
    "file" varchar(4096) NOT NULL,
    "line" integer NOT NULL,
    "instructions" integer NOT NULL,
    "valu" integer NOT NULL,
    "salu" integer NOT NULL,
    "vmem" integer NOT NULL,
    "smem" integer NOT NULL,
    "lds" integer NOT NULL,
    "mfma" integer NOT NULL,
    "branch" integer NOT NULL,
    "other" integer NOT NULL
);

-- How often a basic block was executed, by all dispatches of its kernel with one grid and workgroup since the row before: their operations are
-- those of ext_instrumentation, this row's the last of them. waves is how many wavefronts entered it, lanes how many lanes were active, and
-- ticks how long wavefronts stayed, of the device's clock; what was not counted is empty.
CREATE TABLE IF NOT EXISTS "ext_blockcount" (
    "id" integer NOT NULL PRIMARY KEY,
    "instrumentation_id" integer NOT NULL REFERENCES "ext_instrumentation" ("id") DEFERRABLE INITIALLY DEFERRED,
    "block_id" integer NOT NULL REFERENCES "ext_block" ("id") DEFERRABLE INITIALLY DEFERRED,
    "dispatches" integer NOT NULL,
    "waves" integer,
    "lanes" integer,
    "ticks" integer
);

-- A number that a handler of the user's own has found.
CREATE TABLE IF NOT EXISTS "ext_handlervalue" (
    "id" integer NOT NULL PRIMARY KEY,
    "instrumentation_id" integer NOT NULL REFERENCES "ext_instrumentation" ("id") DEFERRABLE INITIALLY DEFERRED,
    "name" varchar(4096) NOT NULL,
    "value" real NOT NULL
);

-- Which lines of the source waste most cache lines.
CREATE VIEW IF NOT EXISTS "cacheLineWaste" AS
    SELECT S."string" AS "kernelName", A."file" AS "file", A."line" AS "line", A."accessKind" AS "accessKind", A."space" AS "space",
        A."size" AS "size", sum(A."accesses") AS "accesses", sum(A."linesNeeded") AS "linesNeeded", sum(A."linesUsed") AS "linesUsed",
        sum(A."linesUsed") - sum(A."linesNeeded") AS "linesWasted", sum(A."conflicts") AS "conflicts"
    FROM "ext_memoryaccess" A
        JOIN "ext_instrumentation" I ON I."id" = A."instrumentation_id"
        JOIN "rocpd_string" S ON S."id" = I."kernelName_id"
    GROUP BY 1, 2, 3, 4, 5, 6
    ORDER BY "linesWasted" DESC;

-- Which basic blocks wavefronts spend most time in.
CREATE VIEW IF NOT EXISTS "hotBlock" AS
    SELECT S."string" AS "kernelName", B."block" AS "block", B."file" AS "file", B."line" AS "line", sum(B."count") AS "count",
        sum(B."total") AS "total", min(B."min") AS "min", max(B."max") AS "max", sum(B."branchiness" * B."count") / sum(B."count") AS "branchiness"
    FROM "ext_basicblock" B
        JOIN "ext_instrumentation" I ON I."id" = B."instrumentation_id"
        JOIN "rocpd_string" S ON S."id" = I."kernelName_id"
    WHERE B."cu" = -1
    GROUP BY 1, 2, 3, 4
    ORDER BY "total" DESC;

-- How much longer instrumented dispatches took than plain ones of the same kernel, GPU, grid and workgroup: how many there are of both, their
-- average durations in ns, and the ratio of these. plainNs and ratio are empty where there is no plain one.
CREATE VIEW IF NOT EXISTS "instrumentationCost" AS
    SELECT D."kernelName" AS "kernelName", D."gpuId" AS "gpuId", D."gridX" AS "gridX", D."gridY" AS "gridY", D."gridZ" AS "gridZ",
        D."workgroupX" AS "workgroupX", D."workgroupY" AS "workgroupY", D."workgroupZ" AS "workgroupZ",
        count(P."op_id") AS "instrumented", count(*) - count(P."op_id") AS "plain",
        avg(CASE WHEN P."op_id" IS NOT NULL THEN D."end" - D."start" END) AS "instrumentedNs",
        avg(CASE WHEN P."op_id" IS NULL THEN D."end" - D."start" END) AS "plainNs",
        avg(CASE WHEN P."op_id" IS NOT NULL THEN D."end" - D."start" END)
            / nullif(avg(CASE WHEN P."op_id" IS NULL THEN D."end" - D."start" END), 0) AS "ratio"
    FROM "dispatch" D
        LEFT JOIN (SELECT DISTINCT "op_id" FROM "ext_instrumentation") P ON P."op_id" = D."id"
    WHERE D."kernelName" IN (
        SELECT S."string" FROM "ext_instrumentation" I JOIN "rocpd_string" S ON S."id" = I."kernelName_id"
    )
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
    HAVING count(P."op_id") > 0
    ORDER BY sum(CASE WHEN P."op_id" IS NOT NULL THEN D."end" - D."start" END) DESC, 1, 2;

INSERT INTO "rocpd_metadata" ("tag", "value")
    SELECT 'references::rocpd_string.id', '("ext_instrumentation", "kernelName_id")'
    WHERE NOT EXISTS (
        SELECT 1 FROM "rocpd_metadata"
        WHERE "tag" = 'references::rocpd_string.id' AND "value" = '("ext_instrumentation", "kernelName_id")'
    );
