// Matrix products of a training step on float32: one at a time, or complex ones, one for each frequency; see convolution.py.
// Every number is computed by one thread, in the same order whatever the number of threads. No thread waits for another
// before the end, which matters where a core has other work.

#include <omp.h>
#include <stdlib.h>

#ifdef __AVX512F__
enum { LANES = 16, SIDE = 2 };
#elif defined(__AVX__)
enum { LANES = 8, SIDE = 2 };
#else
enum { LANES = 4, SIDE = 4 };
#endif
typedef float V __attribute__((vector_size(4 * LANES)));
typedef float Anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
enum { HIGH = 4, WIDE = SIDE * LANES };  // rows and columns of a tile, whose sums stay in registers
enum { DEEP = 256, COMPLEX_DEEP = 64 };  // what a tile reads of the right-hand side at a time: it stays in the first cache

static inline V load(const float *at) { return *(const Anywhere *)at; }
static inline void store(float *at, V value) { *(Anywhere *)at = value; }

// Strides from one row and from one column to the next, one of which is 1.
typedef struct {
  const float *at;
  long row, column;
} Strided;

// A tile of a @ panel (depth, WIDE) + start, where `start` is what c holds, a row for all rows, or nothing.
static inline __attribute__((always_inline)) void tile(Strided a, const float *panel, long depth, float *c, long c_row,
                                                       const float *start, long start_row, const int high) {
  V sums[HIGH][SIDE];
  for (int r = 0; r < high; ++r)
    for (int s = 0; s < SIDE; ++s) sums[r][s] = start ? load(start + r * start_row + s * LANES) : (V){0};
#pragma GCC unroll 2
  for (long k = 0; k < depth; ++k) {
    V row[SIDE];
    for (int s = 0; s < SIDE; ++s) row[s] = load(panel + k * WIDE + s * LANES);
    for (int r = 0; r < high; ++r)
      for (int s = 0; s < SIDE; ++s) sums[r][s] += a.at[r * a.row + k * a.column] * row[s];
  }
  for (int r = 0; r < high; ++r)
    for (int s = 0; s < SIDE; ++s) store(c + r * c_row + s * LANES, sums[r][s]);
}

static inline __attribute__((always_inline)) void any_tile(Strided a, const float *panel, long depth, float *c, long c_row,
                                                           const float *start, long start_row, long high) {
  switch (high) {
    case 1: tile(a, panel, depth, c, c_row, start, start_row, 1); break;
    case 2: tile(a, panel, depth, c, c_row, start, start_row, 2); break;
    case 3: tile(a, panel, depth, c, c_row, start, start_row, 3); break;
    default: tile(a, panel, depth, c, c_row, start, start_row, HIGH);
  }
}

// WIDE columns side by side, so that no two rows compete for a place in the cache.
static void pack(Strided b, long depth, float *restrict panel) {
  if (b.column == 1)
    for (long k = 0; k < depth; ++k) {
      const float *row = b.at + k * b.row;
      __builtin_prefetch(row + WIDE);  // the next panel's, which lies far from the next row
      for (int s = 0; s < SIDE; ++s) store(panel + k * WIDE + s * LANES, load(row + s * LANES));
    }
  else
    for (int j = 0; j < WIDE; ++j)
      for (long k = 0; k < depth; ++k) panel[k * WIDE + j] = b.at[j * b.column + k];
}

// HIGH rows of a, whose rows lie side by side, likewise; the last of them may be fewer.
static void pack_rows(const float *a, long column, long n_rows, long depth, float *restrict packed) {
  for (; n_rows > 0; a += HIGH, packed += HIGH * depth, n_rows -= HIGH)
    if (n_rows >= HIGH)
      for (long k = 0; k < depth; ++k)
        for (int r = 0; r < HIGH; ++r) packed[k * HIGH + r] = a[k * column + r];
    else
      for (long k = 0; k < depth; ++k)
        for (int r = 0; r < n_rows; ++r) packed[k * HIGH + r] = a[k * column + r];
}

static long least(long a, long b) { return a < b ? a : b; }

// Rows `top` to `end` and panels `first` to `stop` of c (m, n) = a (m, depth) @ b (depth, n) + start.
static void part(Strided a, Strided b, float *c, long n, long depth, const float *bias, long add, long top, long end,
                 long first, long stop, float *panel, float *packed) {
  for (long from = 0; from < depth && top < end && first < stop; from += DEEP) {
    long deep = least(depth - from, DEEP), again = from > 0 || add, start_row = again ? n : 0;
    const float *left = a.at + top * a.row + from * a.column;
    if (packed) pack_rows(left, a.column, end - top, deep, packed);
    for (long j = first * WIDE; j < stop * WIDE; j += WIDE) {
      pack((Strided){b.at + from * b.row + j * b.column, b.row, b.column}, deep, panel);
      for (long i = top; i < end; i += HIGH) {
        float *to = c + i * n + j;
        const float *start = again ? to : bias ? bias + j : 0;
        if (packed)
          any_tile((Strided){packed + (i - top) * deep, 1, HIGH}, panel, deep, to, n, start, start_row, end - i);
        else
          any_tile((Strided){left + (i - top) * a.row, a.row, 1}, panel, deep, to, n, start, start_row, end - i);
      }
    }
  }
}

// c (m, n) = a (m, depth) @ b (depth, n), + c with `add`, + bias (n,) where there is one; n in multiples of WIDE. So for each
// item, of which `a_item` and so on are the distances in memory; where c has none, items are added up.
void product(const float *a, long a_row, long a_column, long a_item, const float *b, long b_row, long b_column, long b_item,
             const float *bias, long add, float *c, long c_item, long n_items, long m, long n, long depth, long n_threads) {
#pragma omp parallel num_threads(n_threads)
  {
    long threads = omp_get_num_threads(), own = omp_get_thread_num();
    long panels = n / WIDE, groups = (m + HIGH - 1) / HIGH, by_row = n_items == 1 && m > n, summed = c_item == 0;
    long shared = by_row ? groups : summed ? panels : panels * n_items;
    long low = shared * own / threads, high = shared * (own + 1) / threads;
    long top = by_row ? low * HIGH : 0, end = by_row ? least(high * HIGH, m) : m;
    float *panel = malloc(DEEP * WIDE * sizeof(float));
    float *packed = a_column == 1 ? 0 : malloc((end - top + HIGH) * DEEP * sizeof(float));
    for (long item = 0; item < n_items; ++item) {
      long before = summed ? 0 : item * panels;
      long first = by_row ? 0 : low < before ? 0 : low - before, stop = by_row ? panels : least(high - before, panels);
      Strided left = {a + item * a_item, a_row, a_column}, right = {b + item * b_item, b_row, b_column};
      part(left, right, c + item * c_item, n, depth, bias, add || (summed && item > 0), top, end, first, stop, panel, packed);
    }
    free(panel);
    free(packed);
  }
}

// Matrices of complex numbers whose real and imaginary parts lie apart.
typedef struct {
  const float *real, *imag;
  long row, column;  // as above; 1 between columns on the right-hand side
} Matrix;

typedef struct {
  float *real, *imag;
  long row;
} Result;

// c (+)= a conj(b), `high` rows and WIDE columns of it: Re = Re a Re b + Im a Im b, Im = Im a Re b - Re a Im b.
static inline __attribute__((always_inline)) void complex_tile(Matrix a, Matrix b, Result c, long depth, long add,
                                                               const int high) {
  V re[2][SIDE], im[2][SIDE];
  for (int r = 0; r < high; ++r)
    for (int s = 0; s < SIDE; ++s) {
      re[r][s] = add ? load(c.real + r * c.row + s * LANES) : (V){0};
      im[r][s] = add ? load(c.imag + r * c.row + s * LANES) : (V){0};
    }
  for (long k = 0; k < depth; ++k) {
    const float *of_real = b.real + k * b.row, *of_imag = b.imag + k * b.row;
    V row[SIDE];
    for (int s = 0; s < SIDE; ++s) row[s] = load(of_real + s * LANES);
    for (int r = 0; r < high; ++r) {
      float x = a.real[r * a.row + k * a.column], y = a.imag[r * a.row + k * a.column];
      for (int s = 0; s < SIDE; ++s) re[r][s] += x * row[s];
      for (int s = 0; s < SIDE; ++s) im[r][s] += y * row[s];
    }
    for (int s = 0; s < SIDE; ++s) row[s] = load(of_imag + s * LANES);
    for (int r = 0; r < high; ++r) {
      float x = a.real[r * a.row + k * a.column], y = a.imag[r * a.row + k * a.column];
      for (int s = 0; s < SIDE; ++s) re[r][s] += y * row[s];
      for (int s = 0; s < SIDE; ++s) im[r][s] -= x * row[s];
    }
  }
  for (int r = 0; r < high; ++r)
    for (int s = 0; s < SIDE; ++s) {
      store(c.real + r * c.row + s * LANES, re[r][s]);
      store(c.imag + r * c.row + s * LANES, im[r][s]);
    }
}

static inline __attribute__((always_inline)) void complex_product(Matrix a, Matrix b, Result c, long n_rows,
                                                                  long n_columns, long depth) {
  for (long from = 0; from < depth; from += COMPLEX_DEEP) {
    long deep = depth - from < COMPLEX_DEEP ? depth - from : COMPLEX_DEEP;
    for (long j = 0; j < n_columns; j += WIDE) {
      Matrix right = {b.real + from * b.row + j, b.imag + from * b.row + j, b.row, 1};
      for (long i = 0; i < n_rows; i += 2) {
        long at = i * a.row + from * a.column, to = i * c.row + j;
        Matrix left = {a.real + at, a.imag + at, a.row, a.column};
        Result here = {c.real + to, c.imag + to, c.row};
        if (i + 1 < n_rows)
          complex_tile(left, right, here, deep, from > 0, 2);
        else
          complex_tile(left, right, here, deep, from > 0, 1);
      }
    }
  }
}

// y (f, 2, n, o) = v (f, 2, n, c) conj(w), w (2, f, c, o)
void multiply(const float *v, const float *w, float *y, long n_freq, long n, long c, long o, long n_threads) {
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (long f = 0; f < n_freq; ++f) {
    const float *own = v + 2 * f * n * c, *kernel = w + f * c * o;
    float *to = y + 2 * f * n * o;
    Matrix left = {own, own + n * c, c, 1}, right = {kernel, kernel + n_freq * c * o, o, 1};
    complex_product(left, right, (Result){to, to + n * o, o}, n, o, c);
  }
}

// dv = dy w, dw = conj(dy) v, where a gradient is that of the real part and that of the imaginary part.
void multiply_backward(const float *dy, const float *v, const float *w, float *dv, float *dw, long n_freq, long n, long c,
                       long o, long n_threads) {
#pragma omp parallel num_threads(n_threads)
  {
    float *turned = malloc(2 * c * o * sizeof(float));  // conj(w), transposed
#pragma omp for schedule(static)
    for (long f = 0; f < n_freq; ++f) {
      const float *real = w + f * c * o, *imag = real + n_freq * c * o, *dreal = dy + 2 * f * n * o, *dimag = dreal + n * o;
      for (long i = 0; i < c; ++i)
        for (long j = 0; j < o; ++j) {
          turned[j * c + i] = real[i * o + j];
          turned[c * o + j * c + i] = -imag[i * o + j];
        }
      const float *own = v + 2 * f * n * c;
      float *to = dv + 2 * f * n * c, *to_kernel = dw + f * c * o;
      Matrix rows = {dreal, dimag, o, 1}, right = {turned, turned + c * o, c, 1}, left = {own, own + n * c, 1, c};
      complex_product(rows, right, (Result){to, to + n * c, c}, n, c, o);
      complex_product(left, rows, (Result){to_kernel, to_kernel + n_freq * c * o, o}, c, o, n);
    }
    free(turned);
  }
}
