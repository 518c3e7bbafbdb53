/* Times of HPL's kernels and of messages on one node, with every core busy, as CSV for `whatif fit kernel`.

   mpicc -O2 hpl_kernels.c -lblas -lm -o hpl_kernels
   mpirun -np CORES --bind-to core hpl_kernels SECONDS LARGEST_N > kernels.csv     (BLAS with one thread a process)
   mpirun -np 2 hpl_kernels SECONDS messages > messages.csv

   All processes call the same kernel with the same sizes at the same time: a core alone is faster. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
            const double *, const int *, double *, const int *);
void dtrsv_(const char *, const char *, const char *, const int *, const double *, const int *, double *, const int *);
void dgemv_(const char *, const int *, const int *, const double *, const double *, const int *, const double *,
            const int *, const double *, double *, const int *);
void dger_(const int *, const int *, const double *, const double *, const int *, const double *, const int *,
           double *, const int *);
void daxpy_(const int *, const double *, const double *, const int *, double *, const int *);
void dscal_(const int *, const double *, double *, const int *);
int idamax_(const int *, const double *, const int *);

static const char *NAMES[] = {"dgemm",     "dtrsm",     "dtrsv",     "dgemv",     "dger",      "daxpy",  "dscal",  "idamax",
                              "dlaswp00n", "dlaswp01t", "dlaswp02n", "dlaswp03t", "dlaswp04t", "dlacpy", "dlatcpy"};
enum { DGEMM, DTRSM, DTRSV, DGEMV, DGER, DAXPY, DSCAL, IDAMAX, SWAP00, SWAP01, SWAP02, SWAP03, SWAP04, COPY, TURN, COUNT };

static double *matrix, *panel, *rows;
static int lead, block[512];

/* Size from `least` to `most`. */
static int drawn(int least, int most) { return least + (int)((most - least + 1.0) * rand() / (RAND_MAX + 1.0)); }

/* m rows of a matrix to or from a contiguous block, 32 columns at a time, as HPL_dlaswp..; `turned`: row by row. */
static void move(int kernel, int m, int n) {
    for (int first = 0; first < n; first += 32) {
        int behind = first + 32 < n ? first + 32 : n;
        for (int i = 0; i < m; i++) {
            double *row = matrix + block[i] + (size_t)first * lead;
            double *turned = rows + (size_t)i * n + first, *packed = panel + (size_t)first * m + i;
            for (int j = 0; j < behind - first; j++, row += lead, packed += m) {
                if (kernel == SWAP00) { double kept = *row; *row = matrix[i + (size_t)(first + j) * lead]; matrix[i + (size_t)(first + j) * lead] = kept; }
                else if (kernel == SWAP01) turned[j] = *row;
                else if (kernel == SWAP02) *packed = *row;
                else if (kernel == SWAP03) turned[j] = *packed;
                else *row = *packed;
            }
        }
    }
}

static void call(int kernel, int m, int n, int k) {
    double one = 1.0, minus = -1.0, *a = matrix;
    int step = 1, at = 0;
    switch (kernel) {
    case DGEMM: dgemm_("N", "T", &m, &n, &k, &minus, panel, &m, rows, &n, &one, a, &lead); break;
    case DTRSM: dtrsm_("L", "U", "T", "U", &m, &n, &one, panel, &m, a, &lead); break;
    case DTRSV: dtrsv_("U", "N", "N", &n, panel, &n, a, &step); break;
    case DGEMV: dgemv_("N", &m, &n, &minus, a, &lead, rows, &step, &one, panel, &step); break;
    case DGER: dger_(&m, &n, &minus, panel, &step, rows, &step, a, &lead); break;
    case DAXPY: daxpy_(&n, &minus, panel, &step, a, &step); break;
    case DSCAL: dscal_(&n, &one, a, &step); break;
    case IDAMAX: at = idamax_(&n, a, &step); if (at < 0) abort(); break;
    case COPY: for (int j = 0; j < n; j++) memcpy(panel + (size_t)j * m, a + (size_t)j * lead, 8 * (size_t)m); break;
    case TURN: for (int j = 0; j < n; j++) for (int i = 0; i < m; i++) rows[(size_t)i * n + j] = panel[(size_t)j * m + i]; break;
    default: move(kernel, m, n);
    }
}

static void kernels(double seconds, int largest, int rank) {
    lead = largest + 8;
    size_t all = (size_t)lead * (largest + 1), thin = (size_t)(largest + 1) * 257;
    matrix = malloc(8 * all), panel = malloc(8 * thin), rows = malloc(8 * thin);
    for (size_t i = 0; i < all; i++) matrix[i] = 0.5 - (double)rand() / RAND_MAX;
    for (size_t i = 0; i < thin; i++) panel[i] = rows[i] = (0.5 - (double)rand() / RAND_MAX) / largest;
    if (rank == 0) printf("kernel,m,n,k,time (s),busy_cores\n");
    double end = MPI_Wtime() + seconds;
    int size, turn = 0, on = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (srand(1); on; turn++) {
        /* The sizes of HPL: updates with K = NB or M = NB, and small calls within a panel. */
        int kernel = turn % 2 ? DGEMM : turn / 2 % COUNT, small = rand() % 2;
        int m = drawn(1, largest), n = drawn(1, largest), k = drawn(32, 256);
        if (kernel >= DTRSV && kernel < SWAP00) small = 1;
        if (kernel == DGEMM && small) n = drawn(1, 64), k = drawn(1, 64);
        if (kernel == DTRSM) m = small ? drawn(1, 64) : drawn(32, 256), n = small ? drawn(1, 64) : n;
        if (kernel >= SWAP00 && kernel <= SWAP04) m = drawn(1, 256);
        if (kernel == DTRSV || kernel == DGEMV || kernel == DGER) n = drawn(1, 16);
        if (kernel == COPY || kernel == TURN) n = drawn(1, 256);
        for (int i = 0; i < m && i < 512; i++) block[i] = rand() % largest;
        /* A panel stays in the caches from call to call, the rest of the matrix does not. */
        if (small && kernel < SWAP00) call(kernel, m, n, k);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        call(kernel, m, n, k);
        double taken = MPI_Wtime() - start, all_taken[4096];
        MPI_Gather(&taken, 1, MPI_DOUBLE, all_taken, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (int r = 0; rank == 0 && r < size; r++)
            if (all_taken[r] > 0) printf("%s,%d,%d,%d,%.9g,%d\n", NAMES[kernel], m, n, k, all_taken[r], size);
        on = MPI_Wtime() < end;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

/* Time of a message there and back, halved, and of the calls themselves. */
static void messages(double seconds, int rank) {
    char *buffer = malloc(64 << 20);
    memset(buffer, 1, 64 << 20);
    if (rank == 0) printf("test,message_size,time (s)\n");
    double end = MPI_Wtime() + seconds;
    for (int on = 1; on;) {
        int size = (int)exp(log(32 << 20) * rand() / RAND_MAX); /* as often small as large */
        MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int again = 0; again < 3; again++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            if (rank == 0) MPI_Send(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            if (rank < 2) MPI_Recv(buffer, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 1) MPI_Send(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            if (rank == 0 && again) printf("pingpong,%d,%.9g\n", size, (MPI_Wtime() - start) / 2);
        }
        on = MPI_Wtime() < end;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

int main(int count, char **words) {
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double seconds = count > 1 ? atof(words[1]) : 30;
    if (count > 2 && !strcmp(words[2], "messages")) messages(seconds, rank);
    else kernels(seconds, count > 2 ? atoi(words[2]) : 4000, rank);
    return MPI_Finalize();
}
