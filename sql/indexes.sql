-- The one secondary index of a fresh file: text to id. Its name is the one that existing tools know.
CREATE INDEX IF NOT EXISTS "rocpd_strin_string_c7b9cd_idx" ON "rocpd_string" ("string");
