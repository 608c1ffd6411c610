-- The device's own raw tick counts of an op, before translation to CLOCK_MONOTONIC. Added only on request.
CREATE TABLE IF NOT EXISTS "ext_tick" (
    "op_id" integer NOT NULL PRIMARY KEY REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED,
    "start" integer NOT NULL,
    "end" integer NOT NULL
);
