-- What PyTorch's emit_nvtx said of an operator in its marker: `NAME, seq = S, op_id = I, sizes = [..], input_op_ids = [..]`.
-- Added by `rpd autograd`.
--
-- A field that was not there is the empty text. The marker's own args are the bare NAME afterwards, unless they were kept.
CREATE TABLE "ext_autogradapi" (
    "api_ptr_id" integer NOT NULL PRIMARY KEY REFERENCES "rocpd_api" ("id") DEFERRABLE INITIALLY DEFERRED,
    "autogradName_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED,
    "seq" integer NOT NULL,
    "op_id" integer NOT NULL,
    "sizes" varchar(4096) NOT NULL,
    "input_op_ids" varchar(4096) NOT NULL
);

INSERT INTO "rocpd_metadata" ("tag", "value")
    SELECT 'references::rocpd_string.id', '("ext_autogradapi", "autogradName_id")'
    WHERE NOT EXISTS (
        SELECT 1 FROM "rocpd_metadata"
        WHERE "tag" = 'references::rocpd_string.id' AND "value" = '("ext_autogradapi", "autogradName_id")'
    );

CREATE VIEW "autograd" AS
    SELECT C."id" AS "id", C."pid" AS "pid", C."tid" AS "tid", C."start" AS "start", C."end" AS "end",
        N."string" AS "autogradName", A."seq" AS "seq", A."op_id" AS "op_id", A."sizes" AS "sizes",
        A."input_op_ids" AS "input_op_ids"
    FROM "ext_autogradapi" A
        JOIN "rocpd_api" C ON C."id" = A."api_ptr_id"
        JOIN "rocpd_string" N ON N."id" = A."autogradName_id";
