/* Threads mark as fast as they can while main returns.
 *
 * Compile: cc -O2 busy_at_end.c -o busy_at_end -ldl -lpthread
 */
#include "markers.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *busy(void *nothing) {
    const rpd_marker marker = (rpd_marker)rpd_function("rpd_mark");
    for (;;)
        if (marker) marker("hazards", "UserMarker", "busy");
    return nothing;
}

int main(void) {
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, busy, NULL);
    }
    usleep(300000);
    return 0;
}
