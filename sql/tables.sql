-- The tables of an .rpd file, schema version 2.
--
-- Times are nanoseconds of CLOCK_MONOTONIC of the recording host. Every id written by a recording process is its
-- local id plus its session number times 2^32, so that any number of processes can append to one file.
-- "aquireFence" is spelled as the format spells it. Every statement leaves an existing table alone: running this
-- file on an older trace adds what it lacks.

-- Resources of one kernel: registers per lane and, where known, barriers.
CREATE TABLE IF NOT EXISTS "rocpd_kernelcodeobject" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "vgpr" integer NOT NULL,
    "sgpr" integer NOT NULL,
    "fbar" integer NOT NULL
);

-- Every text of the trace. Local id 1 of each session is the empty string. A text may stand here more than once.
CREATE TABLE IF NOT EXISTS "rocpd_string" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "string" varchar(4096) NOT NULL
);

-- Barrier packets, for those who ask for them. Their ops are linked to no API call.
CREATE TABLE IF NOT EXISTS "rocpd_barrierop" (
    "op_ptr_id" integer NOT NULL PRIMARY KEY REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED,
    "signalCount" integer NOT NULL,
    "aquireFence" varchar(8) NOT NULL,
    "releaseFence" varchar(8) NOT NULL
);

-- Arguments of an API call that copies: one row per call.
CREATE TABLE IF NOT EXISTS "rocpd_copyapi" (
    "api_ptr_id" integer NOT NULL PRIMARY KEY REFERENCES "rocpd_api" ("id") DEFERRABLE INITIALLY DEFERRED,
    "stream" varchar(18) NOT NULL,
    "size" integer NOT NULL,
    "width" integer NOT NULL,
    "height" integer NOT NULL,
    "kind" integer NOT NULL,
    "dst" varchar(18) NOT NULL,
    "src" varchar(18) NOT NULL,
    "dstDevice" integer NOT NULL,
    "srcDevice" integer NOT NULL,
    "sync" bool NOT NULL,
    "pinned" bool NOT NULL
);

-- Which op waited for which.
CREATE TABLE IF NOT EXISTS "rocpd_op_inputSignals" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "from_op_id" integer NOT NULL REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED,
    "to_op_id" integer NOT NULL REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED
);

-- What a GPU did: a kernel, a copy or a fill, on its own timeline.
CREATE TABLE IF NOT EXISTS "rocpd_op" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "gpuId" integer NOT NULL,
    "queueId" integer NOT NULL,
    "sequenceId" integer NOT NULL,
    "completionSignal" varchar(18) NOT NULL,
    "start" integer NOT NULL,
    "end" integer NOT NULL,
    "description_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED,
    "opType_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED
);

-- What a thread of the application did: an API call, a marker or a range.
CREATE TABLE IF NOT EXISTS "rocpd_api" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "pid" integer NOT NULL,
    "tid" integer NOT NULL,
    "start" integer NOT NULL,
    "end" integer NOT NULL,
    "apiName_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED,
    "args_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED
);

-- Which API call caused which ops: none, one, or many (a graph launch).
CREATE TABLE IF NOT EXISTS "rocpd_api_ops" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "api_id" integer NOT NULL REFERENCES "rocpd_api" ("id") DEFERRABLE INITIALLY DEFERRED,
    "op_id" integer NOT NULL REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED
);

-- Arguments of an API call that launches one kernel. grid is in workgroups, workgroup in work-items.
CREATE TABLE IF NOT EXISTS "rocpd_kernelapi" (
    "api_ptr_id" integer NOT NULL PRIMARY KEY REFERENCES "rocpd_api" ("id") DEFERRABLE INITIALLY DEFERRED,
    "stream" varchar(18) NOT NULL,
    "gridX" integer NOT NULL,
    "gridY" integer NOT NULL,
    "gridZ" integer NOT NULL,
    "workgroupX" integer NOT NULL,
    "workgroupY" integer NOT NULL,
    "workgroupZ" integer NOT NULL,
    "groupSegmentSize" integer NOT NULL,
    "privateSegmentSize" integer NOT NULL,
    "kernelArgAddress" varchar(18) NOT NULL,
    "aquireFence" varchar(8) NOT NULL,
    "releaseFence" varchar(8) NOT NULL,
    "codeObject_id" integer NOT NULL REFERENCES "rocpd_kernelcodeobject" ("id") DEFERRABLE INITIALLY DEFERRED,
    "kernelName_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED
);

-- Facts about the file, its sessions (session::N::key) and its GPUs (gpu::N::key).
CREATE TABLE IF NOT EXISTS "rocpd_metadata" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "tag" varchar(4096) NOT NULL,
    "value" varchar(4096) NOT NULL
);

-- Sensors: one row per stretch [start, end) in which a value did not change.
CREATE TABLE IF NOT EXISTS "rocpd_monitor" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "deviceType" varchar(16) NOT NULL,
    "deviceId" integer NOT NULL,
    "monitorType" varchar(16) NOT NULL,
    "start" integer NOT NULL,
    "end" integer NOT NULL,
    "value" varchar(255) NOT NULL
);

-- The host call stack of an API call; depth 0 is the innermost frame.
CREATE TABLE IF NOT EXISTS "rocpd_stackframe" (
    "id" integer NOT NULL PRIMARY KEY AUTOINCREMENT,
    "api_ptr_id" integer NOT NULL REFERENCES "rocpd_api" ("id") DEFERRABLE INITIALLY DEFERRED,
    "depth" integer NOT NULL,
    "name_id" integer NOT NULL REFERENCES "rocpd_string" ("id") DEFERRABLE INITIALLY DEFERRED
);
