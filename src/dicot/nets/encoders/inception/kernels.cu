// BatchNorm with ReLU, and max-pooling over three time steps, on float32 rows of channels; see rows.py.
// A matrix of M rows and C columns may come in two parts, the first with `width` columns. All sums are taken in a fixed
// order, so that the same input gives the same bits.

__device__ float4 load(const float* x, long long i) { return reinterpret_cast<const float4*>(x)[i]; }
__device__ void store(float* x, long long i, float4 v) { reinterpret_cast<float4*>(x)[i] = v; }
__device__ float relu(float x) { return x < 0.f ? 0.f : x; }  // NaN stays NaN
__device__ float largest(float a, float b) { return a > b ? a : b; }

// A column's part: where it begins, how wide it is, and the column's place in it.
struct Part { float* x; int width, column; };
__device__ Part part_of(const float* a, const float* b, int width, int n_columns, int column) {
  return column < width ? Part{(float*)a, width, column} : Part{(float*)b, n_columns - width, column - width};
}
// Where columns 4 j .. 4 j + 3 of a row lie in their part, counted in fours.
__device__ long long place(Part p, long long row) { return (row * p.width + p.column) / 4; }

#define PARTS const float* a, const float* b, int width
#define COLUMN int j = blockIdx.y * blockDim.x + threadIdx.x; bool inside = 4 * j < n_columns; \
  Part p = part_of(a, b, width, n_columns, 4 * j)

// Sums of two quantities over the rows of a block, written to partial[block][quantity][column].
__device__ void reduce_rows(float4 s, float4 q, float* partial, int n_columns, int j, bool inside) {
  extern __shared__ float4 shared[];
  int lane = threadIdx.y * blockDim.x + threadIdx.x, n = blockDim.x * blockDim.y;
  shared[lane] = s; shared[n + lane] = q;
  __syncthreads();
  if (threadIdx.y == 0 && inside) {
    for (int y = 1; y < blockDim.y; ++y) {
      float4 v = shared[y * blockDim.x + threadIdx.x], w = shared[n + y * blockDim.x + threadIdx.x];
      s.x += v.x; s.y += v.y; s.z += v.z; s.w += v.w;
      q.x += w.x; q.y += w.y; q.z += w.z; q.w += w.w;
    }
    long long first = (long long)blockIdx.x * 2 * n_columns;
    store(partial, first / 4 + j, s);
    store(partial, (first + n_columns) / 4 + j, q);
  }
}

// The sums of all blocks; true for the one thread of a column that goes on with them.
__device__ bool reduce_blocks(const float* partial, int n_blocks, int n_columns, int column, double& s, double& q) {
  __shared__ double sums[2][16][32];
  s = q = 0;
  if (column < n_columns)
    for (int block = threadIdx.y; block < n_blocks; block += 16) {
      s += partial[(long long)block * 2 * n_columns + column];
      q += partial[((long long)block * 2 + 1) * n_columns + column];
    }
  sums[0][threadIdx.y][threadIdx.x] = s; sums[1][threadIdx.y][threadIdx.x] = q;
  __syncthreads();
  if (threadIdx.y > 0 || column >= n_columns) return false;
  for (int y = 1; y < 16; ++y) { s += sums[0][y][threadIdx.x]; q += sums[1][y][threadIdx.x]; }
  return true;
}

// Sums of x - x[0] and of its square: taken from the first row, they do not cancel.
extern "C" __global__ void norm_sums(PARTS, int n_rows, int n_columns, int rows_per_block, float* partial) {
  COLUMN;
  float4 s = make_float4(0, 0, 0, 0), q = s;
  if (inside) {
    float4 o = load(p.x, place(p, 0));
    long long first = (long long)blockIdx.x * rows_per_block, stop = first + rows_per_block;
    if (stop > n_rows) stop = n_rows;
    for (long long r = first + threadIdx.y; r < stop; r += blockDim.y) {
      float4 v = load(p.x, place(p, r));
      v.x -= o.x; v.y -= o.y; v.z -= o.z; v.w -= o.w;
      s.x += v.x; s.y += v.y; s.z += v.z; s.w += v.w;
      q.x += v.x * v.x; q.y += v.y * v.y; q.z += v.z * v.z; q.w += v.w * v.w;
    }
  }
  reduce_rows(s, q, partial, n_columns, j, inside);
}

// Statistics, running statistics, and the affine map of every column: kept = mean, 1 / deviation, scale, offset.
extern "C" __global__ void norm_statistics(PARTS, const float* partial, int n_blocks, int n_rows, int n_columns,
    const float* weight, const float* shift, const float* bias, float* running_mean, float* running_var,
    long long* n_batches, double momentum, double epsilon, float* kept) {
  double s, q;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (!reduce_blocks(partial, n_blocks, n_columns, column, s, q)) return;
  if (column == 0) *n_batches += 1;
  Part p = part_of(a, b, width, n_columns, column);
  s /= n_rows;
  double mean = s + p.x[p.column], var = q / n_rows - s * s;
  if (var < 0) var = 0;
  double rstd = rsqrt(var + epsilon), scale = weight[column] * rstd;
  running_mean[column] += momentum * (mean + bias[column] - running_mean[column]);
  running_var[column] += momentum * (var * n_rows / (n_rows > 1 ? n_rows - 1 : 1) - running_var[column]);
  kept[column] = mean; kept[n_columns + column] = rstd;
  kept[2 * n_columns + column] = scale; kept[3 * n_columns + column] = shift[column] - mean * scale;
}

// y = relu(scale x + offset + added)
extern "C" __global__ void norm_apply(PARTS, int n_rows, int n_columns, const float* kept, const float* added,
    int has_added, float* y) {
  COLUMN;
  if (!inside) return;
  float4 k = load(kept, n_columns / 2 + j), o = load(kept, 3 * n_columns / 4 + j);
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < n_rows; r += (long long)gridDim.x * blockDim.y) {
    float4 v = load(p.x, place(p, r));
    v.x = v.x * k.x + o.x; v.y = v.y * k.y + o.y; v.z = v.z * k.z + o.z; v.w = v.w * k.w + o.w;
    long long i = r * (n_columns / 4) + j;
    if (has_added) { float4 h = load(added, i); v.x += h.x; v.y += h.y; v.z += h.z; v.w += h.w; }
    store(y, i, make_float4(relu(v.x), relu(v.y), relu(v.z), relu(v.w)));
  }
}

// y = max(x + shift, lowest)
extern "C" __global__ void join(PARTS, int n_rows, int n_columns, const float* shift, const float* lowest, float* y) {
  COLUMN;
  if (!inside) return;
  float4 s = load(shift, j), m = load(lowest, j);
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < n_rows; r += (long long)gridDim.x * blockDim.y) {
    float4 v = load(p.x, place(p, r));
    v.x = largest(v.x + s.x, m.x); v.y = largest(v.y + s.y, m.y);
    v.z = largest(v.z + s.z, m.z); v.w = largest(v.w + s.w, m.w);
    store(y, r * (n_columns / 4) + j, v);
  }
}

// The gradient in front of ReLU; without a mask that of BatchNorm's output itself.
__device__ float4 gradient(const float* dy, const float* y, int masked, long long i) {
  float4 g = load(dy, i);
  if (masked) {
    float4 m = load(y, i);
    g.x = m.x > 0 ? g.x : 0; g.y = m.y > 0 ? g.y : 0; g.z = m.z > 0 ? g.z : 0; g.w = m.w > 0 ? g.w : 0;
  }
  return g;
}

// Sums of g and of g (x - mean).
extern "C" __global__ void grad_sums(PARTS, const float* dy, const float* y, int masked, int n_rows, int n_columns,
    int rows_per_block, const float* kept, float* partial) {
  COLUMN;
  float4 s = make_float4(0, 0, 0, 0), q = s;
  if (inside) {
    float4 m = load(kept, j);
    long long first = (long long)blockIdx.x * rows_per_block, stop = first + rows_per_block;
    if (stop > n_rows) stop = n_rows;
    for (long long r = first + threadIdx.y; r < stop; r += blockDim.y) {
      float4 v = load(p.x, place(p, r)), g = gradient(dy, y, masked, r * (n_columns / 4) + j);
      s.x += g.x; s.y += g.y; s.z += g.z; s.w += g.w;
      q.x += g.x * (v.x - m.x); q.y += g.y * (v.y - m.y); q.z += g.z * (v.z - m.z); q.w += g.w * (v.w - m.w);
    }
  }
  reduce_rows(s, q, partial, n_columns, j, inside);
}

// Gradients of weight and shift, and the map dx = of_g g + of_x x + rest of every column.
extern "C" __global__ void grad_statistics(const float* partial, int n_blocks, int n_rows, int n_columns,
    const float* weight, const float* kept, float* dweight, float* dshift, float* map) {
  double s, q;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (!reduce_blocks(partial, n_blocks, n_columns, column, s, q)) return;
  double mean = kept[column], rstd = kept[n_columns + column], of_g = weight[column] * rstd;
  double of_x = -of_g * rstd * rstd * q / n_rows;
  dshift[column] = s; dweight[column] = q * rstd;
  map[column] = of_g; map[n_columns + column] = of_x; map[2 * n_columns + column] = -of_g * s / n_rows - of_x * mean;
}

extern "C" __global__ void grad_apply(PARTS, const float* dy, const float* y, int masked, int n_rows, int n_columns,
    const float* map, float* da, float* db) {
  COLUMN;
  if (!inside) return;
  float4 f = load(map, j), h = load(map, n_columns / 4 + j), o = load(map, n_columns / 2 + j);
  float* dx = part_of(da, db, width, n_columns, 4 * j).x;
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < n_rows; r += (long long)gridDim.x * blockDim.y) {
    float4 v = load(p.x, place(p, r)), g = gradient(dy, y, masked, r * (n_columns / 4) + j);
    v.x = f.x * g.x + h.x * v.x + o.x; v.y = f.y * g.y + h.y * v.y + o.y;
    v.z = f.z * g.z + h.z * v.z + o.z; v.w = f.w * g.w + h.w * v.w + o.w;
    store(dx, place(p, r), v);
  }
}

// The largest of three neighbouring time steps; `stride` values lie between two time steps.
extern "C" __global__ void pool(const float* u, float* y, int n_times, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4LL * i >= stride) return;
  for (int t = blockIdx.y; t < n_times; t += gridDim.y) {
    long long k = (long long)t * (stride / 4) + i;
    float4 v = load(u, k);
    if (t > 0) {
      float4 w = load(u, k - stride / 4);
      v.x = largest(v.x, w.x); v.y = largest(v.y, w.y); v.z = largest(v.z, w.z); v.w = largest(v.w, w.w);
    }
    if (t + 1 < n_times) {
      float4 w = load(u, k + stride / 4);
      v.x = largest(v.x, w.x); v.y = largest(v.y, w.y); v.z = largest(v.z, w.z); v.w = largest(v.w, w.w);
    }
    store(y, k, v);
  }
}

// The same two for bfloat16, which is the upper half of a float; two to a word, the first one below.
__device__ float lower(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ float upper(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ unsigned rounded(float x) {  // to the nearest, of two as near to the even one
  unsigned bits = __float_as_uint(x);
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
__device__ unsigned largest_pair(unsigned a, unsigned b) {
  return __float_as_uint(largest(upper(a), upper(b))) | __float_as_uint(largest(lower(a), lower(b))) >> 16;
}
__device__ uint4 largest_pairs(uint4 a, uint4 b) {
  return make_uint4(largest_pair(a.x, b.x), largest_pair(a.y, b.y), largest_pair(a.z, b.z), largest_pair(a.w, b.w));
}
extern "C" __global__ void pool_bf16(const uint4* u, uint4* y, int n_times, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, s = stride / 8;
  if (i >= s) return;
  for (int t = blockIdx.y; t < n_times; t += gridDim.y) {
    long long k = (long long)t * s + i;
    uint4 v = u[k];
    if (t > 0) v = largest_pairs(v, u[k - s]);
    if (t + 1 < n_times) v = largest_pairs(v, u[k + s]);
    y[k] = v;
  }
}

__device__ unsigned joined_pair(unsigned x, const float* s, const float* m) {
  return rounded(largest(upper(x) + s[1], m[1])) << 16 | rounded(largest(lower(x) + s[0], m[0]));
}
extern "C" __global__ void join_bf16(const uint4* a, const uint4* b, int width, int n_rows, int n_columns,
    const float* shift, const float* lowest, uint4* y) {
  int j = blockIdx.y * blockDim.x + threadIdx.x;  // columns 8 j .. 8 j + 7
  if (8 * j >= n_columns) return;
  bool first = 8 * j < width;
  const uint4* x = first ? a + j : b + (j - width / 8);
  int per_row = (first ? width : n_columns - width) / 8;
  float s[8], m[8];
  for (int i = 0; i < 8; ++i) { s[i] = shift[8 * j + i]; m[i] = lowest[8 * j + i]; }
  for (long long r = (long long)blockIdx.x * blockDim.y + threadIdx.y; r < n_rows; r += (long long)gridDim.x * blockDim.y) {
    uint4 v = x[r * per_row];
    y[r * (n_columns / 8) + j] = make_uint4(joined_pair(v.x, s, m), joined_pair(v.y, s + 2, m + 2),
                                            joined_pair(v.z, s + 4, m + 4), joined_pair(v.w, s + 6, m + 6));
  }
}

// Of equal values the first one won: who, among five neighbours, is the middle one the winner for?
__device__ float handed_back(float a, float b, float c, float d, float e, float before, float own, float after) {
  return (c > a && c > b ? before : 0.f) + (c > b && c >= d ? own : 0.f) + (c >= d && c >= e ? after : 0.f);
}

extern "C" __global__ void pool_backward(const float* dy, const float* u, float* du, int n_times, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4LL * i >= stride) return;
  const float low = -1.f / 0.f;
  const float4 none = make_float4(low, low, low, low), zero = make_float4(0, 0, 0, 0);
  long long s = stride / 4;
  for (int t = blockIdx.y; t < n_times; t += gridDim.y) {
    long long k = t * s + i;
    float4 a = t > 1 ? load(u, k - 2 * s) : none, b = t > 0 ? load(u, k - s) : none, c = load(u, k);
    float4 d = t + 1 < n_times ? load(u, k + s) : none, e = t + 2 < n_times ? load(u, k + 2 * s) : none;
    float4 p = t > 0 ? load(dy, k - s) : zero, o = load(dy, k), n = t + 1 < n_times ? load(dy, k + s) : zero;
    store(du, k, make_float4(handed_back(a.x, b.x, c.x, d.x, e.x, p.x, o.x, n.x),
                             handed_back(a.y, b.y, c.y, d.y, e.y, p.y, o.y, n.y),
                             handed_back(a.z, b.z, c.z, d.z, e.z, p.z, o.z, n.z),
                             handed_back(a.w, b.w, c.w, d.w, e.w, p.w, o.w, n.w)));
  }
}
