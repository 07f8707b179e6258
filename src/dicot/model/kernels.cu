// What the bank and the contests count, without ever writing a convolution to memory. A warp takes all time steps of one
// case and one kernel (or group of kernels), and adds them up in an order that does not depend on the other cases.
// Sums are taken in float32. What is so close that its rounding could decide is decided by exact sums, see counting.py.

#define WARP 32
#define TAPS 9
#define REACH 4
#define AT_ONCE 8  // biases that a pass over the time steps is compared with
#define PER_GROUP 8
#define ALL 0xffffffffu
#define ROOM 32768.0       // of counting.py
#define ROUNDING 1.2e-7f   // of a sum, for each of its terms, twice over

// What a kernel of nine taps around time step t sees of a case (C, T): the sum of the channels that it adds up, `often`
// times each; 0 outside of the case.
__device__ inline void see(float* seen, const float* x, int n_times, const int* own, const float* often, int most,
                           int t, int dilation) {
    const bool inside = t >= REACH * dilation && t + REACH * dilation < n_times;
#pragma unroll
    for (int i = 0; i < TAPS; ++i) seen[i] = 0.0f;
    for (int m = 0; m < most; ++m) {
        const int channel = own[m];
        if (channel < 0) break;
        const float factor = often[m];
        const float* row = x + (size_t)channel * n_times + t;
        if (inside) {
#pragma unroll
            for (int i = 0; i < TAPS; ++i) seen[i] = fmaf(factor, row[(i - REACH) * dilation], seen[i]);
        } else {
#pragma unroll
            for (int i = 0; i < TAPS; ++i) {
                const int at = t + (i - REACH) * dilation;
                if (at >= 0 && at < n_times) seen[i] = fmaf(factor, row[(i - REACH) * dilation], seen[i]);
            }
        }
    }
}

// By how much a convolution in float32 may be off; largest: of the case.
__device__ inline float off(const float* often, int most, const float* tap, float largest) {
    float times = 0.0f, taps = 0.0f;
    for (int m = 0; m < most; ++m) times += often[m];
    for (int i = 0; i < TAPS; ++i) taps += fabsf(tap[i]);
    return ROUNDING * (most + TAPS) * times * taps * largest;
}

// A convolution without rounding: in float64, of values on the grid.
__device__ double exactly(const float* x, int n_times, const int* own, const float* often, int most, int t, int dilation,
                          const float* tap, double room) {
    double y = 0.0;
    for (int i = 0; i < TAPS; ++i) {
        const int at = t + (i - REACH) * dilation;
        if (at < 0 || at >= n_times) continue;
        for (int m = 0; m < most && own[m] >= 0; ++m) {
            const double value = x[(size_t)own[m] * n_times + at];
            y += (double)tap[i] * often[m] * __dsub_rn(__dadd_rn(value, room), room);
        }
    }
    return y;
}

// Shares of time steps at which convolutions exceed biases: see Bank.transform.
// x (B, C, T); layout (D, 3): dilation, number of biases, the first of them; own, often (D, K, most): channels, -1 after
// the last; taps (K, 9); biases (K, total); largest (B,): |x| of a case; out (B, total, K).
extern "C" __global__ void shares(const float* x, int n_cases, int n_channels, int n_times, const int* layout,
                                  int n_dilations, const int* own, const float* often, int most, const float* taps,
                                  int n_kernels, const float* biases, int total, const float* largest, float* out) {
    const int lane = threadIdx.x;
    const long long number = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    if (number >= (long long)n_cases * n_dilations * n_kernels) return;
    const int k = number % n_kernels, d = (number / n_kernels) % n_dilations;
    const long long b = number / ((long long)n_kernels * n_dilations);
    const int dilation = layout[3 * d], count = layout[3 * d + 1], first = layout[3 * d + 2];
    const float* values = x + b * n_channels * n_times;
    own += (size_t)(d * n_kernels + k) * most;
    often += (size_t)(d * n_kernels + k) * most;
    float tap[TAPS];
#pragma unroll
    for (int i = 0; i < TAPS; ++i) tap[i] = taps[k * TAPS + i];
    const float close = off(often, most, tap, largest[b]);
    const double room = ROOM * largest[b];

    const int margin = REACH * dilation;
    const bool within = (k + d) % 2 == 1 && n_times > 2 * margin;  // counts only where it does not reach beyond
    const int start = within ? margin : 0, stop = within ? n_times - margin : n_times;
    for (int j = 0; j < count; j += AT_ONCE) {
        const int n = min(AT_ONCE, count - j);
        float bias[AT_ONCE];
        int above[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            bias[i] = i < n ? biases[(size_t)k * total + first + j + i] : 0.0f;
            above[i] = 0;
        }
        for (int from = start; from < stop; from += WARP) {
            const int t = from + lane;
            float seen[TAPS], y = 0.0f;
            see(seen, values, n_times, own, often, most, t, dilation);
#pragma unroll
            for (int i = 0; i < TAPS; ++i) y = fmaf(tap[i], seen[i], y);
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                if (i >= n) continue;
                bool more = t < stop && y > bias[i];
                if (t < stop && !(fabsf(y - bias[i]) > close))
                    more = exactly(values, n_times, own, often, most, t, dilation, tap, room) > bias[i];
                above[i] += __popc(__ballot_sync(ALL, more));
            }
        }
        if (lane == 0) {
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i)
                if (i < n) out[(b * total + first + j + i) * n_kernels + k] = above[i] / (float)(stop - start);
        }
    }
}

// By how much each kernel of a group wins, and how often it comes last: see Contests.transform.
// cases (B, C, T) and steps (B, C, T - 1), their first difference; own, often (D, 2, G, most); taps (D, 2, G, 8, 9);
// largest (2, B): of a case and of its difference; nothing (2, B): what counts as none; out (B, D, 2, 2, G, 8): those who
// win, those who come last.
extern "C" __global__ void contests(const float* cases, const float* steps, int n_cases, int n_channels, int n_times,
                                    int n_dilations, const int* own, const float* often, int most, const float* taps,
                                    int n_groups, const float* largest, const double* nothing, float* out) {
    const int lane = threadIdx.x;
    const long long number = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    const int per_case = n_dilations * 2 * n_groups;
    if (number >= (long long)n_cases * per_case) return;
    const int row = number % per_case;  // (d, series, g)
    const long long b = number / per_case;
    const int g = row % n_groups, series = (row / n_groups) % 2, d = row / (2 * n_groups);
    const int length = n_times - series, dilation = 1 << d;
    const float* values = (series ? steps : cases) + b * n_channels * length;
    const double none = nothing[(size_t)series * n_cases + b];
    const float most_of_all = largest[(size_t)series * n_cases + b];
    const double room = ROOM * most_of_all;
    own += (size_t)row * most;
    often += (size_t)row * most;
    float tap[PER_GROUP][TAPS], won[PER_GROUP], lost[PER_GROUP], close = 0.0f;
#pragma unroll
    for (int k = 0; k < PER_GROUP; ++k) {
        won[k] = lost[k] = none * 0;  // NaN is not hidden
#pragma unroll
        for (int i = 0; i < TAPS; ++i) tap[k][i] = taps[((size_t)row * PER_GROUP + k) * TAPS + i];
        close = fmaxf(close, 2 * off(often, most, tap[k], most_of_all));  // of two convolutions, from each other
    }
    for (int t = lane; t < length; t += WARP) {
        float seen[TAPS], y[PER_GROUP] = {};
        see(seen, values, length, own, often, most, t, dilation);
#pragma unroll
        for (int i = 0; i < TAPS; ++i) {
#pragma unroll
            for (int k = 0; k < PER_GROUP; ++k) y[k] = fmaf(tap[k][i], seen[i], y[k]);
        }
        float best = y[0], worst = y[0];
#pragma unroll
        for (int k = 1; k < PER_GROUP; ++k) best = fmaxf(best, y[k]), worst = fminf(worst, y[k]);
        int near = 0;
#pragma unroll
        for (int k = 0; k < PER_GROUP; ++k) near += (y[k] >= best - close) + (y[k] <= worst + close);
        if (near == 2 && fabs(fabsf(best) - none) > close && fabs(fabsf(worst) - none) > close) {
            const bool wins = fabsf(best) > none, loses = fabsf(worst) > none;
#pragma unroll
            for (int k = 0; k < PER_GROUP; ++k) {
                if (wins && y[k] == best) won[k] += best;
                if (loses && y[k] == worst) lost[k] += 1.0f;
            }
        } else {
            double exact[PER_GROUP];
#pragma unroll
            for (int k = 0; k < PER_GROUP; ++k)
                exact[k] = exactly(values, length, own, often, most, t, dilation, tap[k], room);
            double top = exact[0], bottom = exact[0];
#pragma unroll
            for (int k = 1; k < PER_GROUP; ++k) top = fmax(top, exact[k]), bottom = fmin(bottom, exact[k]);
#pragma unroll
            for (int k = 0; k < PER_GROUP; ++k) {
                if (fabs(top) > none && exact[k] == top) won[k] += (float)top;
                if (fabs(bottom) > none && exact[k] == bottom) lost[k] += 1.0f;
            }
        }
    }
    float* mine = out + (b * n_dilations + d) * 4 * n_groups * PER_GROUP + (size_t)series * 2 * n_groups * PER_GROUP;
#pragma unroll
    for (int k = 0; k < PER_GROUP; ++k) {
        float w = won[k], l = lost[k];
#pragma unroll
        for (int offset = WARP / 2; offset > 0; offset /= 2) {
            w += __shfl_xor_sync(ALL, w, offset);
            l += __shfl_xor_sync(ALL, l, offset);
        }
        if (lane == 0) {
            mine[g * PER_GROUP + k] = sqrtf(fmaxf(w / length, 0.0f));
            mine[(n_groups + g) * PER_GROUP + k] = sqrtf(l / length);
        }
    }
}
