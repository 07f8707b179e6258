// Products of float32 by the matrix units of a GPU, which multiply halves, numbers of 16 bits; see halves.py.
// A value is the sum of two halves, what one can hold and the rest of it, once it is multiplied by a power of two that
// brings the largest value of its case to 2^9 or more, below 2^10: the two then have 22 bits between them. A product is
// taken as three, without that of the two rests.

#define WARPS 4  // of a block, one time step each
#define CASES 16  // of a block

// Two halves to a word, the first one below; and back.
__device__ unsigned halves(float first, float second) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
__device__ float2 floats(unsigned pair) {
  float2 v;
  asm("{ .reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }" : "=f"(v.x), "=f"(v.y) : "r"(pair));
  return v;
}
__device__ void parts(float x, float y, unsigned& whole, unsigned& rest) {
  whole = halves(x, y);
  float2 held = floats(whole);
  rest = halves(x - held.x, y - held.y);
}

// The power of two of a case with this largest value, and what takes it back.
__device__ int exponent_of(float largest) {
  int exponent = (int)(__float_as_uint(largest) >> 23 & 255u) - 127;
  return exponent < -100 ? -100 : exponent;
}
__device__ float scale_of(float largest) { return __uint_as_float((unsigned)(127 + 9 - exponent_of(largest)) << 23); }
__device__ float back_of(float largest) { return __uint_as_float((unsigned)(127 - 9 + exponent_of(largest)) << 23); }

// Values v[t][case][channel] with the ends repeated: to `both` what a half can hold of each channel and then the rests, to
// `whole` the first of these; a row is case * per_case + t * per_time. factors[case] takes the power of two back, times
// `unit`.
extern "C" __global__ void split(const float4* v, const float* largest_of, int n_times, int n_cases, int width, int left,
    int n_padded, int per_case, int per_time, float unit, uint2* both, uint2* whole, float* factors) {
  int fours = width / 4;
  long long n = (long long)n_padded * n_cases * fours;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
    int c = i % fours, place = i / fours % n_padded, b = i / ((long long)fours * n_padded);
    float scale = scale_of(largest_of[b]);
    if (c == 0 && place == 0) factors[b] = back_of(largest_of[b]) * unit;
    int t = place - left;
    t = t < 0 ? 0 : t < n_times ? t : n_times - 1;
    float4 x = v[((long long)t * n_cases + b) * fours + c];
    uint2 held, rest;
    parts(x.x * scale, x.y * scale, held.x, rest.x);
    parts(x.z * scale, x.w * scale, held.y, rest.y);
    long long row = (long long)b * per_case + (long long)place * per_time;
    whole[row * fours + c] = both[row * 2 * fours + c] = held;
    both[row * 2 * fours + fours + c] = rest;
  }
}

// Sums of 16 rows x 8 columns, each thread's four of them, and a product over 16 channels that is added to them.
struct Tile { float c[4]; };
__device__ void multiply(Tile& t, const unsigned* a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(t.c[0]), "+f"(t.c[1]), "+f"(t.c[2]), "+f"(t.c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// N tiles of columns: of two rows, eight apart, this thread has the channels 4 q .. 4 q + 3.
template <int N>
__device__ void project(float4 row, float4 below, const uint4* weights, Tile* sums) {
  unsigned whole[4], rest[4];
  parts(row.x, row.y, whole[0], rest[0]);
  parts(below.x, below.y, whole[1], rest[1]);
  parts(row.z, row.w, whole[2], rest[2]);
  parts(below.z, below.w, whole[3], rest[3]);
#pragma unroll
  for (int n = 0; n < N; ++n) {
    uint4 w = weights[32 * n];  // two pairs of halves, and those of the rests
    multiply(sums[n], rest, w.x, w.y);
    multiply(sums[n], whole, w.z, w.w);
    multiply(sums[n], whole, w.x, w.y);
  }
}

// The rows of the warp's tiles, where there are such, and the largest value of each.
struct Kept { bool above, below; float back, back_below; };
template <int N>
__device__ float2 store(const Tile* sums, const float* bias, long long row, Kept kept, int q, float* y) {
  float2 most = make_float2(0.f, 0.f);
#pragma unroll
  for (int n = 0; n < N; ++n) {
    int column = 8 * n + 2 * q;
    float2 b = bias ? make_float2(bias[column], bias[column + 1]) : make_float2(0.f, 0.f);
    const float* s = sums[n].c;
    float2* to = reinterpret_cast<float2*>(y + row * 8 * N + column);
    float2 above = make_float2(s[0] * kept.back + b.x, s[1] * kept.back + b.y);
    float2 below = make_float2(s[2] * kept.back_below + b.x, s[3] * kept.back_below + b.y);
    if (kept.above) to[0] = above;
    if (kept.below) to[8 * 4 * N] = below;
    most = make_float2(fmaxf(most.x, fmaxf(fabsf(above.x), fabsf(above.y))),
                       fmaxf(most.y, fmaxf(fabsf(below.x), fabsf(below.y))));
  }
  return most;
}

__device__ float4 times(float4 v, float f) { return make_float4(v.x * f, v.y * f, v.z * f, v.w * f); }
__device__ float4 largest(float4 a, float4 b) {
  return make_float4(a.x > b.x ? a.x : b.x, a.y > b.y ? a.y : b.y, a.z > b.z ? a.z : b.z, a.w > b.w ? a.w : b.w);
}

// Copies of 16 bytes into the memory of a block that go on while it computes.
__device__ void copy(uint4* to, const uint4* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from));
}
__device__ void end_of_copies() { asm volatile("cp.async.commit_group;"); }
__device__ void wait_for_all_but_last() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

// v = u * first + bias, and z = (largest of three neighbouring time steps of u) * second, for u[t][case][width]; first and
// second are NARROW and POOLED tiles of columns, each of which is 1 / unit times the weights. largest_of_v[case] rises to
// the largest |v|. The weights of the next 16 channels come into the block's memory while those at hand are multiplied.
template <int NARROW, int POOLED>
__device__ void project_both(const float* u, const float* largest_of, const uint4* weights, const float* bias, float unit,
    int n_times, int n_cases, int width, float* v, unsigned* largest_of_v, float* z) {
  const int N = NARROW + POOLED;
  __shared__ uint4 at_hand[2][32 * N];
  int lane = threadIdx.x & 31, q = lane & 3, t = blockIdx.x * WARPS + (threadIdx.x >> 5);
  int b = blockIdx.y * CASES + (lane >> 2), case_above = min(b, n_cases - 1), case_below = min(b + 8, n_cases - 1);
  float scale = scale_of(largest_of[case_above]), scale_below = scale_of(largest_of[case_below]);
  Kept kept = {t < n_times && b < n_cases, t < n_times && b + 8 < n_cases, back_of(largest_of[case_above]) * unit,
               back_of(largest_of[case_below]) * unit};
  t = min(t, n_times - 1);
  long long step = (long long)n_cases * (width / 4), before = t > 0 ? -step : 0, behind = t + 1 < n_times ? step : 0;
  const float4* x = reinterpret_cast<const float4*>(u) + t * step + q;
  const float4 *top = x + (long long)case_above * (width / 4), *bottom = x + (long long)case_below * (width / 4);
  Tile sums[N] = {};
  for (int i = threadIdx.x; i < 32 * N; i += 32 * WARPS) copy(&at_hand[0][i], weights + i);
  end_of_copies();
  for (int j = 0; j < width / 16; ++j) {
    if (j + 1 < width / 16)
      for (int i = threadIdx.x; i < 32 * N; i += 32 * WARPS)
        copy(&at_hand[(j + 1) % 2][i], weights + (j + 1) * 32 * N + i);
    end_of_copies();
    float4 row = top[4 * j], below = bottom[4 * j];
    float4 row_pooled = largest(row, largest(top[4 * j + before], top[4 * j + behind]));
    float4 below_pooled = largest(below, largest(bottom[4 * j + before], bottom[4 * j + behind]));
    wait_for_all_but_last();
    __syncthreads();
    const uint4* w = at_hand[j % 2] + lane;
    if (NARROW) project<NARROW>(times(row, scale), times(below, scale_below), w, sums);
    project<POOLED>(times(row_pooled, scale), times(below_pooled, scale_below), w + 32 * NARROW, sums + NARROW);
    __syncthreads();
  }
  long long first = (long long)t * n_cases + b;
  store<POOLED>(sums + NARROW, nullptr, first, kept, q, z);
  if (!NARROW) return;
  float2 most = store<NARROW>(sums, bias, first, kept, q, v);
  for (int other = 1; other < 4; other *= 2) {  // the four threads of a row
    most.x = fmaxf(most.x, __shfl_xor_sync(0xffffffffu, most.x, other));
    most.y = fmaxf(most.y, __shfl_xor_sync(0xffffffffu, most.y, other));
  }
  if (q == 0 && kept.above) atomicMax(largest_of_v + b, __float_as_uint(most.x));  // none is negative
  if (q == 0 && kept.below) atomicMax(largest_of_v + b + 8, __float_as_uint(most.y));
}

#define ARGUMENTS const float *u, const float *largest_of, const uint4 *weights, const float *bias, float unit, int n_times, \
    int n_cases, int width, float *v, unsigned *largest_of_v, float *z
extern "C" __global__ void __launch_bounds__(128, 4) pooled(ARGUMENTS) {
  project_both<0, 8>(u, largest_of, weights, bias, unit, n_times, n_cases, width, v, largest_of_v, z);
}
extern "C" __global__ void __launch_bounds__(128, 4) narrow_and_pooled(ARGUMENTS) {
  project_both<4, 8>(u, largest_of, weights, bias, unit, n_times, n_cases, width, v, largest_of_v, z);
}
