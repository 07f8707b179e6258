// Universal's own vectors on float32, see universal.py. A channel's numbers are added up in one order, whatever its company.

#include "native.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Sums of a tile, HIGH points by WIDE channels, stay in registers.
#ifdef __AVX512F__
enum { LANES = 16, HIGH = 8 };
#elif defined(__AVX__)
enum { LANES = 8, HIGH = 2 };
#else
enum { LANES = 4, HIGH = 2 };
#endif
enum { WIDE = 48, SIDE = WIDE / LANES, STEM = 25, STRIDE = 8, STAGES = 3, MARGIN = 2 };
enum { TOGETHER = 8 };  // channels whose numbers stay in the second cache, while weights come by once for all of them
static const int KERNELS[STAGES] = {5, 5, 3};
typedef float V __attribute__((vector_size(4 * LANES)));
typedef int I __attribute__((vector_size(4 * LANES)));
typedef float Anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

static inline V load(const float *at) { return *(const Anywhere *)at; }
static inline void store(float *at, V value) { *(Anywhere *)at = value; }
static inline V positive(V v) { return (V)((I)v & ~(v < 0)); }

// For each of some rows `n` points of `width` numbers, between margins of zeros.
typedef struct {
  float *values;
  Index n, width, margin;
} Signal;

static Index size_of(Signal s) { return (s.n + 2 * s.margin) * s.width; }

static Signal signal(float *values, Index n, Index width, Index margin, Index n_rows) {
  Signal made = {values, n, width, margin};
  Index edge = margin * width;
  for (Index r = 0; r < n_rows; ++r) {
    memset(values + r * size_of(made), 0, edge * sizeof(float));
    memset(values + (r + 1) * size_of(made) - edge, 0, edge * sizeof(float));
  }
  return made;
}

static inline __attribute__((always_inline)) void tile(const float *from, Index step, const float *panel, Index depth,
                                                       float *to, Index width, int add) {
  V sums[HIGH][SIDE];
  for (int r = 0; r < HIGH; ++r)
    for (int s = 0; s < SIDE; ++s) sums[r][s] = load(panel + s * LANES);  // the bias
  for (Index k = 0; k < depth; ++k) {
    panel += WIDE;
    for (int r = 0; r < HIGH; ++r)
      for (int s = 0; s < SIDE; ++s) sums[r][s] += from[r * step + k] * load(panel + s * LANES);
  }
  for (int r = 0; r < HIGH; ++r)
    for (int s = 0; s < SIDE; ++s) {
      float *at = to + r * width + s * LANES;
      store(at, positive(add ? sums[r][s] + load(at) : sums[r][s]));
    }
}

// to = ReLU(convolution of from), or with `add` ReLU(to + it). weights: panels (1 + taps * width, WIDE), the bias first.
// Returns where the next weights are.
static const float *convolve(Signal from, Index taps, Index stride, const float *weights, Signal to, int add, Index n_rows) {
  Index depth = taps * from.width, step = stride * from.width;
  for (Index j = 0; j < to.width; j += WIDE, weights += (1 + depth) * WIDE)
    for (Index r = 0; r < n_rows; ++r) {
      const float *first = from.values + r * size_of(from) + (from.margin - taps / 2) * from.width;
      float *target = to.values + r * size_of(to) + to.margin * to.width + j;
      for (Index t = 0; t < to.n; t += HIGH)
        tile(first + t * step, step, weights, depth, target + t * to.width, to.width, add);
    }
  return weights;
}

// Mean, maximum and deviation over time of the first `width` numbers.
static void pool(const float *h, Index n, Index stride, Index width, float floor, float *to) {
  float *mean = to, *largest = to + width, *deviation = to + 2 * width;
  for (Index i = 0; i < width; ++i) mean[i] = 0, largest[i] = h[i], deviation[i] = 0;
  for (Index t = 0; t < n; ++t)
    for (Index i = 0; i < width; ++i) {
      float value = h[t * stride + i];
      mean[i] += value;
      largest[i] = value > largest[i] ? value : largest[i];
    }
  for (Index i = 0; i < width; ++i) mean[i] /= n;
  for (Index t = 0; t < n; ++t)
    for (Index i = 0; i < width; ++i) {
      float apart = h[t * stride + i] - mean[i];
      deviation[i] += apart * apart;
    }
  for (Index i = 0; i < width; ++i) deviation[i] = sqrtf(deviation[i] / n + floor);
}

static float largest_of(const float *x, Index n, Index step) {
  float largest = 0;
  for (Index t = 0; t < n; ++t) largest = fabsf(x[step * t]) > largest ? fabsf(x[step * t]) : largest;
  return largest;
}

// Mean 0 and deviation 1 for every other number; a series whose deviation is not above `least` becomes 0.
static void z_score(float *x, Index n, float least) {
  double sum = 0, squares = 0;
  for (Index t = 0; t < n; ++t) sum += x[2 * t];
  float mean = (float)(sum / n);
  for (Index t = 0; t < n; ++t) {
    x[2 * t] -= mean;
    squares += x[2 * t] * x[2 * t];
  }
  float deviation = sqrtf((float)(squares / n));
  int varies = deviation > least;
  for (Index t = 0; t < n; ++t) x[2 * t] = varies ? x[2 * t] / deviation : 0;
}

// A channel and its difference side by side, (points, 2), as `channel_inputs` makes them.
// constants: what counts as no spread of a series and of its difference, ..., below which value it is multiplied by what.
static void fill(const float *x, Index n_times, Index points, const float *constants, float *to) {
  float largest = largest_of(x, n_times, 1), lift = largest < constants[3] ? constants[4] : 1;
  float scale = (float)(n_times - 1) / (float)(points - 1);
  for (Index t = 0; t < points; ++t) {
    float place = n_times == points ? t : scale * t;
    Index before = (Index)place < n_times - 1 ? (Index)place : n_times - 1, after = before + (before < n_times - 1);
    float share = place - before;
    float value = n_times == points ? x[t] - x[0] : (1 - share) * (x[before] - x[0]) + share * (x[after] - x[0]);
    to[2 * t] = lift * value;
  }
  z_score(to, points, constants[0] * (lift * largest));
  for (Index t = 1; t < points; ++t) to[2 * t + 1] = to[2 * t] - to[2 * t - 2];
  to[1] = to[3];
  z_score(to + 1, points, constants[1] * largest_of(to + 1, points, 2));
}

// x (n_rows, n_times) -> y (n_rows, 3 * sum of widths). padded: the widths in whole tiles, as the weights have them.
// constants: what counts as no spread of a series and of its difference, what is added under a root, and for `fill` the
// value below which a series is multiplied by what.
EXPORT void VARIANT(vectors)(const float *x, Index n_rows, float *y, Index n_times, Index points,
                             const float *weights, const Index *widths, const Index *padded,
                             const float *constants) {
  Index group = n_rows < TOGETHER ? n_rows : TOGETHER;
  Index length = 3 * (widths[0] + widths[1] + widths[2]), largest = 0;
  for (int s = 0; s < STAGES; ++s) {
    Index size = ((points / STRIDE >> s) + 2 * MARGIN) * padded[s];
    largest = size > largest ? size : largest;
  }
  Index input_size = 2 * (points + STEM);
  float *room = malloc(group * (input_size + 2 * largest) * sizeof(float));
  float *one = room + group * input_size, *other = one + group * largest;

  for (Index first = 0; first < n_rows; first += group) {
    Index rows = n_rows - first < group ? n_rows - first : group, n = points / STRIDE;
    Signal from = signal(room, points, 2, STEM / 2, rows);
    for (Index r = 0; r < rows; ++r)
      fill(x + (first + r) * n_times, n_times, points, constants, room + r * size_of(from) + 2 * from.margin);
    const float *next = weights;
    float *to = y + first * length;
    for (int s = 0; s < STAGES; ++s, n /= 2) {
      int taps = KERNELS[s];
      Signal h = signal(other, n, padded[s], taps / 2, rows);
      next = s ? convolve(from, 3, 2, next, h, 0, rows) : convolve(from, STEM, STRIDE, next, h, 0, rows);
      Signal inner = signal(one, n, padded[s], taps / 2, rows);  // where `from` was
      next = convolve(h, taps, 1, next, inner, 0, rows);
      next = convolve(inner, taps, 1, next, h, 1, rows);
      for (Index r = 0; r < rows; ++r)
        pool(h.values + r * size_of(h) + h.margin * h.width, n, h.width, widths[s], constants[2], to + r * length);
      to += 3 * widths[s];
      from = h;
      float *free_now = one;
      one = other;
      other = free_now;
    }
  }
  free(room);
}
