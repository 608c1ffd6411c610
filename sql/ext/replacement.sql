-- Kernels that ran in place of the application's own, and the files that they come from. Added by a recorder that has a kernel
-- cache.
--
-- What became of a file of the cache: one row per content and GPU, and one more when the file is gone, or at the
-- end where no kernel was launched that it could replace (unused). loaded is the time at which its kernels could be used, 0 where
-- they cannot; outcome is loaded, unused, other-target, refused, failed or removed; reason says why, in words. sha256 is of the file's bytes, in hexadecimal digits, and empty where they could not be read.
CREATE TABLE IF NOT EXISTS "ext_candidate" (
    "id" integer NOT NULL PRIMARY KEY,
    "path" varchar(4096) NOT NULL,
    "sha256" varchar(64) NOT NULL,
    "target" varchar(64) NOT NULL,
    "loaded" integer NOT NULL,
    "outcome" varchar(16) NOT NULL,
    "reason" varchar(4096) NOT NULL
);

-- One row per dispatch that ran another kernel than the application's. The op and its launch are as the application asked for
-- them. The kernels are rows of rocpd_kernelcodeobject; id is the op's. A kernel or candidate that is not known is 0.
CREATE TABLE IF NOT EXISTS "ext_replacement" (
    "id" integer NOT NULL PRIMARY KEY,
    "op_id" integer NOT NULL REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED,
    "original_kernel_id" integer NOT NULL REFERENCES "rocpd_kernelcodeobject" ("id") DEFERRABLE INITIALLY DEFERRED,
    "replacement_kernel_id" integer NOT NULL REFERENCES "rocpd_kernelcodeobject" ("id") DEFERRABLE INITIALLY DEFERRED,
    "candidate_id" integer NOT NULL REFERENCES "ext_candidate" ("id") DEFERRABLE INITIALLY DEFERRED
);

CREATE VIEW IF NOT EXISTS "replacement" AS
    SELECT O."id" AS "id", O."gpuId" AS "gpuId", O."queueId" AS "queueId", O."sequenceId" AS "sequenceId",
        O."start" AS "start", O."end" AS "end", E."string" AS "kernelName",
        R."original_kernel_id" AS "original_kernel_id", A."vgpr" AS "originalVgpr", A."sgpr" AS "originalSgpr",
        R."replacement_kernel_id" AS "replacement_kernel_id", B."vgpr" AS "replacementVgpr",
        B."sgpr" AS "replacementSgpr", C."path" AS "path", C."sha256" AS "sha256"
    FROM "ext_replacement" R
        JOIN "rocpd_op" O ON O."id" = R."op_id"
        JOIN "rocpd_string" E ON E."id" = O."description_id"
        LEFT JOIN "ext_candidate" C ON C."id" = R."candidate_id"
        LEFT JOIN "rocpd_kernelcodeobject" A ON A."id" = R."original_kernel_id"
        LEFT JOIN "rocpd_kernelcodeobject" B ON B."id" = R."replacement_kernel_id";
