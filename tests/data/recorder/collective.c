/* Collectives by name and size in bytes of what a rank gives, one after another: tests/simulation/test_open_mpi.py.

   Each rank writes a file FOLDER/RANK with a line for every rank that it sends to in a collective: number of the
   collective, rank, messages, bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long messages[4096], bytes[4096];

/* Open MPI's component pml_monitoring calls this function, in place of its own, for each message that it sends: its own
   counts are those of the whole run, and the variables of MPI_T with which a program could read them in between are not
   registered in Open MPI 4.1. */
void mca_common_monitoring_record_pml(int rank, size_t size, int tag)
{
    (void)tag;
    messages[rank]++;
    bytes[rank] += (long)size;
}

static void run(const char *name, int size)
{
    int ranks;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Comm_size(world, &ranks);
    int numbers = size / (int)sizeof(int);
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
    free(give);
    free(take);
    free(counts);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int ranks, own;
    char name[4096];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    snprintf(name, sizeof name, "%s/%d", words[1], own);
    FILE *file = fopen(name, "w");
    for (int word = 2; word + 1 < count; word += 2) {
        memset(messages, 0, sizeof messages);
        memset(bytes, 0, sizeof bytes);
        run(words[word], atoi(words[word + 1]));
        for (int rank = 0; rank < ranks; rank++)
            if (messages[rank])
                fprintf(file, "%d %d %ld %ld\n", word / 2 - 1, rank, messages[rank], bytes[rank]);
    }
    fclose(file);
    MPI_Finalize();
    return 0;
}
