/* A roctx library that says on standard output what it is called with and returns numbers nobody else would: it stands for AMD's
 * libroctx64.so.4, version node included.
 * Compile: cc -shared -fPIC other_roctx.c -o libroctx64.so.4 -Wl,-soname,libroctx64.so.4,--version-script=other_roctx.map */
#include <stdint.h>
#include <stdio.h>

static int level = 100;
static uint64_t last = 1000;

uint32_t roctx_version_major(void) { return 7; }
uint32_t roctx_version_minor(void) { return 8; }
void roctxMarkA(const char *text) { printf("<mark %.6s>\n", text ? text : "(null)"); }
int roctxRangePushA(const char *text) { return printf("<push %s>\n", text), level++; }
int roctxRangePop(void) { return puts("<pop>"), --level; }
uint64_t roctxRangeStartA(const char *text) { return printf("<start %s>\n", text), ++last; }
void roctxRangeStop(uint64_t id) { printf("<stop %d>\n", (int)id); }
int roctxGetThreadId(uint64_t *tid) { return *tid = 5, 21; }
int roctxProfilerPause(uint64_t tid) { return tid ? 22 : 23; }
int roctxProfilerResume(uint64_t tid) { return tid ? 24 : 25; }
int roctxNameOsThread(const char *name) { return printf("<name %s>\n", name), 26; }
int roctxNameHsaAgent(const char *name, const void *agent) { return (void)agent, printf("<name %s>\n", name), 27; }
int roctxNameHipDevice(const char *name, int device) { return (void)device, printf("<name %s>\n", name), 28; }
int roctxNameHipStream(const char *name, const void *stream) { return (void)stream, printf("<name %s>\n", name), 29; }
