/* Another tool's injection library: says that it was asked, and wants nothing.
 * Compile: cc -shared -fPIC other_injection.c -o libother.so */
#include <stdio.h>

int InitializeInjectionNvtx2(const void *(*get_export_table)(unsigned)) {
    printf("other tool %s\n", get_export_table(1) ? "with tables" : "without tables");
    return 0;
}
