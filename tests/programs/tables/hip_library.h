#include <stddef.h>
#include <stdint.h>

// An argument that calls to `name` are given: where it stands in HIP's data, its bytes.
struct argument {
    const char *name;
    size_t offset, size;
    uint64_t value;
};

// Becomes that version: `list` is fixtures/tables/hip.txt, `versions` all of them in order.
void be(const char *list, const char *versions, const char *version);
// Has no such function any more.
void forget(const char *name);
// Calls every function once, with data of `size` bytes; of how many the tool wants to know, -1 where nobody has registered. The list of
// arguments ends with one without a name; all others are 0.
int call_all(size_t size, const struct argument *arguments);
// Tells of a kernel whose times the program wants for an event of its own, whatever the tool has answered.
void complete_a_command(void);
