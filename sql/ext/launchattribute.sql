-- Kernels of CUDA that are a graph's node or were launched in clusters of workgroups. Added with the first row.
CREATE TABLE IF NOT EXISTS "ext_launchattribute" (
    "op_id" integer NOT NULL PRIMARY KEY REFERENCES "rocpd_op" ("id") DEFERRABLE INITIALLY DEFERRED,
    "graph" integer NOT NULL,
    "graphNode" integer NOT NULL,
    "clusterX" integer NOT NULL,
    "clusterY" integer NOT NULL,
    "clusterZ" integer NOT NULL
);
