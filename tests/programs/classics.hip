// Kernels as textbooks and collections of benchmarks have them, each in a few lines: what they do to control flow is the point. Each runs once on
// the same numbers; printed is a sum of its results, the same in every run.
#include "../../fixtures/programs/check.h"
#include <vector>

#define N 512
#define ITEMS 128

#define KERNEL extern "C" __global__ void
#define ME int me = blockIdx.x * blockDim.x + threadIdx.x
#define PARAMETERS const int *in, int *out

KERNEL vector_add(PARAMETERS) { ME; out[me] = in[me] + in[N - 1 - me]; }

KERNEL saxpy_strided(PARAMETERS) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < N; at += 96) out[at] = int(2.5f * in[at]) + at;
}

KERNEL transpose(PARAMETERS) {
    __shared__ int tile[16][17];
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (int row = y; row < 16; row += ITEMS / 16) tile[row][x] = in[(blockIdx.x * 16 + row) * 8 % N + x];
    __syncthreads();
    out[blockIdx.x * ITEMS + threadIdx.x] = tile[x][y] + tile[15 - x][y + 8];
}

KERNEL matrix_product(PARAMETERS) {
    __shared__ int a[16][16], b[16][16];
    ME;
    int x = threadIdx.x % 16, y = threadIdx.x / 16, sum = 0;
    for (int tile = 0; tile < 2; tile++) {
        for (int row = y; row < 16; row += 8) {
            a[row][x] = in[(row * 16 + x + tile * 31) % N];
            b[row][x] = in[(x * 16 + row + tile * 57) % N];
        }
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += a[y][k] * b[k][x];
        __syncthreads();
    }
    out[me] = sum;
}

KERNEL reduce_shuffle(PARAMETERS) {
    ME;
    int value = in[me];
    for (int half = 32; half; half /= 2) value += __shfl_down(value, half);
    out[me] = threadIdx.x % 64 ? me : value;
}

KERNEL prefix_sum(PARAMETERS) {
    __shared__ int sums[2][ITEMS];
    ME;
    int from = 0, item = threadIdx.x;
    sums[0][item] = in[me];
    __syncthreads();
    for (int distance = 1; distance < ITEMS; distance *= 2) {
        sums[1 - from][item] = sums[from][item] + (item >= distance ? sums[from][item - distance] : 0);
        from = 1 - from;
        __syncthreads();
    }
    out[me] = sums[from][item];
}

KERNEL histogram(PARAMETERS) {
    ME;
    atomicAdd(&out[in[me] & 63], 1);
    atomicMax(&out[64 + (in[me] & 7)], in[me]);
}

KERNEL bitonic_sort(PARAMETERS) {
    __shared__ int keys[ITEMS];
    int item = threadIdx.x;
    keys[item] = in[blockIdx.x * ITEMS + item];
    __syncthreads();
    for (int size = 2; size <= ITEMS; size *= 2) {
        for (int stride = size / 2; stride; stride /= 2) {
            int other = item ^ stride;
            if (other > item && (keys[item] > keys[other]) == ((item & size) == 0)) {
                int key = keys[item];
                keys[item] = keys[other];
                keys[other] = key;
            }
            __syncthreads();
        }
    }
    out[blockIdx.x * ITEMS + item] = keys[item];
}

KERNEL breadth_first(PARAMETERS) {
    ME;
    int depth = 0, node = me;
    while (node && depth < 20) {
        node = in[node] % 3 ? node / 2 : node - 1;
        depth++;
    }
    out[me] = depth;
}

KERNEL shortest_paths(PARAMETERS) {
    __shared__ int distance[8][8];
    int i = threadIdx.x / 8 % 8, j = threadIdx.x % 8;
    distance[i][j] = in[i * 8 + j] & 255;
    __syncthreads();
    for (int k = 0; k < 8; k++) {
        int through = distance[i][k] + distance[k][j];
        __syncthreads();
        if (through < distance[i][j]) distance[i][j] = through;
        __syncthreads();
    }
    out[blockIdx.x * ITEMS + threadIdx.x] = distance[i][j];
}

KERNEL bodies(PARAMETERS) {
    ME;
    float x = in[me] * 1e-3f, force = 0;
    for (int other = 0; other < 32; other++) {
        float d = in[other] * 1e-3f - x;
        force += d * rsqrtf(d * d + 0.5f);
    }
    out[me] = int(force * 100);
}

KERNEL mandelbrot(PARAMETERS) {
    ME;
    float cx = me % 32 / 16.0f - 1.5f, cy = me / 32 / 8.0f - 1, x = 0, y = 0;
    int turns = 0;
    while (x * x + y * y < 4 && turns < 40) {
        float next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        turns++;
    }
    out[me] = turns + in[0] * 0;
}

KERNEL stencil(PARAMETERS) {
    ME;
    int sum = 4 * in[me];
    if (me % 16) sum -= in[me - 1];
    if (me % 16 != 15) sum -= in[me + 1];
    if (me >= 16) sum -= in[me - 16];
    if (me < N - 16) sum -= in[me + 16];
    out[me] = sum;
}

KERNEL alignment(PARAMETERS) {
    ME;
    int row[9];
    for (int column = 0; column < 9; column++) row[column] = -column;
    for (int line = 1; line < 9; line++) {
        int diagonal = row[0];
        row[0] = -line;
        for (int column = 1; column < 9; column++) {
            int match = diagonal + ((in[(me + line) % N] & 3) == (in[(me * 3 + column) % N] & 3) ? 2 : -1);
            diagonal = row[column];
            int gap = row[column] > row[column - 1] ? row[column] - 1 : row[column - 1] - 1;
            row[column] = match > gap ? match : gap;
        }
    }
    out[me] = row[8];
}

KERNEL sparse_rows(PARAMETERS) {
    ME;
    int sum = 0, begin = me, end = begin + (in[me] & 7);
    for (int at = begin; at < end; at++) sum += in[at % N] * in[in[at % N] % N];
    out[me] = sum;
}

KERNEL string_search(PARAMETERS) {
    ME;
    const char *text = (const char *)in;
    int found = -1;
    for (int at = me; at < me + 24 && found < 0; at++) {
        int same = 0;
        while (same < 2 && (text[at + same] & 15) == ((text[me % 50 + same] >> 1) & 15)) same++;
        if (same == 2) found = at - me;
    }
    out[me] = found;
}

KERNEL clusters(PARAMETERS) {
    ME;
    int best = 0, least = 1 << 30;
    for (int centre = 0; centre < 5; centre++) {
        int distance = abs(in[me] - in[centre * 7]);
        if (distance < least) {
            least = distance;
            best = centre;
        }
    }
    out[me] = best;
}

KERNEL options(PARAMETERS) {
    ME;
    float price = 10 + (in[me] & 63), strike = 30, d = logf(price / strike) / 0.3f;
    float likely = 0.5f * erfcf(-d * 0.70710678f);
    out[me] = int((price * likely - strike * expf(-0.02f) * likely) * 100);
}

KERNEL pi_by_chance(PARAMETERS) {
    ME;
    unsigned state = in[me] | 1;
    int inside = 0;
    for (int turn = 0; turn < 16; turn++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        float x = (state & 0xffff) / 65536.0f, y = (state >> 16) / 65536.0f;
        if (x * x + y * y < 1) inside++;
    }
    out[me] = inside;
}

KERNEL double_product(PARAMETERS) {
    ME;
    double sum = 0;
    for (int k = 0; k < 12; k++) sum += double(in[(me + k) % N]) / (in[(me * k) % N] + 1);
    out[me] = int(sum * 10);
}

KERNEL wide_divisions(PARAMETERS) {
    ME;
    long long value = (long long)in[me] * 1000003 + 17;
    out[me] = int(value / (in[N - 1 - me] + 1) % 10007);
}

struct Shape {
    int side;
    __device__ virtual int area() const { return side; }
};
struct Square : Shape {
    __device__ int area() const override { return side * side; }
};
struct Hexagon : Shape {
    __device__ int area() const override {
        int sum = 0;
        for (int part = 0; part < 6; part++) sum += side * part % 5;
        return sum;
    }
};

KERNEL shapes(PARAMETERS) {
    ME;
    Shape plain;
    Square square;
    Hexagon hexagon;
    Shape *shape = in[me] % 3 == 0 ? &plain : in[me] % 3 == 1 ? &square : (Shape *)&hexagon;
    shape->side = in[me] & 31;
    out[me] = shape->area();
}

__device__ __attribute__((noinline)) int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

KERNEL recursion(PARAMETERS) { ME; out[me] = fibonacci(in[me] % 6); }

KERNEL ticket_lock(PARAMETERS) {
    if (threadIdx.x) return;
    int ticket = atomicAdd(&out[0], 1);
    while (atomicAdd(&out[1], 0) != ticket) __builtin_amdgcn_s_sleep(1);
    volatile int *shared = out;
    shared[2] = shared[2] * 3 + in[ticket];
    __threadfence();
    atomicAdd(&out[1], 1);
}

KERNEL early_ends(PARAMETERS) {
    ME;
    if (in[me] % 4 == 0) return;
    if (in[me] % 4 == 1) {
        out[me] = 1;
        return;
    }
    __builtin_assume(me < N);
    for (int turn = 0; turn < in[me] % 7; turn++) {
        if (turn == 5) return;
        out[me] += turn;
    }
}

KERNEL prints(PARAMETERS) {
    if (blockIdx.x || threadIdx.x >= 2) return;
    printf("item %d has %d\n", int(threadIdx.x), in[threadIdx.x]);
    out[threadIdx.x] = 1;
}

int main() {
    const struct { const char *name; void (*kernel)(PARAMETERS); } kernels[] = {
#define OF(kernel) {#kernel, kernel}
        OF(vector_add), OF(saxpy_strided), OF(transpose), OF(matrix_product), OF(reduce_shuffle), OF(prefix_sum), OF(histogram),
        OF(bitonic_sort), OF(breadth_first), OF(shortest_paths), OF(bodies), OF(mandelbrot), OF(stencil), OF(alignment),
        OF(sparse_rows), OF(string_search), OF(clusters), OF(options), OF(pi_by_chance), OF(double_product), OF(wide_divisions),
        OF(shapes), OF(recursion), OF(ticket_lock), OF(early_ends), OF(prints),
    };
    std::vector<int> numbers(N);
    unsigned number = 12345;
    for (int &one : numbers) one = (number = number * 1664525 + 1013904223) >> 18;
    int *in, *out;
    HIP(hipMalloc(&in, N * sizeof(int)));
    HIP(hipMalloc(&out, N * sizeof(int)));
    HIP(hipMemcpy(in, numbers.data(), N * sizeof(int), hipMemcpyHostToDevice));
    for (auto &kernel : kernels) {
        HIP(hipMemset(out, 0, N * sizeof(int)));
        kernel.kernel<<<N / ITEMS, ITEMS>>>(in, out);
        HIP(hipDeviceSynchronize());
        std::vector<int> got(N);
        HIP(hipMemcpy(got.data(), out, N * sizeof(int), hipMemcpyDeviceToHost));
        unsigned long sum = 0;
        for (int one : got) sum = sum * 31 + unsigned(one);
        printf("%s %lx\n", kernel.name, sum);
    }
    return 0;
}
