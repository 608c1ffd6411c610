-- Calls of GPU libraries: rocBLAS, RCCL, cuBLAS and others. Added by a recorder that was asked to record them.
--
-- Each is a row of rocpd_api, in which the calls of HIP or CUDA that it made lie by their times and thread. domain is the library,
-- category what it does: blas, collective, dnn, fft, solver, sparse.
CREATE TABLE IF NOT EXISTS "ext_librarycall" (
    "api_ptr_id" integer NOT NULL PRIMARY KEY REFERENCES "rocpd_api" ("id") DEFERRABLE INITIALLY DEFERRED,
    "domain_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED,
    "category_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED
);

INSERT INTO "rocpd_metadata" ("tag", "value")
    SELECT 'references::rocpd_string.id', '("ext_librarycall", "domain_id")'
    WHERE NOT EXISTS (
        SELECT 1 FROM "rocpd_metadata"
        WHERE "tag" = 'references::rocpd_string.id' AND "value" = '("ext_librarycall", "domain_id")'
    );

INSERT INTO "rocpd_metadata" ("tag", "value")
    SELECT 'references::rocpd_string.id', '("ext_librarycall", "category_id")'
    WHERE NOT EXISTS (
        SELECT 1 FROM "rocpd_metadata"
        WHERE "tag" = 'references::rocpd_string.id' AND "value" = '("ext_librarycall", "category_id")'
    );

CREATE VIEW IF NOT EXISTS "libraryCall" AS
    SELECT A."id" AS "id", A."pid" AS "pid", A."tid" AS "tid", A."start" AS "start", A."end" AS "end",
        D."string" AS "domain", C."string" AS "category", N."string" AS "apiName", G."string" AS "args"
    FROM "ext_librarycall" L
        JOIN "rocpd_api" A ON A."id" = L."api_ptr_id"
        JOIN "rocpd_string" D ON D."id" = L."domain_id"
        JOIN "rocpd_string" C ON C."id" = L."category_id"
        JOIN "rocpd_string" N ON N."id" = A."apiName_id"
        JOIN "rocpd_string" G ON G."id" = A."args_id";
