// Kernels whose names exercise the grammar of mangled names the way the kernels of real libraries do.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <functional>
#include <tuple>
#include <type_traits>

namespace lib {
enum class Layout { Row, Column };
enum Old { A = -1, B };
template <typename T, int N> struct Array { T d[N]; };
template <typename... T> struct Pack {};
template <int... I> struct Sequence {};
template <typename T> struct Functor {
    __host__ __device__ T operator()(T a) const { return a; }
};
struct Op {
    int x;
    template <typename T> struct Inner { T v; };
};

namespace {
struct Hidden { int h; };
template <typename T> __global__ void hidden_kernel(T *t, Hidden h) { t[0] = h.h; }
} // namespace

// Every kind of template argument.
template <typename T, Layout L, Old O> __global__ void by_enum(T *t) { t[0] = T(int(L) + int(O)); }
template <typename F> __global__ void by_functor(F f, int *o) { o[0] = f(o[0]); }
template <typename T, T V> __global__ void by_value(T *t) { t[0] = V; }
template <typename... T> __global__ void by_pack(Pack<T...>, std::tuple<T...> *t, T... v) {}
template <int... I> __global__ void by_sequence(Sequence<I...>, int *o) { o[0] = sizeof...(I); }
template <template <typename, int> class C, typename T> __global__ void by_template(C<T, 4> c, T *o) { o[0] = c.d[0]; }
template <int (*F)(int)> __global__ void by_pointer(int *o) { o[0] = F(o[0]); }
template <auto V> __global__ void by_auto(int *o) { o[0] = (int)V; }

// Expressions in signatures.
template <typename T>
__global__ typename std::enable_if<std::is_integral<T>::value && (sizeof(T) > 2), void>::type only_int(T *t) { *t = 1; }
template <typename T> __global__ auto decl(T *t) -> decltype(void(t[0] + T(1))) { *t = 1; }

// Every kind of parameter.
__device__ int twice(int x) { return 2 * x; }
__global__ void arrays(int (*a)[4], const volatile int *b, int *__restrict__ c, const char *const *d) {}
__global__ void refs(const float4 f, uint3 u, dim3 d, long double *l, unsigned long long q, signed char s, bool b,
                     wchar_t w, char16_t c16, char32_t c32, __int128 i) {}
__global__ void callbacks(int (*f)(int, float *), void (Op::*m)(int) const, int Op::*data) {}
__global__ void halfs(_Float16 *a, __half *b, const _Float16 *c, _Float16 d) {}
__global__ void nothing() {}
__global__ void variadic(int a, Op::Inner<Array<double, 3>> b, std::nullptr_t) {}
template <typename T> __global__ void half_template(T *a, Array<T, 2> b) {}

template <int N> struct Deep { using type = Array<typename Deep<N - 1>::type, N>; };
template <> struct Deep<0> { using type = int; };
template <typename T> __global__ void deep(T t) {}
inline namespace v1 {
__global__ void inlined(Functor<int> f) {}
} // namespace v1
} // namespace lib

// Lambdas inside of functions, of templates, of members.
template <typename F> void launch(F f, int *o) { lib::by_functor<<<1, 1>>>(f, o); }
struct Class {
    template <typename T> void run(T t, int *o) {
        auto a = [=] __host__ __device__(int x) { return x + (int)t; };
        launch(a, o);
        launch([=] __host__ __device__(auto x) { return (int)x; }, o);
    }
};

void instantiate(int *o) {
    using namespace lib;
    hidden_kernel<<<1, 1>>>(o, Hidden{1});
    by_enum<float, Layout::Column, A><<<1, 1>>>((float *)o);
    by_functor<<<1, 1>>>(Functor<int>(), o);
    by_value<int, -5><<<1, 1>>>(o);
    by_value<bool, true><<<1, 1>>>((bool *)o);
    by_value<unsigned long, 7ul><<<1, 1>>>((unsigned long *)o);
    by_value<char, 'x'><<<1, 1>>>((char *)o);
    by_pack<<<1, 1>>>(Pack<int, float, Array<double, 2>>(), (std::tuple<int, float, Array<double, 2>> *)nullptr, 1, 2.f,
                      Array<double, 2>());
    by_sequence<<<1, 1>>>(Sequence<1, 2, 3>(), o);
    by_template<Array, int><<<1, 1>>>(Array<int, 4>(), o);
    by_pointer<twice><<<1, 1>>>(o);
    by_auto<3><<<1, 1>>>(o);
    by_auto<true><<<1, 1>>>(o);
    by_auto<Layout::Row><<<1, 1>>>(o);
    only_int<<<1, 1>>>(o);
    decl<<<1, 1>>>(o);
    half_template<<<1, 1>>>((_Float16 *)o, Array<_Float16, 2>());
    half_template<<<1, 1>>>((__half *)o, Array<__half, 2>());
    half_template<<<1, 1>>>((std::function<int(int)> **)o, Array<std::function<int(int)> *, 2>());
    deep<<<1, 1>>>(Deep<6>::type());
    launch([=] __host__ __device__(int x) { return x * 2; }, o);
    launch([=] __host__ __device__(int x) { return x * 3; }, o);
    Class().run(1.5f, o);
    Class().run<unsigned char>(2, o);
}
