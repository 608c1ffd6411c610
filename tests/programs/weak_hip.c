// Uses HIP where it is linked to it.
#include <stdio.h>

int hipDeviceSynchronize(void) __attribute__((weak));

int main(void) {
    if (!hipDeviceSynchronize) return puts("no HIP"), 0;
    printf("status %d\n", hipDeviceSynchronize());
    return 0;
}
