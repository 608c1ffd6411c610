/* The recorder's markers where it is loaded; without it they do nothing. Included by C and C++. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>

typedef void (*rpd_marker)(const char *domain, const char *name, const char *args);

static inline void *rpd_function(const char *name) { return dlsym(RTLD_DEFAULT, name); }

/* An instant with that text as its arguments. */
static inline void mark(const char *text) {
    rpd_marker marker = (rpd_marker)rpd_function("rpd_mark");
    if (marker) marker("hazards", "UserMarker", text);
}

static inline void push(const char *text) {
    rpd_marker marker = (rpd_marker)rpd_function("rpd_rangePush");
    if (marker) marker("hazards", "UserMarker", text);
}

static inline void call(const char *name) {
    void (*function)(void) = (void (*)(void))rpd_function(name);
    if (function) function();
}
