/* rpd_probe.h: what an instrumented kernel streams out, for `rpd probe`.
 *
 * An instrumented kernel does what the kernel of the application does, and says where it is and what it reads and writes. It has one
 * argument more, the last, which the recorder fills, and the name of the original with `__amd_crk_` before it and `Pv` behind it:
 *
 *     #include <rpd_probe.h>
 *
 *     __global__ void scale(float *data, float by) { data[blockIdx.x * blockDim.x + threadIdx.x] *= by; }
 *
 *     RPD_INSTRUMENTED(_Z5scalePff)(float *data, float by, void *probe) {
 *         float *place = &data[blockIdx.x * blockDim.x + threadIdx.x];
 *         RPD_STORE(probe, place, RPD_LOAD(probe, place) * by);
 *     }
 *
 * `rpd code PROGRAM --json` shows the mangled names of kernels. The kernel may be in the program itself or in a file of a kernel cache.
 *
 *     RPD_LOAD(probe, address)            reads *address, and says so
 *     RPD_STORE(probe, address, value)    writes it, and says so
 *     RPD_UPDATED(probe, address)         says that *address was read and written, as atomic operations do
 *     uint64_t begin = RPD_BEGIN();       the time; RPD_END(probe, begin) says how long it was from there to here
 *     RPD_BLOCK(probe, number)            says that the wavefront enters the basic block of that number
 *
 * Lanes that are active at such a place make one message together. Messages have the layout and the protocol of AMD's dh_comms, so that
 * its tools read them as well. HIP 5.2 and later, C++11; gfx9 and later.
 */
#ifndef RPD_PROBE_H
#define RPD_PROBE_H

#include <hip/hip_runtime.h>
#include <stdint.h>

#define RPD_INSTRUMENTED(mangled) extern "C" __global__ void __amd_crk_##mangled##Pv
#define RPD_LOAD(probe, address) rpd_probe::load((probe), (address), RPD_PLACE)
#define RPD_STORE(probe, address, value) rpd_probe::store((probe), (address), (value), RPD_PLACE)
#define RPD_UPDATED(probe, address) rpd_probe::access((probe), (address), rpd_probe::READ_WRITE, RPD_PLACE)
#define RPD_BEGIN() rpd_probe::now()
#define RPD_END(probe, begin) rpd_probe::interval((probe), (begin), RPD_PLACE)
#define RPD_BLOCK(probe, number) rpd_probe::block((probe), (number), RPD_PLACE)
#define RPD_PLACE rpd_probe::Place{rpd_probe::Constant<rpd_probe::hash(__FILE__, sizeof(__FILE__) - 1)>::value, __LINE__, __COUNTER__}

namespace rpd_probe {

/* Where in the source: the hash of the file's name, the line, and a number that no other place has. */
struct Place {
    uint64_t file;
    uint32_t line;
    uint32_t site;
};

enum Access : uint32_t { READ = 1, WRITE = 2, READ_WRITE = 3 };
enum Kind : uint32_t { ADDRESS = 0, TIME_INTERVAL = 1, BASIC_BLOCK = 2 };

/* What the last argument points to: sub-buffers of `capacity` bytes each, and for each of them how much of it is used, whether a wave
 * writes to it, and whether it is full and waits for the host. */
struct Buffers {
    uint64_t count;
    uint64_t capacity;
    char *bytes;
    uint64_t *sizes;
    uint32_t *errors;
    uint8_t *locks;
    uint8_t *full;
};

/* In front of the data of each message. */
struct WaveHeader {
    uint64_t exec;
    uint64_t data_size;
    uint64_t timestamp;
    uint64_t file;
    uint32_t line;
    uint32_t column;
    uint32_t kind;
    uint32_t detail;
    uint16_t block[3];
    uint16_t wave;
    uint8_t lanes;
    uint8_t arch;
    uint8_t padding[6];
};
static_assert(sizeof(Buffers) == 56 && sizeof(WaveHeader) == 64, "the layout of dh_comms");

template <uint64_t hash> struct Constant { static constexpr uint64_t value = hash; };

/* What libstdc++ makes of a text (std::hash), by which the host finds the name of a file again. */
constexpr uint64_t MULTIPLIER = 0xc6a4a7935bd1e995ull;
constexpr uint64_t mixed(uint64_t value) { return value ^ (value >> 47); }
constexpr uint64_t word(const char *text, uint64_t length, uint64_t at = 0) {
    return at == length ? 0 : uint64_t(uint8_t(text[at])) << 8 * at | word(text, length, at + 1);
}
constexpr uint64_t folded(const char *text, uint64_t length, uint64_t value) {
    return length >= 8 ? folded(text + 8, length - 8, (value ^ mixed(word(text, 8) * MULTIPLIER) * MULTIPLIER) * MULTIPLIER)
           : length > 0 ? (value ^ word(text, length)) * MULTIPLIER
                        : value;
}
constexpr uint64_t hash(const char *text, uint64_t length) {
    return mixed(mixed(folded(text, length, 0xc70f6907ull ^ length * MULTIPLIER)) * MULTIPLIER);
}

__device__ inline uint64_t now() { return clock64(); }

/* Which wave of its workgroup this is (bits 0-3), and where it runs: XCC (4-7), SE (8-10), CU (11-14). */
__device__ inline uint16_t wave_of() {
    uint32_t flat = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    uint32_t wave = flat / warpSize & 15;
#if defined(__GFX9__)
    uint32_t place = __builtin_amdgcn_s_getreg(4 | 0 << 6 | 31 << 11); /* HW_ID */
    wave |= (place >> 13 & 7) << 8 | (place >> 8 & 15) << 11;
#endif
#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__)
    wave |= __builtin_amdgcn_s_getreg(20 | 0 << 6 | 3 << 11) << 4; /* XCC_ID */
#endif
    return uint16_t(wave);
}

__device__ constexpr uint8_t arch() {
#if defined(__gfx906__)
    return 1;
#elif defined(__gfx908__)
    return 2;
#elif defined(__gfx90a__)
    return 3;
#elif defined(__gfx940__)
    return 4;
#elif defined(__gfx941__)
    return 5;
#elif defined(__gfx942__)
    return 6;
#else
    return 0;
#endif
}

/* Takes the sub-buffer for a message of so many bytes: where in it the message goes. For one lane. */
__device__ inline uint32_t reserve(Buffers *buffers, uint64_t index, uint64_t bytes) {
    uint8_t *lock = &buffers->locks[index];
    for (;;) {
        uint8_t unlocked = 0;
        if (__hip_atomic_compare_exchange_strong(lock, &unlocked, uint8_t(1), __ATOMIC_ACQUIRE, __ATOMIC_RELAXED,
                                                 __HIP_MEMORY_SCOPE_AGENT))
            break;
        __builtin_amdgcn_s_sleep(1);
    }
    uint64_t used = __hip_atomic_load(&buffers->sizes[index], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
    if (used + bytes > buffers->capacity) {
        uint8_t *full = &buffers->full[index];
        __hip_atomic_store(full, uint8_t(1), __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
        while (__hip_atomic_load(full, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) != 0)
            __builtin_amdgcn_s_sleep(8);
        used = 0;
    }
    return uint32_t(used);
}

/* Code that two branches begin or end with is made common by compilers, and one message would be of both branches. They leave
 * instructions alone that they do not know and that differ, so that each message begins and ends with one of its place. */
__device__ inline void apart(Place place) {
#if defined(__HIP_DEVICE_COMPILE__)
    asm volatile("; message %0" ::"v"(place.site) : "memory");
#endif
}

/* One message of all lanes that are active here: `words` words of each of them, or, where `is_vector` is not set, of the first. */
__device__ inline void send(void *probe, Kind kind, uint32_t detail, const uint32_t *data, uint32_t words, bool is_vector, Place place) {
    Buffers *buffers = static_cast<Buffers *>(probe);
    uint64_t exec = __builtin_amdgcn_read_exec();
    uint32_t lanes = __popcll(exec);
    uint32_t rank = __popcll(exec & ((1ull << __lane_id()) - 1));
    uint32_t senders = is_vector ? lanes : 1;
    uint64_t lane_headers = is_vector ? 4 * lanes : 0;
    uint64_t data_size = lane_headers + 4ull * words * senders;
    uint64_t bytes = sizeof(WaveHeader) + data_size;
    if (bytes > buffers->capacity) {
        if (rank == 0) __hip_atomic_fetch_or(buffers->errors, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
        return;
    }
    uint64_t workgroup = blockIdx.x + uint64_t(gridDim.x) * (blockIdx.y + uint64_t(gridDim.y) * blockIdx.z);
    uint64_t index = workgroup % buffers->count;
    uint32_t offset = 0;
    if (rank == 0) offset = reserve(buffers, index, bytes);
    offset = __builtin_amdgcn_readfirstlane(offset);
    char *out = buffers->bytes + index * buffers->capacity + offset;
    if (rank == 0) {
        WaveHeader header = {};
        header.exec = exec;
        header.data_size = data_size | uint64_t(is_vector) << 62 | uint64_t(is_vector) << 63;
        header.timestamp = now();
        header.file = place.file;
        header.line = place.line;
        header.column = 0xffffffffu;
        header.kind = kind;
        header.detail = detail;
        header.block[0] = uint16_t(blockIdx.x);
        header.block[1] = uint16_t(blockIdx.y);
        header.block[2] = uint16_t(blockIdx.z);
        header.wave = wave_of();
        header.lanes = uint8_t(lanes);
        header.arch = arch();
        const uint32_t *from = reinterpret_cast<const uint32_t *>(&header);
        for (uint32_t word = 0; word < sizeof(WaveHeader) / 4; word++) reinterpret_cast<uint32_t *>(out)[word] = from[word];
    }
    uint32_t *body = reinterpret_cast<uint32_t *>(out + sizeof(WaveHeader));
    if (is_vector) body[rank] = threadIdx.x | threadIdx.y << 10 | threadIdx.z << 20;
    body += lane_headers / 4;
    if (rank < senders)
        for (uint32_t word = 0; word < words; word++) body[word * senders + rank] = data[word];
    __threadfence_system();
    if (rank == 0) {
        __hip_atomic_store(&buffers->sizes[index], offset + bytes, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
        __hip_atomic_store(&buffers->locks[index], uint8_t(0), __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    }
}

template <typename T> __device__ inline void access(void *probe, const volatile T *address, Access access, Place place) {
    apart(place);
    const void *generic = const_cast<const T *>(address);
    uint32_t space = 1; /* global */
#if defined(__HIP_DEVICE_COMPILE__)
    if (__builtin_amdgcn_is_shared(generic)) space = 3;
    else if (__builtin_amdgcn_is_private(generic)) space = 5;
#endif
    uint64_t value = reinterpret_cast<uint64_t>(generic);
    uint32_t words[2] = {uint32_t(value), uint32_t(value >> 32)};
    uint32_t size = sizeof(T) < 0xffff ? sizeof(T) : 0xffff;
    send(probe, ADDRESS, access | space << 2 | size << 6, words, 2, true, place);
    apart(place);
}

template <typename T> __device__ inline T load(void *probe, const T *address, Place place) {
    access(probe, address, READ, place);
    return *address;
}

template <typename T> __device__ inline T load(void *probe, const volatile T *address, Place place) {
    access(probe, address, READ, place);
    return *address;
}

template <typename T, typename V> __device__ inline void store(void *probe, T *address, V value, Place place) {
    access(probe, address, WRITE, place);
    *address = value;
}

__device__ inline void interval(void *probe, uint64_t begin, Place place) {
    uint64_t end = now();
    apart(place);
    uint32_t words[4] = {uint32_t(begin), uint32_t(begin >> 32), uint32_t(end), uint32_t(end >> 32)};
    send(probe, TIME_INTERVAL, 0, words, 4, false, place);
    apart(place);
}

__device__ inline void block(void *probe, uint32_t number, Place place) {
    apart(place);
    send(probe, BASIC_BLOCK, number, nullptr, 0, false, place);
    apart(place);
}

} // namespace rpd_probe

#endif
