/* One collective, by name and size in bytes of what a rank gives: tests/simulation/test_open_mpi.py. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int ranks;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Comm_size(world, &ranks);
    const char *name = words[1];
    int size = atoi(words[2]), numbers = size / (int)sizeof(int);
    char *give = calloc((size_t)size * ranks + 1, 1), *take = calloc((size_t)size * ranks + 1, 1);
    int *counts = malloc(ranks * sizeof(int));
    for (int rank = 0; rank < ranks; rank++)
        counts[rank] = numbers;
    if (!strcmp(name, "broadcast"))
        MPI_Bcast(give, size, MPI_BYTE, 0, world);
    else if (!strcmp(name, "reduce"))
        MPI_Reduce(give, take, numbers, MPI_INT, MPI_SUM, 0, world);
    else if (!strcmp(name, "allreduce"))
        MPI_Allreduce(give, take, numbers, MPI_INT, MPI_SUM, world);
    else if (!strcmp(name, "allgather"))
        MPI_Allgather(give, size, MPI_BYTE, take, size, MPI_BYTE, world);
    else if (!strcmp(name, "alltoall"))
        MPI_Alltoall(give, size, MPI_BYTE, take, size, MPI_BYTE, world);
    else if (!strcmp(name, "gather"))
        MPI_Gather(give, size, MPI_BYTE, take, size, MPI_BYTE, 0, world);
    else if (!strcmp(name, "scatter"))
        MPI_Scatter(give, size, MPI_BYTE, take, size, MPI_BYTE, 0, world);
    else if (!strcmp(name, "reduce_scatter"))
        MPI_Reduce_scatter(give, take, counts, MPI_INT, MPI_SUM, world);
    else if (!strcmp(name, "scan"))
        MPI_Scan(give, take, numbers, MPI_INT, MPI_SUM, world);
    else
        MPI_Barrier(world);
    MPI_Finalize();
    return 0;
}
