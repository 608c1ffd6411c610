-- What rocpd_metadata says of a fresh file. Rows that an existing file already has stay as they are.

INSERT INTO "rocpd_metadata" ("tag", "value")
    SELECT 'schema_version', '2'
    WHERE NOT EXISTS (SELECT 1 FROM "rocpd_metadata" WHERE "tag" = 'schema_version');

-- String clean-ups renumber rocpd_string: they learn from these rows which further columns refer to it.
INSERT INTO "rocpd_metadata" ("tag", "value")
    SELECT 'references::rocpd_string.id', '("rocpd_stackframe", "name_id")'
    WHERE NOT EXISTS (
        SELECT 1 FROM "rocpd_metadata"
        WHERE "tag" = 'references::rocpd_string.id' AND "value" = '("rocpd_stackframe", "name_id")'
    );
