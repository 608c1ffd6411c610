-- What a candidate and the application's kernel left in copies of the same buffers. Added by a recorder that was asked to validate.
--
-- One row per dispatch and buffer argument; one with argument -1 where they could not be compared, and reason says why. argument
-- is the place among the kernel's arguments, from 0, and offset its bytes from their start. compared is bytes, f16, bf16, f32 or f64, and
-- elements how many of them were compared; written is how many of them the application's kernel changed, different how many differ
-- between the two. first is the place of the first of these, in elements from the address that the argument has, which may be negative;
-- original and candidate are its values. largest is the largest difference of all, as a number; empty where there is none.
CREATE TABLE IF NOT EXISTS "ext_validation" (
    "id" integer NOT NULL PRIMARY KEY,
    "op_id" integer NOT NULL REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED,
    "argument" integer NOT NULL,
    "offset" integer NOT NULL,
    "compared" varchar(8) NOT NULL,
    "elements" integer NOT NULL,
    "written" integer NOT NULL,
    "different" integer NOT NULL,
    "first" integer NOT NULL,
    "original" varchar(64) NOT NULL,
    "candidate" varchar(64) NOT NULL,
    "largest" varchar(64) NOT NULL,
    "reason" varchar(4096) NOT NULL
);
