/* rpd_handler.h: what a library offers that wants to see the messages of instrumented kernels.
 *
 *     rpd probe -i -a ./my_handler.so -- ./app
 *
 * runs it in a process of its own, which may crash, hang or take all memory: that costs its own findings, and the trace says so. A library
 * that defines these four functions is a handler. They are never called at the same time.
 *
 *     uint32_t rpd_handler_version(void) { return RPD_HANDLER_VERSION; }
 *     void *rpd_handler_create(const struct rpd_dispatch *dispatch);                      a dispatch has begun: the handler's own data for it
 *     void rpd_handler_message(void *handler, const struct rpd_message *message);         a wavefront has streamed out a message
 *     void rpd_handler_finish(void *handler, const struct rpd_output *output);            no more come: the handler says what it has found
 *
 * What pointers lead to is there until the function returns, texts of the dispatch until rpd_handler_finish returns. Later versions add
 * fields at the ends of structures; `size` says how many bytes there are. Plain C, also for C++, Rust and others.
 */
#ifndef RPD_HANDLER_H
#define RPD_HANDLER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RPD_HANDLER_VERSION 1

struct rpd_dispatch {
    uint32_t size;
    uint32_t process;        /* id of the process that launched it */
    uint64_t number;         /* its place in its queue */
    const char *kernel;      /* demangled name of the application's kernel */
    const char *target;      /* processor, such as gfx90a */
    uint32_t workgroups[3];  /* of the grid */
    uint32_t waves;          /* wavefronts of a workgroup */
};

enum rpd_message_kind { RPD_ADDRESS = 0, RPD_TIME_INTERVAL = 1, RPD_BASIC_BLOCK = 2 };

struct rpd_message {
    uint32_t size;
    uint32_t kind;           /* enum rpd_message_kind, or any other number */
    uint32_t detail;         /* RPD_ADDRESS: bits 0-1 1 read, 2 write, 3 both; 2-5 address space (0 flat, 1 global, 3 LDS, 4 constant, 5 scratch);
                                6-21 bytes of a lane. RPD_BASIC_BLOCK: number of the block */
    uint32_t lanes;          /* active lanes */
    uint64_t exec;           /* which those are, a bit each */
    uint64_t timestamp;      /* the device's clock */
    const char *file;        /* of the source; its hash where the code object does not name it */
    uint32_t line;           /* 0 where it is not known */
    uint32_t column;         /* 0 where it is not known */
    uint16_t workgroup[3];   /* the lower 16 bits of each dimension */
    uint16_t wave;           /* of the workgroup, the lower 4 bits */
    uint32_t xcc, se, cu;    /* where it ran */
    uint32_t address_count;  /* RPD_ADDRESS: the active lanes' addresses, in their order */
    const uint64_t *addresses;
    const void *data;        /* behind the header and the words for lanes: words of 4 bytes, word k of all lanes that sent some before word k + 1 */
    size_t data_size;        /* bytes. RPD_TIME_INTERVAL: two times of 8 bytes, begin and end */
};

struct rpd_output {
    uint32_t size;
    uint32_t completed;      /* 0: the kernel did not run to its end, or messages are missing because they came too fast */
    void *context;
    void (*print)(void *context, const char *text, size_t length);      /* adds text to the log */
    void (*value)(void *context, const char *name, double value);       /* adds a row to ext_handlervalue */
};

uint32_t rpd_handler_version(void);
void *rpd_handler_create(const struct rpd_dispatch *dispatch);
void rpd_handler_message(void *handler, const struct rpd_message *message);
void rpd_handler_finish(void *handler, const struct rpd_output *output);

#ifdef __cplusplus
}
#endif

#endif
