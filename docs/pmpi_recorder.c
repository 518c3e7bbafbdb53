/* Recorder of the messages of an MPI program (C or C++), in SimGrid's time-independent format, one file a rank.
 *
 *     mpicc -std=c99 -O2 -shared -fPIC -o librecorder.so pmpi_recorder.c
 *     mpirun -n 4 env LD_PRELOAD=$PWD/librecorder.so ./program
 *     whatif simulate trace --platform NAME
 *
 * The files are in the folder $PMPI_TRACE (default: trace). Time between two calls of MPI is computation, in seconds.
 * Recorded: blocking and nonblocking messages, persistent requests, and the collectives below on communicators of all
 * ranks, nonblocking ones where they start. Left out, with a warning at the end: collectives on smaller communicators.
 * Taken as computation: all other calls, such as one-sided communication and files. Only one thread of a process may
 * call MPI. Licence: CC0.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum state { ONCE, WAITING, STARTED }; /* Of a request: a persistent one waits for its start, or has started. */
typedef struct {
    MPI_Request request;
    enum state state;
    int source, target, tag, receives;
    long size;
} Message;

static FILE *trace;
static double since;
static Message *pending;
static int me, all, left_out, pending_count, pending_room;

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "pmpi_recorder: %s %s: %s\n", what, name, strerror(errno));
    PMPI_Abort(MPI_COMM_WORLD, 1);
}
static void *room(void *block, size_t count, size_t size)
{
    void *larger = realloc(block, (count + 1) * size);
    if (!larger)
        fail("no memory for", "requests");
    return larger;
}
/* Between leave() and enter() the program computes. */
static void enter(void)
{
    double time = PMPI_Wtime() - since;
    if (time > 0)
        fprintf(trace, "%d sleep %.9f\n", me, time);
}
static int leave(int code)
{
    since = PMPI_Wtime();
    return code;
}
static int start(int code)
{
    const char *folder = getenv("PMPI_TRACE") ? getenv("PMPI_TRACE") : "trace";
    char name[4096];
    PMPI_Comm_rank(MPI_COMM_WORLD, &me);
    PMPI_Comm_size(MPI_COMM_WORLD, &all);
    if (mkdir(folder, 0777) && errno != EEXIST)
        fail("cannot make the folder", folder);
    snprintf(name, sizeof name, "%s/rank_%06d.txt", folder, me);
    trace = fopen(name, "w");
    if (!trace)
        fail("cannot write", name);
    fprintf(trace, "%d init\n", me); /* Without a value: sizes are in bytes. */
    return leave(code);
}
int MPI_Init(int *count, char ***words) { return start(PMPI_Init(count, words)); }
int MPI_Init_thread(int *count, char ***words, int wanted, int *level)
{
    return start(PMPI_Init_thread(count, words, wanted, level));
}
int MPI_Finalize(void)
{
    enter();
    fprintf(trace, "%d finalize\n", me);
    if (ferror(trace) || fclose(trace))
        fail("cannot write", "the trace");
    if (left_out)
        fprintf(stderr, "pmpi_recorder: rank %d: %d collectives on smaller communicators left out\n", me, left_out);
    return PMPI_Finalize();
}

static long bytes(long count, MPI_Datatype type)
{
    int size;
    return PMPI_Type_size(type, &size), count * size;
}
static int is_intercommunicator(MPI_Comm c)
{
    int inter;
    return PMPI_Comm_test_inter(c, &inter), inter;
}
static int world_rank(MPI_Comm c, int rank)
{
    MPI_Group own, world;
    int found = rank;
    if (c == MPI_COMM_WORLD || rank < 0)
        return rank;
    is_intercommunicator(c) ? PMPI_Comm_remote_group(c, &own) : PMPI_Comm_group(c, &own);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(own, 1, &rank, world, &found);
    PMPI_Group_free(&own);
    PMPI_Group_free(&world);
    return found;
}

/* Messages. -1 stands for any source and any tag. */
static Message message(int receives, int peer, int tag, long size, MPI_Comm c)
{
    Message made = {MPI_REQUEST_NULL, ONCE, me, me, tag == MPI_ANY_TAG ? -1 : tag, receives, size};
    *(receives ? &made.source : &made.target) = peer == MPI_ANY_SOURCE ? -1 : world_rank(c, peer);
    return made;
}
static void write_message(const char *prefix, const Message *it)
{
    int peer = it->receives ? it->source : it->target;
    if (peer != MPI_PROC_NULL)
        fprintf(trace, "%d %s%s %d %d %ld\n", me, prefix, it->receives ? "recv" : "send", peer, it->tag, it->size);
}
static void write_wait(const Message *it)
{
    if (it->source != MPI_PROC_NULL && it->target != MPI_PROC_NULL)
        fprintf(trace, "%d wait %d %d %d\n", me, it->source, it->target, it->tag);
}
static void write_exchange(Message in, Message out)
{
    enter(), write_message("i", &in), write_message("i", &out), write_wait(&in), write_wait(&out);
}
#define SEND(name)                                                                                                     \
    int MPI_##name(const void *b, int n, MPI_Datatype t, int peer, int tag, MPI_Comm c)                                \
    {                                                                                                                  \
        Message made = message(0, peer, tag, bytes(n, t), c);                                                          \
        enter(), write_message("", &made);                                                                             \
        return leave(PMPI_##name(b, n, t, peer, tag, c));                                                              \
    }
SEND(Send) SEND(Ssend) SEND(Bsend) SEND(Rsend)
int MPI_Recv(void *b, int n, MPI_Datatype t, int peer, int tag, MPI_Comm c, MPI_Status *status)
{
    MPI_Status own, *s = status == MPI_STATUS_IGNORE ? &own : status;
    enter();
    int code = PMPI_Recv(b, n, t, peer, tag, c, s);
    Message made = message(1, s->MPI_SOURCE, s->MPI_TAG, bytes(n, t), c);
    write_message("", &made);
    return leave(code);
}
int MPI_Sendrecv(const void *b, int n, MPI_Datatype t, int to, int tag, void *r, int m, MPI_Datatype u, int from,
                 int its_tag, MPI_Comm c, MPI_Status *s)
{
    write_exchange(message(1, from, its_tag, bytes(m, u), c), message(0, to, tag, bytes(n, t), c));
    return leave(PMPI_Sendrecv(b, n, t, to, tag, r, m, u, from, its_tag, c, s));
}
int MPI_Sendrecv_replace(void *b, int n, MPI_Datatype t, int to, int tag, int from, int its_tag, MPI_Comm c,
                         MPI_Status *s)
{
    write_exchange(message(1, from, its_tag, bytes(n, t), c), message(0, to, tag, bytes(n, t), c));
    return leave(PMPI_Sendrecv_replace(b, n, t, to, tag, from, its_tag, c, s));
}
#define REQUEST(name, constant, receives, first)                                                                       \
    int MPI_##name(constant void *b, int n, MPI_Datatype t, int peer, int tag, MPI_Comm c, MPI_Request *request)       \
    {                                                                                                                  \
        Message made = message(receives, peer, tag, bytes(n, t), c);                                                   \
        enter();                                                                                                       \
        if (first == ONCE)                                                                                             \
            write_message("i", &made);                                                                                 \
        int code = PMPI_##name(b, n, t, peer, tag, c, request);                                                        \
        made.request = *request, made.state = first;                                                                   \
        if (pending_count == pending_room)                                                                             \
            pending = room(pending, pending_room = 2 * pending_room + 64, sizeof made);                                \
        pending[pending_count++] = made;                                                                               \
        return leave(code);                                                                                            \
    }
REQUEST(Isend, const, 0, ONCE) REQUEST(Issend, const, 0, ONCE) REQUEST(Ibsend, const, 0, ONCE)
REQUEST(Irsend, const, 0, ONCE) REQUEST(Irecv, , 1, ONCE) REQUEST(Recv_init, , 1, WAITING)
REQUEST(Send_init, const, 0, WAITING) REQUEST(Ssend_init, const, 0, WAITING)
static Message *pending_message(MPI_Request request)
{
    for (int i = pending_count; i-- > 0;)
        if (request != MPI_REQUEST_NULL && pending[i].request == request)
            return &pending[i];
    return NULL;
}
int MPI_Startall(int n, MPI_Request requests[])
{
    enter();
    for (int i = 0; i < n; i++) {
        Message *it = pending_message(requests[i]);
        if (it)
            it->state = STARTED, write_message("i", it);
    }
    return leave(PMPI_Startall(n, requests));
}
int MPI_Start(MPI_Request *request) { return MPI_Startall(1, request); }
int MPI_Request_free(MPI_Request *request)
{
    Message *it = pending_message(*request);
    if (it)
        *it = pending[--pending_count];
    return PMPI_Request_free(request);
}
static void complete(MPI_Request request)
{
    Message *it = pending_message(request);
    if (it && it->state != WAITING)
        write_wait(it);
    if (it && it->state == ONCE)
        *it = pending[--pending_count];
    else if (it)
        it->state = WAITING;
}
/* Of `n` requests `done` have completed after the call, the i-th at the place `at`. */
#define COMPLETION(n, requests, call, done, at)                                                                        \
    {                                                                                                                  \
        MPI_Request *before = memcpy(room(NULL, n, sizeof *before), requests, (n) * sizeof *before);                   \
        enter();                                                                                                       \
        int code = call;                                                                                               \
        for (int i = 0; i < (done); i++)                                                                               \
            complete(before[at]);                                                                                      \
        free(before);                                                                                                  \
        return leave(code);                                                                                            \
    }
#define R MPI_Request *r
#define S MPI_Status *s
int MPI_Wait(R, S) COMPLETION(1, r, PMPI_Wait(r, s), 1, i)
int MPI_Test(R, int *flag, S) COMPLETION(1, r, PMPI_Test(r, flag, s), *flag, i)
int MPI_Waitall(int n, R, S) COMPLETION(n, r, PMPI_Waitall(n, r, s), n, i)
int MPI_Testall(int n, R, int *flag, S) COMPLETION(n, r, PMPI_Testall(n, r, flag, s), *flag ? n : 0, i)
int MPI_Waitany(int n, R, int *at, S) COMPLETION(n, r, PMPI_Waitany(n, r, at, s), *at >= 0, *at)
int MPI_Testany(int n, R, int *at, int *f, S) COMPLETION(n, r, PMPI_Testany(n, r, at, f, s), *f && *at >= 0, *at)
int MPI_Waitsome(int n, R, int *done, int at[], S) COMPLETION(n, r, PMPI_Waitsome(n, r, done, at, s), *done, at[i])
int MPI_Testsome(int n, R, int *done, int at[], S) COMPLETION(n, r, PMPI_Testsome(n, r, done, at, s), *done, at[i])
/* Collectives: every rank writes the bytes that it contributes, then `rest`, then the root. */
static void collective(MPI_Comm c, const char *verb, long size, const char *rest, int root)
{
    int own;
    enter();
    PMPI_Comm_size(c, &own);
    if (own < all || is_intercommunicator(c)) /* The format has those of all ranks only. */
        left_out += own > 1;
    else {
        fprintf(trace, "%d %s", me, verb);
        for (int i = 0; i < (strcmp(verb, "reducescatter") ? 1 : all); i++) /* Of that one, the block of each rank. */
            fprintf(trace, " %ld", size);
        fprintf(trace, rest, size);
        root < 0 ? fprintf(trace, "\n") : fprintf(trace, " %d\n", world_rank(c, root));
    }
}
/* Sizes of the block of this rank, and of the mean one, where each rank has its count. */
static long own_block(const int n[], MPI_Datatype t, MPI_Comm c)
{
    int rank;
    return PMPI_Comm_rank(c, &rank), bytes(n[rank], t);
}
static long mean_block(const int n[], MPI_Datatype t, MPI_Comm c)
{
    int own;
    long count = 0;
    PMPI_Comm_size(c, &own);
    for (int i = 0; i < own; i++)
        count += n[i];
    return bytes(count, t) / own;
}
/* A nonblocking collective is written where it starts: its time is that of a blocking one. */
#define COLLECTIVE(name, nonblocking, parameters, arguments, ...)                                                      \
    int MPI_##name(parameters, MPI_Comm c)                                                                             \
    {                                                                                                                  \
        collective(c, __VA_ARGS__);                                                                                    \
        return leave(PMPI_##name(arguments, c));                                                                       \
    }                                                                                                                  \
    int MPI_##nonblocking(parameters, MPI_Comm c, MPI_Request *request)                                                \
    {                                                                                                                  \
        collective(c, __VA_ARGS__);                                                                                    \
        return leave(PMPI_##nonblocking(arguments, c, request));                                                       \
    }
#define _(...) __VA_ARGS__
#define FROM const void *s, int n, MPI_Datatype t
#define INTO void *r, int m, MPI_Datatype u
#define BLOCKS const int n[], const int at[], MPI_Datatype t
#define INTO_BLOCKS void *r, const int m[], const int to[], MPI_Datatype u
#define OPERANDS const void *s, void *r, int n, MPI_Datatype t, MPI_Op o
#define OR(buffer, size, other) (buffer == MPI_IN_PLACE ? other : size)
COLLECTIVE(Bcast, Ibcast, _(void *b, int n, MPI_Datatype t, int root), _(b, n, t, root), "bcast", bytes(n, t), "", root)
COLLECTIVE(Reduce, Ireduce, _(OPERANDS, int root), _(s, r, n, t, o, root), "reduce", bytes(n, t), " 0", root)
COLLECTIVE(Allreduce, Iallreduce, _(OPERANDS), _(s, r, n, t, o), "allreduce", bytes(n, t), " 0", -1)
COLLECTIVE(Reduce_scatter, Ireduce_scatter, _(const void *s, void *r, const int n[], MPI_Datatype t, MPI_Op o),
           _(s, r, n, t, o), "reducescatter", mean_block(n, t, c), " 0", -1)
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, _(OPERANDS), _(s, r, n, t, o), "reducescatter", bytes(n, t),
           " 0", -1)
COLLECTIVE(Scan, Iscan, _(OPERANDS), _(s, r, n, t, o), "scan", bytes(n, t), " 0", -1)
COLLECTIVE(Exscan, Iexscan, _(OPERANDS), _(s, r, n, t, o), "exscan", bytes(n, t), " 0", -1)
COLLECTIVE(Gather, Igather, _(FROM, INTO, int root), _(s, n, t, r, m, u, root), "gather",
           OR(s, bytes(n, t), bytes(m, u)), " %ld", root)
COLLECTIVE(Scatter, Iscatter, _(FROM, INTO, int root), _(s, n, t, r, m, u, root), "scatter",
           OR(r, bytes(m, u), bytes(n, t)), " %ld", root)
COLLECTIVE(Allgather, Iallgather, _(FROM, INTO), _(s, n, t, r, m, u), "allgather", bytes(m, u), " %ld", -1)
COLLECTIVE(Alltoall, Ialltoall, _(FROM, INTO), _(s, n, t, r, m, u), "alltoall", bytes(m, u), " %ld", -1)
COLLECTIVE(Gatherv, Igatherv, _(FROM, INTO_BLOCKS, int root), _(s, n, t, r, m, to, u, root), "gather",
           OR(s, bytes(n, t), own_block(m, u, c)), " %ld", root)
COLLECTIVE(Scatterv, Iscatterv, _(const void *s, BLOCKS, INTO, int root), _(s, n, at, t, r, m, u, root), "scatter",
           OR(r, bytes(m, u), own_block(n, t, c)), " %ld", root)
COLLECTIVE(Allgatherv, Iallgatherv, _(FROM, INTO_BLOCKS), _(s, n, t, r, m, to, u), "allgather", own_block(m, u, c),
           " %ld", -1)
COLLECTIVE(Alltoallv, Ialltoallv, _(const void *s, BLOCKS, INTO_BLOCKS), _(s, n, at, t, r, m, to, u), "alltoall",
           OR(s, mean_block(n, t, c), mean_block(m, u, c)), " %ld", -1)
int MPI_Barrier(MPI_Comm c) { return collective(c, "barrier", 0, "", -1), leave(PMPI_Barrier(c)); }
int MPI_Ibarrier(MPI_Comm c, MPI_Request *r) { return collective(c, "barrier", 0, "", -1), leave(PMPI_Ibarrier(c, r)); }
