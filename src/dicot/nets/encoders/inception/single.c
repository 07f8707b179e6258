// InceptionTime with fixed weights for one case, float32 rows of channels, time first; see single.py.
// Every number is a sum of products in order, each rounded once, as the matrix products of large batches make it, whatever
// the number of threads.

#include <omp.h>

#ifdef __AVX__
enum { LANES = 8, SIDE = 2 };
#else
enum { LANES = 4, SIDE = 4 };
#endif
typedef float V __attribute__((vector_size(4 * LANES)));
typedef int I __attribute__((vector_size(4 * LANES)));
typedef float Anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
enum { HIGH = 4, WIDE = SIDE * LANES };  // rows and columns whose sums fit into a processor's registers

typedef struct {
  const float *analysis;  // (4 f, n_read)
  long first, n_read;
} Segment;

typedef struct {
  long n_times, n_source, n_in, n_narrow, n_convolved, n_pooled, n_frequencies, n_segments, n_outputs;
  const float *narrow, *narrow_bias;  // (n_source, n_narrow)
  const Segment *segments;
  const float *spectra, *constant;  // (f, 2 n_narrow, n_convolved), (n_convolved,)
  const float *synthesis;           // (n_outputs, 2 f)
  const float *pool, *pool_bias;    // (n_in, n_pooled)
  const float *floor;               // (n_convolved + n_pooled,)
} Module;

typedef struct {
  Module modules[3];
  const float *residual, *zeros;  // (n_source of the first module, F), (F,)
} Block;

typedef struct {
  long n_times, n_channels, n_entry, joint;
  const float *entry, *entry_bias;  // (C, n_entry)
  Block blocks[2];
} Network;

typedef struct {
  float *source, *entry, *features, *between, *narrowed, *spectrum, *product, *largest;
} Room;

// What becomes of a sum: it is added to `c` or to a bias, and is not less than a floor. Either may be missing.
typedef struct {
  float *c;
  long stride;
  int add;
  const float *bias, *floor;
} Target;

static inline V load(const float *at) { return *(const Anywhere *)at; }

static inline V either(I where, V a, V b) { return (V)(((I)a & where) | ((I)b & ~where)); }

static inline void settle(Target to, long i, long j, V sum) {
  Anywhere *c = (Anywhere *)(to.c + i * to.stride + j);
  if (to.add) sum = *c + sum;
  if (to.bias) sum = load(to.bias + j) + sum;
  if (to.floor) sum = either(sum < load(to.floor + j), load(to.floor + j), sum);
  *c = sum;
}

static inline void settle_one(Target to, long i, long j, float sum) {
  float *c = to.c + i * to.stride + j;
  if (to.add) sum = *c + sum;
  if (to.bias) sum = to.bias[j] + sum;
  *c = to.floor && sum < to.floor[j] ? to.floor[j] : sum;
}

static inline __attribute__((always_inline)) void tile(const float *a, long lda, const float *b, long ldb, long depth,
                                                       Target to, long i, long j, const int high) {
  V sums[HIGH][SIDE];
  for (int r = 0; r < high; ++r)
    for (int s = 0; s < SIDE; ++s) sums[r][s] = (V){0};
  a += i * lda;
  b += j;
  for (long k = 0; k < depth; ++k, b += ldb) {
    V row[SIDE];
    for (int s = 0; s < SIDE; ++s) row[s] = load(b + s * LANES);
    for (int r = 0; r < high; ++r)
      for (int s = 0; s < SIDE; ++s) sums[r][s] += a[r * lda + k] * row[s];
  }
  for (int r = 0; r < high; ++r)
    for (int s = 0; s < SIDE; ++s) settle(to, i + r, j + s * LANES, sums[r][s]);
}

// Rows `first` to `stop` of a (M, depth) @ b (depth, n).
static void product(const float *a, long lda, const float *b, long ldb, long first, long stop, long n, long depth,
                    Target to) {
  long j = 0;
  for (; j + WIDE <= n; j += WIDE) {
    long i = first;
    for (; i + HIGH <= stop; i += HIGH) tile(a, lda, b, ldb, depth, to, i, j, HIGH);
    switch (stop - i) {
      case 3: tile(a, lda, b, ldb, depth, to, i, j, 3); break;
      case 2: tile(a, lda, b, ldb, depth, to, i, j, 2); break;
      case 1: tile(a, lda, b, ldb, depth, to, i, j, 1); break;
    }
  }
  for (; j < n; ++j)
    for (long i = first; i < stop; ++i) {
      float sum = 0;
      for (long k = 0; k < depth; ++k) sum += a[i * lda + k] * b[k * ldb + j];
      settle_one(to, i, j, sum);
    }
}

typedef struct {
  long first, stop;
} Run;

// This thread's part of n rows, in whole tiles as far as possible.
static Run own_part(long n) {
  long tiles = (n + HIGH - 1) / HIGH, threads = omp_get_num_threads(), own = omp_get_thread_num();
  long first = tiles * own / threads * HIGH, stop = tiles * (own + 1) / threads * HIGH;
  return (Run){first < n ? first : n, stop < n ? stop : n};
}

static inline V larger(V a, V b) { return either((a > b) | (a != a), a, b); }  // NaN stays NaN

static void largest_of_three(const float *u, float *to, Run rows, long n_times, long width) {
  for (long t = rows.first; t < rows.stop; ++t) {
    const float *own = u + t * width, *before = t > 0 ? own - width : own, *after = t + 1 < n_times ? own + width : own;
    long i = 0;
    for (; i + LANES <= width; i += LANES)
      *(Anywhere *)(to + t * width + i) = larger(larger(load(before + i), load(own + i)), load(after + i));
    for (; i < width; ++i) {
      float most = before[i] > own[i] || before[i] != before[i] ? before[i] : own[i];
      to[t * width + i] = most > after[i] || most != most ? most : after[i];
    }
  }
}

// a (rows, depth) @ b (depth, n) for few rows: b is read once and in order, since reading it is what takes time.
static inline __attribute__((always_inline)) void pass(const float *restrict a, const float *restrict b, long n,
                                                       long depth, float *restrict c, const int rows) {
  for (long i = 0; i < rows * n; ++i) c[i] = 0;
  for (long k = 0; k < depth; k += 4)
    for (long j = 0; j < n; j += LANES) {
      V one = load(b + k * n + j), two = load(b + (k + 1) * n + j);
      V three = load(b + (k + 2) * n + j), four = load(b + (k + 3) * n + j);
      for (int r = 0; r < rows; ++r) {
        const float *own = a + r * depth + k;
        V sum = load(c + r * n + j);
        sum += own[0] * one;
        sum += own[1] * two;
        sum += own[2] * three;
        sum += own[3] * four;
        *(Anywhere *)(c + r * n + j) = sum;
      }
    }
}

static void product_of_few(const float *a, long rows, const float *b, long n, long depth, float *c) {
  int whole = depth % 4 == 0 && n % LANES == 0;
  if (whole && rows == 2)
    pass(a, b, n, depth, c, 2);
  else if (whole && rows == 4)
    pass(a, b, n, depth, c, 4);
  else if (whole && rows == 6)
    pass(a, b, n, depth, c, 6);
  else {
    Target to = {c, n, 0, 0, 0};
    product(a, depth, b, n, 0, rows, n, depth, to);
  }
}

// Both functions below are called by all threads of a team at once.

// `source` (T, n_source) is what the convolutions read, `u` (T, n_in) what is pooled; y (T, n_convolved + n_pooled).
static void module(const Module *m, Room room, const float *source, const float *u, float *y) {
  long n_rows = 2 * m->n_segments, width = 2 * m->n_narrow, n_out = m->n_convolved + m->n_pooled;
  Run times = own_part(m->n_times), frequencies = own_part(m->n_frequencies);
  Target narrowed = {room.narrowed, m->n_narrow, 0, m->narrow_bias, 0};
  product(source, m->n_source, m->narrow, m->n_narrow, times.first, times.stop, m->n_narrow, m->n_source, narrowed);
  largest_of_three(u, room.largest, times, m->n_times, m->n_in);
  Target pooled = {y + m->n_convolved, n_out, 0, m->pool_bias, m->floor + m->n_convolved};
  product(room.largest, m->n_in, m->pool, m->n_pooled, times.first, times.stop, m->n_pooled, m->n_in, pooled);
#pragma omp barrier
  // Rows of a segment's analysis are (2 forms, f, real and imaginary); of its spectrum (f, 2, segments, 2 forms, C).
  for (long s = 0; s < m->n_segments; ++s)
    for (long part = 0; part < 4; ++part) {
      const Segment *own = m->segments + s;
      long form = part / 2, imaginary = part % 2;
      Target to = {room.spectrum + (imaginary * m->n_segments + s) * width + form * m->n_narrow, n_rows * width, 0, 0, 0};
      product(own->analysis + (2 * form * m->n_frequencies + imaginary) * own->n_read, 2 * own->n_read,
              room.narrowed + own->first * m->n_narrow, m->n_narrow, frequencies.first, frequencies.stop, m->n_narrow,
              own->n_read, to);
    }
  for (long f = frequencies.first; f < frequencies.stop; ++f) {
    float *to = room.product + f * n_rows * m->n_convolved;
    product_of_few(room.spectrum + f * n_rows * width, n_rows, m->spectra + f * width * m->n_convolved, m->n_convolved,
                   width, to);
    for (long i = 0; f == 0 && i < m->n_segments * m->n_convolved; ++i) to[i] += m->constant[i % m->n_convolved];
  }
#pragma omp barrier
  for (long s = 0; s < m->n_segments; ++s) {
    long first = s * m->n_outputs, left = m->n_times - first, n = left < m->n_outputs ? left : m->n_outputs;
    Run rows = own_part(n);
    Target to = {y + first * n_out, n_out, 0, 0, m->floor};
    product(m->synthesis, 2 * m->n_frequencies, room.product + s * m->n_convolved, m->n_segments * m->n_convolved,
            rows.first, rows.stop, m->n_convolved, 2 * m->n_frequencies, to);
  }
#pragma omp barrier
}

static void block(const Block *b, Room room, const float *source, const float *u, float *y) {
  const Module *last = b->modules + 2;
  long n_out = last->n_convolved + last->n_pooled, n_source = b->modules[0].n_source;
  module(b->modules, room, source, u, y);
  module(b->modules + 1, room, y, y, room.between);
  module(last, room, room.between, room.between, y);
  Run times = own_part(last->n_times);
  Target sum = {y, n_out, 1, 0, b->zeros};
  product(source, n_source, b->residual, n_out, times.first, times.stop, n_out, n_source, sum);
#pragma omp barrier
}

// x (C, T) -> y (T, F). With `joint` the first block's linear maps read the input itself, not its projection.
void network(const Network *n, Room room, const float *x, float *y, int n_threads) {
#pragma omp parallel num_threads(n_threads)
  {
    Run times = own_part(n->n_times);
    for (long t = times.first; t < times.stop; ++t)
      for (long c = 0; c < n->n_channels; ++c) room.source[t * n->n_channels + c] = x[c * n->n_times + t];
    Target projected = {room.entry, n->n_entry, 0, n->entry_bias, 0};
    product(room.source, n->n_channels, n->entry, n->n_entry, times.first, times.stop, n->n_entry, n->n_channels, projected);
#pragma omp barrier
    block(n->blocks, room, n->joint ? room.source : room.entry, room.entry, room.features);
    block(n->blocks + 1, room, room.features, room.features, y);
  }
}
