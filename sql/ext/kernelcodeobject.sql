-- What a kernel's code object says beyond the columns of rocpd_kernelcodeobject. Not part of a fresh file: a writer
-- adds it when it first knows such a fact.
--
-- agpr are accumulation registers per lane; spills are registers, segment sizes are bytes (kernarg: of the
-- arguments), wavefrontSize is lanes, maxWorkgroupSize is work-items.
CREATE TABLE IF NOT EXISTS "ext_kernelcodeobject" (
    "id" integer NOT NULL PRIMARY KEY REFERENCES "rocpd_kernelcodeobject" ("id") DEFERRABLE INITIALLY DEFERRED,
    "kernelName_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED,
    "agpr" integer NOT NULL,
    "vgprSpill" integer NOT NULL,
    "sgprSpill" integer NOT NULL,
    "groupSegmentSize" integer NOT NULL,
    "privateSegmentSize" integer NOT NULL,
    "kernargSegmentSize" integer NOT NULL,
    "wavefrontSize" integer NOT NULL,
    "maxWorkgroupSize" integer NOT NULL
);

INSERT INTO "rocpd_metadata" ("tag", "value")
    SELECT 'references::rocpd_string.id', '("ext_kernelcodeobject", "kernelName_id")'
    WHERE NOT EXISTS (
        SELECT 1 FROM "rocpd_metadata"
        WHERE "tag" = 'references::rocpd_string.id' AND "value" = '("ext_kernelcodeobject", "kernelName_id")'
    );
