// A call that is printed as the recorder should write it: `name|arguments`, where what a launch's or copy's own row holds is left out.
#pragma once
#include "../../../fixtures/programs/check.h"

#include <cstdarg>
#include <cstring>
#include <string>

static std::string text(const char *format, ...) {
    char line[512];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    return line;
}

// %p writes a null pointer in words.
static unsigned long long at(const void *pointer) { return (unsigned long long)pointer; }

#define CALL(function, arguments, ...)                                                             \
    do {                                                                                           \
        HIP(function arguments);                                                                   \
        printf("%s|%s\n", #function, text(__VA_ARGS__).c_str());                                   \
    } while (0)
