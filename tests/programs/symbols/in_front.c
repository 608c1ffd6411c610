// A library that stands in front of HIP's function and looks that up in HIP's own handle; with VARIABLE a program that keeps what it
// has looked up in a variable of the function's name.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static void *look_up(void) {
    const char *names[] = {"libamdhip64.so.5", "libamdhip64.so.6"};
    void *hip = 0;
    for (int i = 0; !hip && i < 2; i++) hip = dlopen(names[i], RTLD_NOW);
    return dlsym(hip, "hipGetDeviceCount");
}

#ifdef VARIABLE
int (*hipGetDeviceCount)(int *);

int main(void) {
    int without_hip = dlsym(RTLD_DEFAULT, "hipGetDeviceCount") == &hipGetDeviceCount;
    hipGetDeviceCount = look_up();
    int with_hip = dlsym(RTLD_DEFAULT, "hipGetDeviceCount") == &hipGetDeviceCount;
    printf("finds its own %d %d\n", without_hip, with_hip);
    int devices = -1, status = hipGetDeviceCount(&devices);
    printf("status %d, %d devices\n", status, devices);
    return 0;
}
#else
int hipGetDeviceCount(int *devices) {
    int (*hips)(int *) = look_up();
    return hips(devices);
}
#endif
