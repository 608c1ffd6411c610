/* The recorder's C interface. Link with -lrpd_tracer, or find the functions by dlsym(RTLD_DEFAULT, ...) so that the program also
 * runs where the recorder is not loaded. Every function may be called from any thread at any time and does nothing where
 * recording is not possible. Strings are NUL-terminated, copied, and may be null. */
#ifndef RPD_TRACER_H
#define RPD_TRACER_H

#ifdef __cplusplus
extern "C" {
#endif

/* Starts and stops are counted: recording runs while there were more starts than stops. RPDT_AUTOSTART=1 (the default) counts as
 * one start. */
void rpdstart(void);
void rpdstop(void);

/* Returns when everything that was recorded and has completed is in the file, readable by others; after 10 s at the latest. */
void rpdflush(void);

/* Another trace: what was recorded before the call is in the old file when it returns (after 10 s at the latest), what is recorded
 * after it goes into this one, made when missing. %p, %h and %r as in RPDT_FILENAME. Returns 0, or -1 for no name. */
int rpd_setFilename(const char *name);

/* What the end of the process does: the last rows, the session's end. For processes that end by _exit and have loaded the recorder
 * by dlopen; with LD_PRELOAD it happens by itself. Nothing is recorded after it. */
void rpdfinish(void);

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
