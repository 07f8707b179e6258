// What CaTT does with a tile of similarities s (rows, columns), see catt.py: E = exp(s), but 0 for a time step with
// itself and its neighbours, where column - row is band - 1, band or band + 1. Sums are taken in a fixed order.

__device__ float far(float s, int row, int column, int band) { return abs(column - row - band) < 2 ? 0.f : expf(s); }

#define ROWS 64
#define PER_LANE 16
#define COLUMNS (32 * PER_LANE)

// Sums of a block of ROWS x COLUMNS: of_rows[block over columns][row], of_columns[block over rows][column]. A warp takes
// every eighth row, a lane every 32nd column.
extern "C" __global__ void far_sums(const float* s, int n_rows, int n_columns, int band, float* of_rows,
    float* of_columns) {
  __shared__ float shared[8][COLUMNS];
  int lane = threadIdx.x, warp = threadIdx.y, first = blockIdx.x * COLUMNS + lane;
  float down[PER_LANE];
  for (int i = 0; i < PER_LANE; ++i) down[i] = 0;
  for (int n = warp; n < ROWS; n += 8) {
    int row = blockIdx.y * ROWS + n;
    if (row >= n_rows) break;
    const float* at = s + (long long)row * n_columns;
    float across = 0;
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) {
      int column = first + 32 * i;
      float e = column < n_columns ? far(at[column], row, column, band) : 0.f;
      across += e; down[i] += e;
    }
    for (int step = 16; step; step /= 2) across += __shfl_down_sync(0xffffffffu, across, step);
    if (lane == 0) of_rows[(long long)blockIdx.x * n_rows + row] = across;
  }
  for (int i = 0; i < PER_LANE; ++i) shared[warp][lane + 32 * i] = down[i];
  __syncthreads();
  for (int n = warp * 32 + lane; n < COLUMNS; n += 256) {
    int column = blockIdx.x * COLUMNS + n;
    if (column >= n_columns) break;
    float sum = 0;
    for (int i = 0; i < 8; ++i) sum += shared[i][n];
    of_columns[(long long)blockIdx.y * n_columns + column] = sum;
  }
}

// Add the sums of all blocks to those of the rows and of the columns.
extern "C" __global__ void add_sums(const float* of_rows, const float* of_columns, int over, int down, int n_rows,
    int n_columns, float* rows, float* columns) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= n_rows + n_columns) return;
  bool is_row = n < n_rows;
  const float* parts = is_row ? of_rows : of_columns;
  int place = is_row ? n : n - n_rows, stride = is_row ? n_rows : n_columns, count = is_row ? over : down;
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += parts[(long long)i * stride + place];
  (is_row ? rows : columns)[place] += sum;
}

// s <- E times the gradient of both time steps; a block takes 4 rows of 1,024 columns.
extern "C" __global__ void far_weights(float* s, int n_rows, int n_columns, int band, const float* of_rows,
    const float* of_columns) {
  for (int i = 0; i < 4; ++i) {
    int column = blockIdx.x * 1024 + 256 * i + threadIdx.x;
    if (column >= n_columns) return;
    float g = of_columns[column];
    for (int n = 0; n < 4; ++n) {
      int row = blockIdx.y * 4 + n;
      if (row >= n_rows) break;
      long long at = (long long)row * n_columns + column;
      s[at] = (of_rows[row] + g) * far(s[at], row, column, band);
    }
  }
}
