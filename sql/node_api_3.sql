-- Calls with the node taken out of their numbers (see nodes.sql), in schema 3.
CREATE VIEW IF NOT EXISTS "napi" AS
    SELECT C."id" AS "id", C."pid" / S."stride" AS "node", C."pid" % S."stride" AS "pid",
        C."tid" % S."stride" AS "tid", C."start" AS "start", C."end" AS "end",
        D."string" AS "domain", K."string" AS "category", N."string" AS "apiName", G."string" AS "args"
    FROM "rocpd_api" C
        JOIN (SELECT CAST("value" AS integer) AS "stride" FROM "rocpd_metadata" WHERE "tag" = 'pid_stride' LIMIT 1) S
        JOIN "rocpd_string" D ON D."id" = C."domain_id"
        JOIN "rocpd_string" K ON K."id" = C."category_id"
        JOIN "rocpd_string" N ON N."id" = C."apiName_id"
        JOIN "rocpd_ustring" G ON G."id" = C."args_id";
