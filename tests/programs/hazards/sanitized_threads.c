/* sanitized.c with the thread sanitizer.
 *
 * Compile: cc -O2 -fsanitize=thread -static-libtsan sanitized_threads.c -o sanitized_threads -ldl -lpthread */
#include "sanitized.c"
