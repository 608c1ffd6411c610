-- The code objects that a process loaded, one row per content and place. Added by a recorder that was asked to save them.
--
-- sha256 is of the code object's bytes, in hexadecimal digits; the saved file is named for it. uri is where the program had it
-- (file://PATH#offset=N&size=N, memory://PID#offset=0xN&size=N), target the processor that it is for, size in bytes.
CREATE TABLE IF NOT EXISTS "ext_codeobject" (
    "id" integer NOT NULL PRIMARY KEY,
    "sha256" varchar(64) NOT NULL,
    "uri" varchar(4096) NOT NULL,
    "target" varchar(64) NOT NULL,
    "size" integer NOT NULL
);

-- Which of them a kernel came from.
CREATE TABLE IF NOT EXISTS "ext_codeobject_kernel" (
    "id" integer NOT NULL PRIMARY KEY REFERENCES "rocpd_kernelcodeobject" ("id") DEFERRABLE INITIALLY DEFERRED,
    "ext_codeobject_id" integer NOT NULL REFERENCES "ext_codeobject" ("id") DEFERRABLE INITIALLY DEFERRED
);
