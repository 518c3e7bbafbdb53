// Small applications for one GPU, whose times whatif predicts from metrics of their kernels.
//
//   nvcc -O3 -arch=native -o gpu_programs gpu_programs.cu
//   ./gpu_programs PROGRAM SIZE ITERATIONS [THREADS [RANKS]]
//
// prints `program,size,iterations,iteration_time [us]`: wall-clock time of one iteration, the median of five runs.
// With RANKS, so many processes run the program on the same GPU, each at the full SIZE, and the line goes on with
// `ranks,synchronised_iteration_time [us]`: they wait for each other after all iterations, and after each one.
//
//   cg       conjugate gradients, 27 points, ELLPACK, double precision; SIZE^3 rows: one product, two dot products
//            whose sums the host reads, three vector updates
//   jacobi   sweeps of five points in two dimensions, double precision; SIZE^2 cells
//   heat     sweeps of seven points in three dimensions, single precision; SIZE^3 cells
//   bodies   forces of all pairs and a step, single precision; SIZE bodies
//   life     the game of life, one byte a cell; SIZE^2 cells
//   polynomial   values of a polynomial of degree 1024, double precision; SIZE arguments, blocks of THREADS (256)
//   sums     sums of SIZE columns of 2 MiB, one block of THREADS each, double precision; columns not read for some
//            iterations
//   matmul   product of matrices by tiles of 32^2 in shared memory, single precision; SIZE^2, a multiple of 32
//   fused16, fused64, fused128, fused256   so many dependent multiply-adds with each element of a triad, double
//            precision; SIZE elements
//   stencil27   sweeps of 27 points in three dimensions, double precision; SIZE^3 cells
//   lattice  19 populations of a lattice streamed and relaxed, single precision; SIZE^3 cells
//   convolve    a filter of 9^2 points, single precision; SIZE^2 cells
//   transpose   of a matrix by tiles of 32^2 in shared memory, double precision; SIZE^2, a multiple of 32
//   empty    a kernel that does nothing; SIZE blocks
//   graph    the same 100 times in a graph that is replayed
//   wait     an empty kernel, and a copy of 8 B to the host, which waits for it
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        fprintf(stderr, "gpu_programs: %s\n", cudaGetErrorString(error));
        exit(1);
    }
}

template <typename T>
static T *array(size_t count) {
    T *values;
    check(cudaMalloc(&values, count * sizeof(T)));
    check(cudaMemset(values, 0, count * sizeof(T)));
    return values;
}

static unsigned blocks(size_t count, unsigned threads = 256) { return unsigned((count + threads - 1) / threads); }

__global__ void fill(double *x, size_t count, double value) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) x[i] = value;
}

// Column by column, so that neighbouring threads read neighbouring values.
__global__ void assemble(double *values, int *columns, int n) {
    size_t rows = size_t(n) * n * n, row = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (row >= rows) return;
    int x = row % n, y = row / n % n, z = row / (size_t(n) * n), k = 0;
    for (int dz = -1; dz <= 1; dz++)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++, k++) {
                int X = x + dx, Y = y + dy, Z = z + dz;
                bool inside = X >= 0 && X < n && Y >= 0 && Y < n && Z >= 0 && Z < n;
                columns[k * rows + row] = inside ? int((size_t(Z) * n + Y) * n + X) : int(row);
                values[k * rows + row] = !inside ? 0.0 : k == 13 ? 27.0 : -1.0;
            }
}

__global__ void product(const double *values, const int *columns, const double *x, double *y, size_t rows) {
    size_t row = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (row >= rows) return;
    double sum = 0;
    for (int k = 0; k < 27; k++) sum += values[k * rows + row] * x[columns[k * rows + row]];
    y[row] = sum;
}

__global__ void dot(const double *x, const double *y, double *sum, size_t count) {
    __shared__ double parts[8];
    double part = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
        part += x[i] * y[i];
    for (int step = 16; step; step /= 2) part += __shfl_down_sync(~0u, part, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 8; k++) part += parts[k];
        atomicAdd(sum, part);
    }
}

__global__ void update(double a, const double *x, double b, const double *y, double *z, size_t count) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) z[i] = a * x[i] + b * y[i];
}

__global__ void jacobi(const double *u, double *v, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
    size_t i = size_t(y) * n + x;
    v[i] = 0.25 * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n]);
}

__global__ void heat(const float *u, float *v, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z + 1;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
    size_t plane = size_t(n) * n, i = z * plane + size_t(y) * n + x;
    v[i] = u[i] + 0.1f * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] + u[i - plane] + u[i + plane] - 6 * u[i]);
}

__global__ void forces(const float4 *bodies, float3 *force, int n) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 own = bodies[min(i, n - 1)];
    float3 sum = {0, 0, 0};
    for (int start = 0; start < n; start += 256) {
        tile[threadIdx.x] = bodies[min(start + int(threadIdx.x), n - 1)];
        __syncthreads();
#pragma unroll 16
        for (int k = 0; k < 256; k++) {
            float x = tile[k].x - own.x, y = tile[k].y - own.y, z = tile[k].z - own.z;
            float inverse = rsqrtf(x * x + y * y + z * z + 1e-4f);
            float weight = tile[k].w * inverse * inverse * inverse;
            sum.x += x * weight, sum.y += y * weight, sum.z += z * weight;
        }
        __syncthreads();
    }
    if (i < n) force[i] = sum;
}

__global__ void step(float4 *bodies, const float3 *force, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    bodies[i].x += 1e-6f * force[i].x, bodies[i].y += 1e-6f * force[i].y, bodies[i].z += 1e-6f * force[i].z;
}

__global__ void place(float4 *bodies, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) bodies[i] = {i % 61 / 61.f, i % 67 / 67.f, i % 71 / 71.f, 1.f / n};
}

__global__ void life(const unsigned char *u, unsigned char *v, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
    size_t i = size_t(y) * n + x;
    int around = u[i - n - 1] + u[i - n] + u[i - n + 1] + u[i - 1] + u[i + 1] + u[i + n - 1] + u[i + n] + u[i + n + 1];
    v[i] = around == 3 || (around == 2 && u[i]);
}

__global__ void polynomial(const double *x, double *y, size_t count) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= count) return;
    double value = 1, argument = x[i];
#pragma unroll 16
    for (int k = 0; k < 1024; k++) value = value * argument + 0.5;
    y[i] = value;
}

__global__ void sums(const double *columns, double *results, size_t rows) {
    __shared__ double parts[32];
    const double *column = columns + blockIdx.x * rows;
    double part = 0;
#pragma unroll 4
    for (size_t i = threadIdx.x; i < rows; i += blockDim.x) part += column[i];
    for (int step = 16; step; step /= 2) part += __shfl_down_sync(~0u, part, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < blockDim.x / 32; k++) part += parts[k];
        results[blockIdx.x] = part;
    }
}

__global__ void matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float left[32][32], right[32][32];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    float sum = 0;
    for (int start = 0; start < n; start += 32) {
        left[threadIdx.y][threadIdx.x] = a[size_t(row) * n + start + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[size_t(start + threadIdx.y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[size_t(row) * n + column] = sum;
}

template <int COUNT>
__global__ void fused(const double *b, const double *c, double *a, size_t count) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= count) return;
    double value = b[i], factor = c[i];
#pragma unroll
    for (int k = 0; k < COUNT; k++) value = value * factor + 0.5;
    a[i] = value;
}

__global__ void stencil27(const double *u, double *v, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z + 1;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
    size_t plane = size_t(n) * n, i = z * plane + size_t(y) * n + x;
    double sum = 0;
#pragma unroll
    for (int dz = -1; dz <= 1; dz++)
#pragma unroll
        for (int dy = -1; dy <= 1; dy++)
#pragma unroll
            for (int dx = -1; dx <= 1; dx++) sum += (1.0 / 64 + 0.001 * (dx + 3 * dy + 9 * dz)) * u[i + dz * plane + dy * n + dx];
    v[i] = sum;
}

__global__ void lattice(const float *from, float *to, int n) {
    size_t cells = size_t(n) * n * n, i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= cells) return;
    float f[19], density = 0, flow = 0;
#pragma unroll
    for (int k = 0; k < 19; k++) {
        size_t neighbour = (i + cells + (k % 3 - 1) + (k / 3 % 3 - 1) * n + (k / 9 - 1) * size_t(n) * n) % cells;
        f[k] = from[k * cells + neighbour];
        density += f[k], flow += (k % 3 - 1) * f[k];
    }
#pragma unroll
    for (int k = 0; k < 19; k++) {
        float moved = (k % 3 - 1) * flow;
        to[k * cells + i] = f[k] + 0.6f * (density / 19 * (1 + 3 * moved + 4.5f * moved * moved) - f[k]);
    }
}

__global__ void convolve(const float *u, float *v, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 4 || y < 4 || x >= n - 4 || y >= n - 4) return;
    float sum = 0;
#pragma unroll
    for (int dy = -4; dy <= 4; dy++)
#pragma unroll
        for (int dx = -4; dx <= 4; dx++) sum += (0.01f + 0.001f * dx + 0.0001f * dy) * u[size_t(y + dy) * n + x + dx];
    v[size_t(y) * n + x] = sum;
}

__global__ void transpose(const double *a, double *b, int n) {
    __shared__ double tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = a[size_t(y + k) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) b[size_t(y + k) * n + x] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void empty() {}

using Iterations = std::function<void(int)>;

static Iterations conjugate_gradients(int n) {
    size_t rows = size_t(n) * n * n;
    auto *values = array<double>(27 * rows);
    auto *columns = array<int>(27 * rows);
    auto *x = array<double>(rows), *r = array<double>(rows), *p = array<double>(rows), *q = array<double>(rows);
    auto *sum = array<double>(1);
    assemble<<<blocks(rows), 256>>>(values, columns, n);
    auto total = [=](const double *a, const double *b) {
        double result = 0;
        check(cudaMemsetAsync(sum, 0, sizeof(double)));
        dot<<<1056, 256>>>(a, b, sum, rows);
        check(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
        return result;
    };
    return [=](int count) {
        fill<<<blocks(rows), 256>>>(x, rows, 0.0);
        fill<<<blocks(rows), 256>>>(r, rows, 1.0);
        fill<<<blocks(rows), 256>>>(p, rows, 1.0);
        double old = double(rows);
        for (int k = 0; k < count; k++) {
            product<<<blocks(rows), 256>>>(values, columns, p, q, rows);
            double alpha = old / total(p, q);
            update<<<blocks(rows), 256>>>(1.0, x, alpha, p, x, rows);
            update<<<blocks(rows), 256>>>(1.0, r, -alpha, q, r, rows);
            double now = total(r, r);
            update<<<blocks(rows), 256>>>(1.0, r, now / old, p, p, rows);
            // Converged sums would make the scalars 0 / 0.
            old = std::max(now, 1e-200);
        }
    };
}

template <typename T>
static Iterations sweeps(size_t count, std::function<void(T *, T *)> sweep) {
    auto *u = array<T>(count), *v = array<T>(count);
    return [=](int iterations) {
        T *from = u, *to = v;
        for (int k = 0; k < iterations; k++, std::swap(from, to)) sweep(from, to);
    };
}

static Iterations all_pairs(int n) {
    auto *bodies = array<float4>(n);
    auto *force = array<float3>(n);
    place<<<blocks(n), 256>>>(bodies, n);
    return [=](int count) {
        for (int k = 0; k < count; k++) {
            forces<<<blocks(n), 256>>>(bodies, force, n);
            step<<<blocks(n), 256>>>(bodies, force, n);
        }
    };
}

static Iterations polynomials(size_t count, unsigned threads) {
    auto *x = array<double>(count), *y = array<double>(count);
    fill<<<blocks(count), 256>>>(x, count, 0.25);
    return [=](int iterations) {
        for (int k = 0; k < iterations; k++) polynomial<<<blocks(count, threads), threads>>>(x, y, count);
    };
}

static Iterations sums_of_columns(size_t count, unsigned threads) {
    const size_t rows = 1 << 18, all = std::max(count, size_t(2112));
    auto *columns = array<double>(all * rows), *results = array<double>(count);
    return [=](int iterations) {
        for (size_t k = 0, first = 0; k < size_t(iterations); k++, first = first + 2 * count <= all ? first + count : 0)
            sums<<<count, threads>>>(columns + first * rows, results, rows);
    };
}

static Iterations products(int n) {
    size_t square = size_t(n) * n;
    auto *a = array<float>(square), *b = array<float>(square), *c = array<float>(square);
    dim3 tile(32, 32), tiles(n / 32, n / 32);
    return [=](int count) {
        for (int k = 0; k < count; k++) matmul<<<tiles, tile>>>(a, b, c, n);
    };
}

template <int COUNT>
static Iterations fused_triads(size_t count) {
    auto *a = array<double>(count), *b = array<double>(count), *c = array<double>(count);
    fill<<<blocks(count), 256>>>(c, count, 0.25);
    return [=](int iterations) {
        for (int k = 0; k < iterations; k++) fused<COUNT><<<blocks(count), 256>>>(b, c, a, count);
    };
}

static Iterations launches(int size, bool waits) {
    auto *value = array<double>(1);
    return [=](int count) {
        double result;
        for (int k = 0; k < count; k++) {
            empty<<<size, 256>>>();
            if (waits) check(cudaMemcpy(&result, value, sizeof result, cudaMemcpyDeviceToHost));
        }
    };
}

static Iterations replayed(int size) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    check(cudaStreamCreate(&stream));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int k = 0; k < 100; k++) empty<<<size, 256, 0, stream>>>();
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&ready, graph, 0));
    return [=](int count) {
        for (int k = 0; k < count; k += 100) check(cudaGraphLaunch(ready, stream));
    };
}

static Iterations made(const std::string &program, int n, unsigned threads) {
    dim3 tile(32, 8), tiles(blocks(n, 32), blocks(n, 8)), layers(blocks(n, 32), blocks(n, 8), n - 2);
    size_t square = size_t(n) * n;
    if (program == "cg") return conjugate_gradients(n);
    if (program == "jacobi")
        return sweeps<double>(square, [=](double *u, double *v) { jacobi<<<tiles, tile>>>(u, v, n); });
    if (program == "heat")
        return sweeps<float>(square * n, [=](float *u, float *v) { heat<<<layers, tile>>>(u, v, n); });
    if (program == "life") {
        return sweeps<unsigned char>(square, [=](unsigned char *u, unsigned char *v) { life<<<tiles, tile>>>(u, v, n); });
    }
    if (program == "bodies") return all_pairs(n);
    if (program == "polynomial") return polynomials(n, threads);
    if (program == "sums") return sums_of_columns(n, threads);
    if (program == "matmul") return products(n);
    if (program == "fused16") return fused_triads<16>(n);
    if (program == "fused64") return fused_triads<64>(n);
    if (program == "fused128") return fused_triads<128>(n);
    if (program == "fused256") return fused_triads<256>(n);
    if (program == "stencil27")
        return sweeps<double>(square * n, [=](double *u, double *v) { stencil27<<<layers, tile>>>(u, v, n); });
    if (program == "lattice")
        return sweeps<float>(19 * square * n, [=](float *u, float *v) { lattice<<<blocks(square * n), 256>>>(u, v, n); });
    if (program == "convolve")
        return sweeps<float>(square, [=](float *u, float *v) { convolve<<<tiles, tile>>>(u, v, n); });
    if (program == "transpose")
        return sweeps<double>(square, [=](double *u, double *v) { transpose<<<dim3(n / 32, n / 32), tile>>>(u, v, n); });
    if (program == "graph") return replayed(n);
    if (program == "empty" || program == "wait") return launches(n, program == "wait");
    fprintf(stderr, "gpu_programs: no program %s\n", program.c_str());
    exit(2);
}

// Processes that wait for each other; in memory that they share.
struct Meeting {
    std::atomic<int> arrived, round;

    void wait(int ranks) {
        int now = round;
        if (++arrived == ranks) {
            arrived = 0;
            round = now + 1;
        }
        while (round == now) sched_yield();
    }
};

// Median time of an iteration of `runs` runs in a row, all ranks together.
static double iteration_time(const Iterations &run, int iterations, int runs, Meeting *meeting, int ranks) {
    std::vector<double> times;
    for (int k = 0; k < 6; k++) {
        meeting->wait(ranks);
        auto begin = std::chrono::steady_clock::now();
        for (int number = 0; number < runs; number++) {
            run(iterations);
            check(cudaDeviceSynchronize());
            meeting->wait(ranks);
        }
        std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
        if (k) times.push_back(taken.count() / iterations / runs);
    }
    check(cudaGetLastError());
    std::sort(times.begin(), times.end());
    return times[2];
}

int main(int argc, char **argv) {
    int size = argc > 3 ? atoi(argv[2]) : 0, iterations = argc > 3 ? atoi(argv[3]) : 0;
    int threads = argc > 4 ? atoi(argv[4]) : 256, ranks = argc > 5 ? atoi(argv[5]) : 1;
    if (size < 1 || iterations < 1 || threads < 32 || threads > 1024 || threads % 32 || ranks < 1) {
        fprintf(stderr, "usage: gpu_programs PROGRAM SIZE ITERATIONS [THREADS [RANKS]]\n");
        return 2;
    }
    auto *meeting = static_cast<Meeting *>(
        mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    int rank = 0;
    // Before the first call of CUDA, whose state no child could use.
    for (int child = 1; child < ranks && rank == 0; child++) rank = fork() ? 0 : child;
    Iterations run = made(argv[1], size, threads);
    check(cudaDeviceSynchronize());
    double time = iteration_time(run, iterations, 1, meeting, ranks);
    double synchronised = argc > 5 ? iteration_time(run, 1, iterations, meeting, ranks) : 0;
    if (rank) return 0;
    while (wait(nullptr) > 0) continue;
    printf("%s,%d,%d,%.3f", argv[1], size, iterations, time);
    if (argc > 5) printf(",%d,%.3f", ranks, synchronised);
    printf("\n");
}
