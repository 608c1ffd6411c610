-- The kernels of graphs, for a file without ext_dispatch: how those of a composed graph were launched is not known.
CREATE VIEW "graphKernel" AS
    SELECT G."graphExec" AS "graphExec", A."sequence" AS "sequence", N."string" AS "kernelName",
        K."gridX" AS "gridX", K."gridY" AS "gridY", K."gridZ" AS "gridZ", K."workgroupX" AS "workgroupX",
        K."workgroupY" AS "workgroupY", K."workgroupZ" AS "workgroupZ",
        K."groupSegmentSize" AS "groupSegmentSize", K."privateSegmentSize" AS "privateSegmentSize"
    FROM "ext_graph_kernelapis" A
        JOIN "ext_graph" G ON G."id" = A."graph_id"
        JOIN "rocpd_kernelapi" K ON K."api_ptr_id" = A."api_id"
        JOIN "rocpd_string" N ON N."id" = K."kernelName_id"
    UNION ALL
    SELECT G."graphExec", A."sequence", N."string", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM "ext_graph_kernelops" A
        JOIN "ext_graph" G ON G."id" = A."graph_id"
        JOIN "rocpd_op" O ON O."id" = A."op_id"
        JOIN "rocpd_string" N ON N."id" = O."description_id";
