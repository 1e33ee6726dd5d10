/* peer.c - see peer.h. */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void usage(const char *word)
{
    fprintf(stderr, "do not understand \"%s\"; options: --ops LIST --sizes LIST --budget-ms N\n",
            word);
    exit(2);
}

static void parse_ops(char *list, struct peer_request *out)
{
    memset(out->wanted, 0, sizeof out->wanted);
    for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
        int op = 0;
        while (op < BENCH_OP_COUNT && strcmp(word, bench_op_names[op]) != 0)
            op++;
        if (op == BENCH_OP_COUNT) usage(word);
        out->wanted[op] = 1;
    }
}

static void parse_sizes(char *list, struct peer_request *out)
{
    out->size_count = 0;
    for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
        char *end;
        if (out->size_count == 32) usage(word);
        out->sizes[out->size_count++] = strtoul(word, &end, 10);
        if (*end != '\0') usage(word);
    }
}

void peer_parse(int argc, char **argv, struct peer_request *out)
{
    static const size_t sizes[] = {8, 1 << 10, 64 << 10, 1 << 20, 64 << 20};

    memcpy(out->sizes, sizes, sizeof sizes);
    out->size_count = (int)(sizeof sizes / sizeof *sizes);
    out->budget_ms = 100;
    for (int op = 0; op < BENCH_OP_COUNT; op++)
        out->wanted[op] = 1;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) usage(argv[i]);
        if (strcmp(argv[i], "--ops") == 0)
            parse_ops(argv[i + 1], out);
        else if (strcmp(argv[i], "--sizes") == 0)
            parse_sizes(argv[i + 1], out);
        else if (strcmp(argv[i], "--budget-ms") == 0)
            out->budget_ms = strtoul(argv[i + 1], NULL, 10);
        else
            usage(argv[i]);
    }
}

struct call {
    const struct peer *peer;
    enum bench_op op;
    float *send, *recv;
    size_t count;
};

static int call_once(void *argument)
{
    const struct call *call = argument;

    return call->peer->collective(call->peer->ranks.self, call->op, call->send, call->recv,
                                  call->count);
}

static int measure_cell(const struct peer *peer, struct call *call, size_t bytes,
                        uint64_t budget_ns)
{
    const struct bench_ranks *ranks = &peer->ranks;
    struct bench_times times;
    uint64_t wrong;
    int status;

    bench_fill(call->op, ranks->rank, ranks->size, call->count, call->send, call->recv);
    status = bench_time(ranks, call_once, call, budget_ns, &times);
    if (status != 0) return status;
    wrong = !bench_right(call->op, ranks->rank, ranks->size, call->count, call->recv);
    status = ranks->maximum(ranks->self, &wrong, 1);
    if (status != 0 || ranks->rank != 0) return status;
    if (wrong) {
        fprintf(stderr, "%s: wrong result of %s, %zu bytes\n", peer->name, bench_op_names[call->op],
                bytes);
        return 0; /* no row: a wrong answer has no time */
    }
    printf("{\"who\":\"%s\",\"op\":\"%s\",\"dtype\":\"f32\",\"bytes\":%zu,\"ranks\":%d,"
           "\"min_ns\":%llu,\"median_ns\":%llu,\"p99_ns\":%llu,\"samples\":%llu}\n",
           peer->name, bench_op_names[call->op], bytes, ranks->size,
           (unsigned long long)times.min_ns, (unsigned long long)times.median_ns,
           (unsigned long long)times.p99_ns, (unsigned long long)times.samples);
    fflush(stdout);
    return 0;
}

static size_t greatest(const size_t *sizes, int count)
{
    size_t most = 0;

    for (int i = 0; i < count; i++)
        if (sizes[i] > most) most = sizes[i];
    return most;
}

int peer_measure(const struct peer *peer, const struct peer_request *request)
{
    /* Room for a size that grew to one element per peer; page-aligned, as weft's own memory is. */
    size_t room = greatest(request->sizes, request->size_count) / 4096 * 4096 + 65536;
    struct call call = {.peer = peer};
    int status = 0;

    call.send = aligned_alloc(4096, room);
    call.recv = aligned_alloc(4096, room);
    if (call.send == NULL || call.recv == NULL) status = BENCH_NO_MEMORY;
    for (int i = 0; status == 0 && i < request->size_count; i++)
        for (int op = 0; status == 0 && op < BENCH_OP_COUNT; op++) {
            size_t bytes = request->sizes[i];
            if (!request->wanted[op]) continue;
            call.op = (enum bench_op)op;
            call.count = bench_count(call.op, peer->ranks.size, sizeof(float), &bytes);
            status = measure_cell(peer, &call, bytes, request->budget_ms * 1000000ull);
        }
    free(call.send);
    free(call.recv);
    if (status != 0) fprintf(stderr, "%s: stopped with code %d\n", peer->name, status);
    return status == 0 ? 0 : 1;
}
