// BatchNorm with ReLU, and max-pooling over three time steps, on float32 rows of channels; see rows.py.
// The rows (M, C) come in up to four parts of `width` columns. Each thread takes a run of rows, and sums are put together
// in the order of the threads: the same input and number of threads give the same bits. NaN stays NaN.

#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef const float *restrict in;
typedef float *restrict out;

static void run_of(long n_rows, long *first, long *stop) {
  long n = omp_get_num_threads(), i = omp_get_thread_num();
  *first = n_rows * i / n;
  *stop = n_rows * (i + 1) / n;
}

// sums[thread][0][column], sums[thread][1][column] -> the totals of all threads, in the place of the first one's.
static void total(double *sums, long n_threads, long n_columns) {
  double *s = sums, *q = sums + n_columns;
  for (long i = 1; i < n_threads; ++i)
    for (long c = 0; c < n_columns; ++c) {
      s[c] += sums[(size_t)(2 * i) * n_columns + c];
      q[c] += sums[(size_t)(2 * i + 1) * n_columns + c];
    }
}

// Short sums in single precision are added up in double precision.
enum { SHORT = 64, WIDEST = 1024 };

static void add_up(const float *s, const float *q, long width, double *sums, long n_columns, long column) {
  for (long j = 0; j < width; ++j) {
    sums[column + j] += s[j];
    sums[n_columns + column + j] += q[j];
  }
}

// y = relu(BatchNorm(x) + added); statistics: mean, 1 / deviation. `sums` has 2 n_threads n_columns places, `map` 3 n_columns.
void norm_forward(in a, in b, in c, in d, long width, long n_rows, long n_columns, in weight, in shift, in bias,
                  out running_mean, out running_var, double momentum, double epsilon, in added, out y,
                  out statistics, double *sums, float *map, long n_threads) {
  const float *part[4] = {a, b, c, d};
  long n_parts = n_columns / width;
  float *scale = map, *offset = map + n_columns;
#pragma omp parallel num_threads(n_threads)
  {
    long first, stop;
    run_of(n_rows, &first, &stop);
    double *own = sums + (size_t)(2 * omp_get_thread_num()) * n_columns;
    memset(own, 0, 2 * n_columns * sizeof(double));
    for (long p = 0; p < n_parts; ++p)
      for (long from = first; from < stop; from += SHORT) {
        const float *x = part[p];
        float s[WIDEST] = {0}, q[WIDEST] = {0};
        for (long r = from; r < stop && r < from + SHORT; ++r)
          for (long j = 0; j < width; ++j) {
            float v = x[r * width + j] - x[j];  // from the first row: the sums do not cancel
            s[j] += v;
            q[j] += v * v;
          }
        add_up(s, q, width, own, n_columns, p * width);
      }
#pragma omp barrier
#pragma omp single
    {
      double *total_s = sums, *total_q = sums + n_columns;
      total(sums, omp_get_num_threads(), n_columns);
      for (long column = 0; column < n_columns; ++column) {
        double mean = total_s[column] / n_rows, var = total_q[column] / n_rows - mean * mean;
        mean += part[column / width][column % width];
        if (var < 0) var = 0;
        double rstd = 1 / sqrt(var + epsilon);
        running_mean[column] += momentum * (mean + bias[column] - running_mean[column]);
        running_var[column] += momentum * (var * n_rows / (n_rows > 1 ? n_rows - 1 : 1) - running_var[column]);
        statistics[column] = mean;
        statistics[n_columns + column] = rstd;
        scale[column] = weight[column] * rstd;
        offset[column] = shift[column] - mean * weight[column] * rstd;
      }
    }
    for (long r = first; r < stop; ++r)
      for (long p = 0; p < n_parts; ++p) {
        const float *x = part[p] + r * width, *k = scale + p * width, *o = offset + p * width;
        float *to = y + r * n_columns + p * width;
        if (added) {
          const float *h = added + r * n_columns + p * width;
          for (long j = 0; j < width; ++j) { float v = x[j] * k[j] + o[j] + h[j]; to[j] = v < 0 ? 0 : v; }
        } else
          for (long j = 0; j < width; ++j) { float v = x[j] * k[j] + o[j]; to[j] = v < 0 ? 0 : v; }
      }
  }
}

// What ReLU with the output y passes of its gradient g, or all of it. Everything is read, whether needed or not: compilers
// make vectors of this, and of a value that is read on a condition only for some processors.
static inline float passed(float g, float y, int always) { return (y > 0) | always ? g : 0; }

// Gradients of the parts, of weight and of shift. With `masked`, dy is that behind ReLU.
void norm_backward(in dy, in y, long masked, in a, in b, in c, in d, long width, long n_rows, long n_columns, in weight,
                   in statistics, out da, out db, out dc, out dd, out dweight, out dshift, double *sums, float *map,
                   long n_threads) {
  const float *part[4] = {a, b, c, d};
  float *dpart[4] = {da, db, dc, dd};
  long n_parts = n_columns / width;
  int always = !masked;
  const float *mean = statistics, *rstd = statistics + n_columns;
  float *of_g = map, *of_x = map + n_columns, *rest = map + 2 * n_columns;
#pragma omp parallel num_threads(n_threads)
  {
    long first, stop;
    run_of(n_rows, &first, &stop);
    double *own = sums + (size_t)(2 * omp_get_thread_num()) * n_columns;
    memset(own, 0, 2 * n_columns * sizeof(double));
    for (long p = 0; p < n_parts; ++p)
      for (long from = first; from < stop; from += SHORT) {
        const float *mu = mean + p * width;
        float s[WIDEST] = {0}, q[WIDEST] = {0};
        for (long r = from; r < stop && r < from + SHORT; ++r) {
          const float *x = part[p] + r * width, *g = dy + r * n_columns + p * width, *m = y + r * n_columns + p * width;
          for (long j = 0; j < width; ++j) {
            float v = passed(g[j], m[j], always);
            s[j] += v;
            q[j] += v * (x[j] - mu[j]);
          }
        }
        add_up(s, q, width, own, n_columns, p * width);
      }
#pragma omp barrier
#pragma omp single
    {
      double *total_s = sums, *total_q = sums + n_columns;
      total(sums, omp_get_num_threads(), n_columns);
      for (long column = 0; column < n_columns; ++column) {
        double k = (double)weight[column] * rstd[column];
        double f = -k * rstd[column] * rstd[column] * total_q[column] / n_rows;
        dshift[column] = total_s[column];
        dweight[column] = total_q[column] * rstd[column];
        of_g[column] = k;
        of_x[column] = f;
        rest[column] = -k * total_s[column] / n_rows - f * mean[column];
      }
    }
    for (long r = first; r < stop; ++r)
      for (long p = 0; p < n_parts; ++p) {
        const float *x = part[p] + r * width, *g = dy + r * n_columns + p * width, *m = y + r * n_columns + p * width;
        const float *kg = of_g + p * width, *kx = of_x + p * width, *o = rest + p * width;
        float *to = dpart[p] + r * width;
        for (long j = 0; j < width; ++j) {
          float v = passed(g[j], m[j], always);
          to[j] = kg[j] * v + kx[j] * x[j] + o[j];
        }
      }
  }
}

static inline float larger(float a, float b) { return a > b ? a : b; }

// The largest of three neighbouring time steps; `stride` values lie between two time steps.
void pool(in u, out y, long n_times, long stride, long n_threads) {
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (long t = 0; t < n_times; ++t) {
    const float *own = u + t * stride, *before = t > 0 ? own - stride : own, *after = t + 1 < n_times ? own + stride : own;
    float *to = y + t * stride;
    for (long i = 0; i < stride; ++i) to[i] = larger(larger(before[i], own[i]), after[i]);
  }
}

// To the first of equal values: for which of its three windows is a time step the winner?
void pool_backward(in dy, in u, out du, long n_times, long stride, long n_threads) {
#pragma omp parallel num_threads(n_threads)
  {
    float *low = malloc(stride * sizeof(float)), *zero = calloc(stride, sizeof(float));
    for (long i = 0; i < stride; ++i) low[i] = -INFINITY;
#pragma omp for schedule(static)
    for (long t = 0; t < n_times; ++t) {
      const float *c = u + t * stride, *o = dy + t * stride;
      const float *a = t > 1 ? c - 2 * stride : low, *b = t > 0 ? c - stride : low;
      const float *d = t + 1 < n_times ? c + stride : low, *e = t + 2 < n_times ? c + 2 * stride : low;
      const float *p = t > 0 ? o - stride : zero, *n = t + 1 < n_times ? o + stride : zero;
      float *to = du + t * stride;
      for (long i = 0; i < stride; ++i) {
        int over_b = c[i] > b[i], not_under_d = c[i] >= d[i];
        float before = p[i], own = o[i], after = n[i];  // read whether needed or not, see `passed`
        to[i] = (over_b & (c[i] > a[i]) ? before : 0) + (over_b & not_under_d ? own : 0) +
                (not_under_d & (c[i] >= e[i]) ? after : 0);
      }
    }
    free(low);
    free(zero);
  }
}
