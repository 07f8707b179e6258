// The bank's shares and the contests' outcomes on float32 numbers; see kernels.py.
// Every case is computed by itself, so its numbers do not depend on the other cases.
// Convolutions are exact: values are float64 on a grid, see kernels.py.

#include "native.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVX512F__
enum { LANES = 8, SIDE = 1 };
#elif defined __AVX__
enum { LANES = 4, SIDE = 1 };
#else
enum { LANES = 2, SIDE = 2 };
#endif
typedef double V __attribute__((vector_size(8 * LANES)));
typedef long long I __attribute__((vector_size(8 * LANES)));
typedef const float *restrict in;
typedef float *restrict out;

enum { TAPS = 9, REACH = 4, KERNELS = 84, GROUP = 8, ROWS = 8, BLOCK = ROWS * LANES };
#define GRID_ROOM 32768.0  // ROOM of kernels.py

static inline V load(const double *at) {
  V v;
  memcpy(&v, at, sizeof v);
  return v;
}

static inline void store(double *at, V v) { memcpy(at, &v, sizeof v); }

// Zeros around the channels of a case, and behind them as many as the last block may read. One more row is for sums of them.
typedef struct {
  double *values;
  Index stride, margin;
} Padded;

static Padded padded_room(Index n_channels, Index n_times, Index margin) {
  Index stride = n_times + 2 * margin + BLOCK;
  return (Padded){calloc((n_channels + 1) * stride, sizeof(double)), stride, margin};
}

// A case, or its first difference, on the grid of `kernels.on_grid`. Returns the sum of the channels' largest values.
static double fill(Padded room, const float *x, Index n_channels, Index n_times, int difference) {
  double most = 0, sum = 0;
  for (Index c = 0; c < n_channels; ++c) {
    const float *own = x + c * n_times;
    double *to = room.values + c * room.stride + room.margin, strange = 0;
    for (Index t = 0; t < n_times - difference; ++t) {
      float value = difference ? own[t + 1] - own[t] : own[t];
      to[t] = value;
      most = fabs(to[t]) > most ? fabs(to[t]) : most;
      strange += to[t] * 0;
    }
    most += strange;  // NaN where a value is not finite, and then it stays NaN
  }
  double grid = GRID_ROOM * most;
  for (Index c = 0; c < n_channels; ++c) {
    double *to = room.values + c * room.stride + room.margin, largest = 0;
    for (Index t = 0; t < n_times - difference; ++t) {
      to[t] = (to[t] + grid) - grid;
      largest = fabs(to[t]) > largest ? fabs(to[t]) : largest;
    }
    sum += largest;
  }
  return sum + most * 0;
}

// The sum of some channels, up to a -1 or to `most`, each `often` times or once: it is exact, and kernels read one row then.
static const double *added_up(Padded x, const int *own, const float *often, Index most, Index n_channels, Index n_times) {
  if (own[0] >= 0 && (most == 1 || own[1] < 0) && (!often || often[0] == 1))
    return x.values + own[0] * x.stride + x.margin;
  double *sum = x.values + n_channels * x.stride + x.margin;
  for (Index t = 0; t < n_times; t += LANES) {
    V value = {0};
    for (Index m = 0; m < most && own[m] >= 0; ++m)
      value += (often ? (double)often[m] : 1) * load(x.values + own[m] * x.stride + x.margin + t);
    store(sum + t, value);
  }
  return sum;
}

// One kernel, y[t] for all t and some beyond.
static void convolved(const double *x, const float *taps, Index dilation, Index n_times, double *y) {
  for (Index t = 0; t < n_times; t += BLOCK) {
    V sum[ROWS] = {0};
    for (int tap = 0; tap < TAPS; ++tap)
      for (int i = 0; i < ROWS; ++i) sum[i] += (double)taps[tap] * load(x + (tap - REACH) * dilation + t + i * LANES);
    for (int i = 0; i < ROWS; ++i) store(y + t + i * LANES, sum[i]);
  }
}

static float share_above(const double *y, Index first, Index stop, double bias) {
  Index count = 0;
  for (Index t = first; t < stop; ++t) count += y[t] > bias;
  return (float)count / (float)(stop - first);
}

// features (B, n_biases * 84). layout (D, 3): a dilation, how many biases it has, the first of them. Kernel k at dilation d
// adds up the channels own[(84 d + k) * most] and following, up to a -1.
EXPORT void VARIANT(shares)(in x, Index n_cases, out features, Index n_channels, Index n_times,
                            Index n_dilations, const int *layout, const int *own, Index most, in taps, in biases,
                            Index n_biases) {
  Index furthest = 0;
  for (Index d = 0; d < n_dilations; ++d) furthest = layout[3 * d] > furthest ? layout[3 * d] : furthest;
  Padded room = padded_room(n_channels, n_times, REACH * furthest);
  double *y = malloc((n_times + BLOCK) * sizeof(double));

  for (Index b = 0; b < n_cases; ++b) {
    fill(room, x + b * n_channels * n_times, n_channels, n_times, 0);
    for (Index d = 0; d < n_dilations; ++d) {
      Index dilation = layout[3 * d], count = layout[3 * d + 1], before = layout[3 * d + 2], margin = REACH * dilation;
      for (Index k = 0; k < KERNELS; ++k) {
        const int *channels = own + (KERNELS * d + k) * most;
        const double *sum = added_up(room, channels, 0, most, n_channels, n_times);
        convolved(sum, taps + TAPS * k, dilation, n_times, y);
        Index edge = n_times > 2 * margin && k % 2 == (d + 1) % 2 ? margin : 0;
        float *to = features + (b * n_biases + before) * KERNELS + k;
        for (Index i = 0; i < count; ++i)
          to[i * KERNELS] = share_above(y, edge, n_times - edge, biases[k * n_biases + before + i]);
      }
    }
  }
  free(y);
  free(room.values);
}

static inline V either(I where, V a, V b) { return (V)(((I)a & where) | ((I)b & ~where)); }
static inline V kept(I where, V v) { return (V)((I)v & where); }

// Eight kernels against each other: how much each wins by, and how often each comes last, summed over time.
static void contest(const double *x, const float *taps, Index dilation, Index n_times, double nothing, double *won,
                    double *lost) {
  double weights[TAPS][GROUP];
  for (int tap = 0; tap < TAPS; ++tap)
    for (int k = 0; k < GROUP; ++k) weights[tap][k] = taps[TAPS * k + tap];
  V none = (V){0} + NAN, room = (V){0} + nothing;
  V gains[GROUP] = {0}, lasts[GROUP] = {0};
  I lane;
  for (int i = 0; i < LANES; ++i) lane[i] = i;
  for (int k = 0; k < GROUP; ++k) won[k] = lost[k] = nothing * 0;  // NaN is not hidden
  for (Index t = 0; t < n_times; t += SIDE * LANES) {
    V y[GROUP][SIDE] = {0};
    for (int tap = 0; tap < TAPS; ++tap)
      for (int i = 0; i < SIDE; ++i) {
        V v = load(x + (tap - REACH) * dilation + t + i * LANES);
        for (int k = 0; k < GROUP; ++k) y[k][i] += weights[tap][k] * v;
      }
    for (int i = 0; i < SIDE; ++i) {
      V best = y[0][i], worst = y[0][i];
      for (int k = 1; k < GROUP; ++k) {
        best = either(y[k][i] > best, y[k][i], best);
        worst = either(y[k][i] < worst, y[k][i], worst);
      }
      I within = lane + (t + i * LANES) < n_times;
      best = kept(within & ((best > room) | (-best > room)), best);
      worst = either(within & ((worst > room) | (-worst > room)), worst, none);
      for (int k = 0; k < GROUP; ++k) {
        gains[k] += kept(y[k][i] == best, best);
        lasts[k] -= __builtin_convertvector(y[k][i] == worst, V);
      }
    }
  }
  for (int k = 0; k < GROUP; ++k)
    for (int i = 0; i < LANES; ++i) won[k] += gains[k][i], lost[k] += lasts[k][i];
}

static float root_of_mean(double sum, Index n) {
  float mean = (float)(sum / (double)n);
  return mean < 0 ? 0 : sqrtf(mean);
}

// features (B, D, 2, 2, 8 G): for the cases and for their differences, gains and then last places. D dilations 1, 2, 4 ...
EXPORT void VARIANT(contests)(in x, Index n_cases, out features, Index n_channels, Index n_times,
                              Index n_dilations, Index n_groups, const int *own, in often, Index most,
                              in taps, double share) {
  Index width = n_groups * GROUP;
  Padded room = padded_room(n_channels, n_times, (Index)REACH << (n_dilations - 1));

  for (Index b = 0; b < n_cases; ++b)
    for (int series = 0; series < 2; ++series) {
      Index n = n_times - series;
      memset(room.values, 0, (n_channels + 1) * room.stride * sizeof(double));
      // What a kernel gives for a constant is this share of the largest values.
      double nothing = share * fill(room, x + b * n_channels * n_times, n_channels, n_times, series);

      for (Index d = 0; d < n_dilations; ++d) {
        Index place = 2 * d + series;
        float *to = features + (b * 2 * n_dilations + place) * 2 * width;
        for (Index g = 0; g < n_groups; ++g) {
          double won[GROUP], lost[GROUP];
          Index group = place * n_groups + g;
          const double *sum = added_up(room, own + group * most, often + group * most, most, n_channels, n);
          contest(sum, taps + group * GROUP * TAPS, (Index)1 << d, n, nothing, won, lost);
          for (int k = 0; k < GROUP; ++k) {
            to[g * GROUP + k] = root_of_mean(won[k], n);
            to[width + g * GROUP + k] = root_of_mean(lost[k], n);
          }
        }
      }
    }
  free(room.values);
}
