-- API calls with their texts.
CREATE VIEW IF NOT EXISTS "api" AS
    SELECT C."id" AS "id", C."pid" AS "pid", C."tid" AS "tid", C."start" AS "start", C."end" AS "end",
        N."string" AS "apiName", G."string" AS "args"
    FROM "rocpd_api" C
        JOIN "rocpd_string" N ON N."id" = C."apiName_id"
        JOIN "rocpd_string" /* schema 3: rocpd_ustring */ G ON G."id" = C."args_id";
