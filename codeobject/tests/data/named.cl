// OpenCL states what HIP leaves out: names and types of arguments, access, a required work-group size.
__kernel __attribute__((reqd_work_group_size(8, 4, 2))) void named(__global const float *restrict source,
                                                                   __global float *destination, __local int *scratch,
                                                                   __constant int *table, uint count) {
    size_t i = get_global_id(0);
    scratch[get_local_id(0)] = table[i & 3];
    if (i < count) destination[i] = source[i] + scratch[get_local_id(0)];
}
