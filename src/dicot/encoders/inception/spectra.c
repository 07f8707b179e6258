// Products of complex matrices, one for each frequency, on float32; see spectra.py.
// Every number is computed by one thread, in the same order whatever the number of threads.

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
enum { WIDE = SIDE * LANES };  // columns of a tile, whose sums stay in registers: two rows of real and imaginary parts
enum { DEEP = 64 };            // what a tile reads of the right-hand side at a time, so that it stays in the first cache

// Matrices of complex numbers whose real and imaginary parts lie apart.
typedef struct {
  const float *real, *imag;
  long row, column;  // from one row or column to the next; 1 between columns on the right-hand side
} Matrix;

typedef struct {
  float *real, *imag;
  long row;
} Result;

static inline V load(const float *at) { return *(const Anywhere *)at; }
static inline void store(float *at, V value) { *(Anywhere *)at = value; }

// c (+)= a conj(b), `high` rows and WIDE columns of it: Re = Re a Re b + Im a Im b, Im = Im a Re b - Re a Im b.
static inline __attribute__((always_inline)) void tile(Matrix a, Matrix b, Result c, long depth, int add, const int high) {
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

static inline __attribute__((always_inline)) void product(Matrix a, Matrix b, Result c, long n_rows, long n_columns,
                                                          long depth) {
  for (long from = 0; from < depth; from += DEEP) {
    long deep = depth - from < DEEP ? depth - from : DEEP;
    for (long j = 0; j < n_columns; j += WIDE) {
      Matrix right = {b.real + from * b.row + j, b.imag + from * b.row + j, b.row, 1};
      for (long i = 0; i < n_rows; i += 2) {
        long at = i * a.row + from * a.column, to = i * c.row + j;
        Matrix left = {a.real + at, a.imag + at, a.row, a.column};
        Result here = {c.real + to, c.imag + to, c.row};
        if (i + 1 < n_rows)
          tile(left, right, here, deep, from > 0, 2);
        else
          tile(left, right, here, deep, from > 0, 1);
      }
    }
  }
}

// y (f, 2, n, o) = v (f, 2, n, c) conj(w), w (2, f, c, o)
void multiply(const float *v, const float *w, float *y, long n_freq, long n, long c, long o, int n_threads) {
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (long f = 0; f < n_freq; ++f) {
    const float *own = v + 2 * f * n * c, *kernel = w + f * c * o;
    float *to = y + 2 * f * n * o;
    product((Matrix){own, own + n * c, c, 1}, (Matrix){kernel, kernel + n_freq * c * o, o, 1},
            (Result){to, to + n * o, o}, n, o, c);
  }
}

// dv = dy w, dw = conj(dy) v, where a gradient is that of the real part and that of the imaginary part.
void multiply_backward(const float *dy, const float *v, const float *w, float *dv, float *dw, long n_freq, long n, long c,
                       long o, int n_threads) {
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
      float *to = dv + 2 * f * n * c;
      product((Matrix){dreal, dimag, o, 1}, (Matrix){turned, turned + c * o, c, 1}, (Result){to, to + n * c, c}, n, c, o);
      const float *own = v + 2 * f * n * c;
      to = dw + f * c * o;
      product((Matrix){own, own + n * c, 1, c}, (Matrix){dreal, dimag, o, 1}, (Result){to, to + n_freq * c * o, o}, c, o, n);
    }
    free(turned);
  }
}
