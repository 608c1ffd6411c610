-- The kernels of operators: which operator launched what, and how long that took on the GPU. Over ext_callstack and
-- ext_autogradapi, by whichever of their passes comes second.

-- The call stacks, with the operator of the caller and the kernel of the call.
CREATE VIEW IF NOT EXISTS "_callstack_autograd_kernel" AS
    SELECT S."id" AS "id", S."parent_id" AS "parent_id", S."child_id" AS "child_id", S."depth" AS "depth",
        S."cpu_time" AS "cpu_time", S."gpu_time" AS "gpu_time", A."sizes" AS "sizes",
        A."autogradName_id" AS "autogradName_id", K."kernelName_id" AS "kernelName_id"
    FROM "ext_callstack" S
        LEFT JOIN "ext_autogradapi" A ON A."api_ptr_id" = S."parent_id"
        LEFT JOIN "rocpd_kernelapi" K ON K."api_ptr_id" = S."child_id";

-- Launches, with what called them.
CREATE VIEW IF NOT EXISTS "_callstack_autograd_kernel_exclusive" AS
    SELECT * FROM "_callstack_autograd_kernel" WHERE "depth" = 1 AND "kernelName_id" IS NOT NULL;

-- By operator, kernel and sizes; times in ns.
CREATE VIEW IF NOT EXISTS "_autogradKernel" AS
    SELECT "autogradName_id", "kernelName_id", "sizes", count(*) AS "calls", avg("gpu_time") AS "avg_gpu",
        sum("gpu_time") AS "total_gpu"
    FROM "_callstack_autograd_kernel_exclusive"
    GROUP BY "autogradName_id", "kernelName_id", "sizes";

-- By their texts, of which each session of a file may have one of its own.
CREATE VIEW IF NOT EXISTS "autogradKernel" AS
    SELECT N."string" AS "autogradName", K."string" AS "kernelName", A."sizes" AS "sizes", sum(A."calls") AS "calls",
        sum(A."total_gpu") * 1.0 / sum(A."calls") AS "avg_gpu", sum(A."total_gpu") AS "total_gpu"
    FROM "_autogradKernel" A
        JOIN "rocpd_string" N ON N."id" = A."autogradName_id"
        JOIN "rocpd_string" K ON K."id" = A."kernelName_id"
    GROUP BY 1, 2, 3;
