/* The recorder's C interface. Link with -lrpd_tracer, or find the functions by dlsym(RTLD_DEFAULT, ...) so that the program also
 * runs where the recorder is not loaded. Every function may be called from any thread at any time and does nothing where
 * recording is not possible. Strings are NUL-terminated, copied, and may be null. */
#ifndef RPD_TRACER_H
#define RPD_TRACER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts and stops are counted: recording runs while there were more starts than stops. RPDT_AUTOSTART=1 (the default) counts as
 * one start. */
void rpdstart(void);
void rpdstop(void);

/* Returns when everything that was recorded and has completed is in the file, readable by others; after 10 s at the latest. */
void rpdflush(void);

/* As rpdflush, after up to `ns` nanoseconds in which what was launched while recording may complete: for after rpdstop. Returns how many
 * recorded launches have no operation in the file then: their kernels have not completed. They are recorded when they do. */
uint64_t rpddrain(uint64_t ns);

/* Another trace: what was recorded before the call is in the old file when it returns (after 10 s at the latest), what is recorded
 * after it goes into this one, made when missing. %p, %h, %r and %j as in RPDT_FILENAME. Returns 0, or -1 where there can be no trace of
 * that name (a missing directory, a file that is something else, no name): the trace then stays the one that it was. Before anything
 * was recorded no file is opened: one that turns out to be something else ends recording, until another is named. */
int rpd_setFilename(const char *name);

/* What the end of the process does: the last rows, the session's end. For processes that end by _exit and have loaded the recorder
 * by dlopen; with LD_PRELOAD it happens by itself. Nothing is recorded after it. */
void rpdfinish(void);

/* Makes the file now instead of with the first record; returns when it is there or cannot be made, after 10 s at the latest. */
void rpdopen(void);

/* For a program that uses no GPU itself. How many GPUs this machine has, of those that RPDT_MONITOR_GPUS names or of all. */
uint32_t rpdmonitor_gpus(void);

/* How many of the sensors that RPDT_MONITOR names any of these GPUs has, or may have: one that sleeps is not woken. A sensor that none has
 * is named on standard error, unless RPDT_MONITOR is `available`. Reads each sensor once, and records nothing. */
uint32_t rpdmonitor_sensors(void);

/* Samples their sensors from now on, as RPDT_MONITOR and its like say. Returns how many GPUs this process samples, once it has the first
 * values or after a second: another process may already sample some of them into the same file. Where one that RPDT_MONITOR_GPUS names is
 * missing, nothing is sampled. */
uint32_t rpdmonitor(void);

/* What the recorder is at. */
struct rpd_state {
    uint32_t size;      /* sizeof(struct rpd_state), set by the caller */
    uint32_t recording; /* 1 while it records, otherwise 0 */
    int64_t session;    /* number of the recording in the file; -1 before there is a file */
    uint64_t events;    /* calls, operations and markers that are in the file */
    uint64_t lost;      /* records lost */
    uint64_t problems;  /* complaints so far, whether they were printed or not */
    char file[4096];    /* the trace, cut off where its name is longer */
    char problem[512];  /* the last complaint */
};
/* Leaves the structure alone where nothing can be recorded. */
void rpd_state(struct rpd_state *state);

/* An instant, and a range of the calling thread: rows of rocpd_api with that name and those arguments. Schema 2 has no place for
 * the domain. */
void rpd_mark(const char *domain, const char *apiName, const char *args);
void rpd_rangePush(const char *domain, const char *apiName, const char *args);
void rpd_rangePop(void);

/* The same on a stack of its own, for the functions of an interpreter: a pop never ends a range of rpd_rangePush. */
void rpd_framePush(const char *apiName, const char *args);
void rpd_framePop(void);

#ifdef __cplusplus
}
#endif
#endif
