-- Who called whom: for each call C and each call P on its stack, C itself included, one row. Added by `rpd callstack`.
--
-- depth is how many levels C is below P, 0 for itself. Times are ns and C's own: cpu_time is its duration without its
-- direct children, gpu_time the sum of the durations of the ops linked to it.
CREATE TABLE "ext_callstack" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "parent_id" integer NOT NULL REFERENCES "rocpd_api" ("id") DEFERRABLE INITIALLY DEFERRED,
    "child_id" integer NOT NULL REFERENCES "rocpd_api" ("id") DEFERRABLE INITIALLY DEFERRED,
    "depth" integer NOT NULL,
    "cpu_time" integer NOT NULL DEFAULT 0,
    "gpu_time" integer NOT NULL DEFAULT 0
);

-- With everything that was called.
CREATE VIEW "callStack_inclusive" AS
    SELECT "parent_id", sum("cpu_time") AS "cpu_time", sum("gpu_time") AS "gpu_time"
    FROM "ext_callstack"
    GROUP BY "parent_id";

-- Without it.
CREATE VIEW "callStack_exclusive" AS
    SELECT "parent_id", sum("cpu_time") AS "cpu_time", sum("gpu_time") AS "gpu_time"
    FROM "ext_callstack"
    WHERE "depth" = 0
    GROUP BY "parent_id";

CREATE VIEW "callStack_inclusive_name" AS
    SELECT S."parent_id" AS "parent_id", N."string" AS "apiName", G."string" AS "args",
        sum(S."cpu_time") AS "cpu_time", sum(S."gpu_time") AS "gpu_time"
    FROM "ext_callstack" S
        JOIN "rocpd_api" C ON C."id" = S."parent_id"
        JOIN "rocpd_string" N ON N."id" = C."apiName_id"
        JOIN "rocpd_string" /* schema 3: rocpd_ustring */ G ON G."id" = C."args_id"
    GROUP BY S."parent_id";

CREATE VIEW "callStack_exclusive_name" AS
    SELECT S."parent_id" AS "parent_id", N."string" AS "apiName", G."string" AS "args",
        sum(S."cpu_time") AS "cpu_time", sum(S."gpu_time") AS "gpu_time"
    FROM "ext_callstack" S
        JOIN "rocpd_api" C ON C."id" = S."parent_id"
        JOIN "rocpd_string" N ON N."id" = C."apiName_id"
        JOIN "rocpd_string" /* schema 3: rocpd_ustring */ G ON G."id" = C."args_id"
    WHERE S."depth" = 0
    GROUP BY S."parent_id";
