// What both libraries in C share; see native.py.
//
// A file is compiled once for each kind of processor of the target (see hatch_build.py), and every time its functions get
// another name: shares_0 runs anywhere, shares_1 needs AVX2 and shares_2 AVX-512. `processor_kind` tells which to call.

#ifndef PROCESSOR_KIND
#define PROCESSOR_KIND 0
#endif

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef long long Index;  // `long` has 32 bits on Windows

#define JOINED(name, kind) name##_##kind
#define NAMED(name, kind) JOINED(name, kind)
#define VARIANT(name) NAMED(name, PROCESSOR_KIND)

#if PROCESSOR_KIND == 0
// The best kind that this processor has: 0 is what every processor of the target has, 1 is AVX2, 2 is AVX-512.
EXPORT int processor_kind(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) return 0;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return 1;
  return 2;
#else
  return 0;
#endif
}
#endif
