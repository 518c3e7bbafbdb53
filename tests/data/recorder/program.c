/* Every kind of call that docs/pmpi_recorder.c records, with known peers and sizes; for the test of the recorder. */
#include <mpi.h>

static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end)
        ;
}

int main(int argc, char **argv)
{
    char out[4096] = {0}, in[4096], all[4 * 4096];
    int me, count, half, flag = 0, index, counts[4] = {1, 2, 3, 4}, places[4] = {0, 1, 3, 6};
    double sum = 1.0, total;
    MPI_Request requests[2];
    MPI_Comm pair;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    int left = (me + count - 1) % count, right = (me + 1) % count;

    compute(0.02);
    /* Blocking, with a receive from any source. */
    if (me == 0)
        MPI_Send(out, 100, MPI_INT, 1, 5, MPI_COMM_WORLD);
    if (me == 1)
        MPI_Recv(in, 200, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* Nonblocking, in a ring. */
    MPI_Irecv(in, 1000, MPI_BYTE, left, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 1000, MPI_BYTE, right, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Irecv(in, 8, MPI_BYTE, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 8, MPI_BYTE, right, 8, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1 - index], MPI_STATUS_IGNORE);
    MPI_Isend(out, 16, MPI_BYTE, right, 9, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv(in, 16, MPI_BYTE, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    /* Both at once; the last rank sends to none. */
    MPI_Sendrecv(out, 50, MPI_DOUBLE, me + 1 < count ? me + 1 : MPI_PROC_NULL, 1, in, 50, MPI_DOUBLE,
                 me ? me - 1 : MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* Persistent. */
    MPI_Recv_init(in, 24, MPI_BYTE, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, 24, MPI_BYTE, right, 2, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    /* In a smaller communicator: ranks 0 and 2, 1 and 3. */
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &pair);
    MPI_Comm_rank(pair, &half);
    if (half == 0)
        MPI_Send(out, 33, MPI_BYTE, 1, 3, pair);
    else
        MPI_Recv(in, 33, MPI_BYTE, 0, 3, pair, MPI_STATUS_IGNORE);
    MPI_Barrier(pair);

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(out, 10, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 2, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(out, 11, MPI_INT, all, 11, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(all, 12, MPI_INT, in, 12, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgather(out, 13, MPI_INT, all, 13, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(out, 14, MPI_INT, all, 14, MPI_INT, MPI_COMM_WORLD);
    MPI_Gatherv(out, counts[me], MPI_INT, all, counts, places, MPI_INT, 3, MPI_COMM_WORLD);
    MPI_Scatterv(out, counts, places, MPI_INT, in, counts[me], MPI_INT, 3, MPI_COMM_WORLD);
    MPI_Allgatherv(out, counts[me], MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallv(out, counts, places, MPI_INT, all, (int[]){counts[me], counts[me], counts[me], counts[me]},
                  (int[]){0, 10, 20, 30}, MPI_INT, MPI_COMM_WORLD);
    MPI_Reduce_scatter(all, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(all, in, 15, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    /* Nonblocking, completed in another order. */
    MPI_Iallreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ialltoall(out, 16, MPI_INT, all, 16, MPI_INT, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
