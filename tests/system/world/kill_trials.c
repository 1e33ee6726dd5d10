/* kill_trials.c - whoever is killed is named: `kill_trials kill|stop|chain TRIALS SEED`.
 *
 * A trial starts four ranks as a launcher without a rendezvous of its own would, waits until all
 * have joined, kills or stops one of them after a random time, and reads what the others say.  Each
 * of them must name that rank.  In a chain, the rank stops itself, and one rank waits for another
 * that waits for it.  A line on standard output tells a trial that failed; its seed is the one to
 * give for it alone, with one trial. */
#include "weft/weft.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, COUNT = 100, LIMIT_MS = 60000, LONGEST_US = 30000 };

/* ---- a rank ---- */

enum end { END_RELEASE, END_EXIT, END_AT_ONCE, ENDS };

static weft_status work(weft_context *ctx)
{
    weft_comm *world = weft_world(ctx), *part = NULL;
    static float in[COUNT], out[COUNT];
    weft_status status = WEFT_OK;

    for (int i = 0; status == WEFT_OK; i++) {
        status = weft_all_reduce(world, in, out, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
        if (status != WEFT_OK || i % 4 != 3) continue;
        status = weft_comm_split(world, weft_rank(ctx) % 2, 0, NULL, &part);
        for (int k = 0; status == WEFT_OK && k < 4; k++)
            status = weft_all_reduce(part, in, out, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
        if (status == WEFT_OK) weft_comm_release(&part);
    }
    return status;
}

/* Rank VICTIM stops.  Rank VICTIM + 1 waits for VICTIM + 2 in a communicator of these two, and
 * VICTIM + 2 waits for VICTIM in the world.  PATIENT: the pair's time limit is long, so the other
 * rank leaves before it expires. */
static weft_status work_in_chain(weft_context *ctx, int victim, bool patient)
{
    weft_subcomm_options options = {.struct_size = sizeof options};
    int place = (weft_rank(ctx) - victim + RANKS) % RANKS;
    weft_comm *world = weft_world(ctx), *part = NULL;
    static float in[COUNT], out[COUNT];
    weft_status status;

    if (patient) options.timeout_ns = INT64_C(30000000000);
    status = weft_comm_split(world, place == 1 || place == 2, 0, &options, &part);
    if (status == WEFT_OK) /* every rank has the pair */
        status = weft_all_reduce(world, in, out, COUNT, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
    if (status != WEFT_OK) return status;
    if (place == 0) raise(SIGSTOP);
    return weft_all_reduce(place == 1 ? part : world, in, out, COUNT, WEFT_DTYPE_F32,
                           WEFT_REDUCE_SUM, NULL);
}

/* CHAIN: -1, or the rank that stops itself, plus RANKS if the pair is patient. */
static int run_rank(enum end end, int chain)
{
    weft_context *ctx = NULL;
    weft_status status = weft_init(NULL, &ctx);

    if (status == WEFT_OK)
        status = chain < 0 ? work(ctx) : work_in_chain(ctx, chain % RANKS, chain >= RANKS);
    printf("%s: %s\n", weft_status_name(status), weft_last_error());
    fflush(stdout);
    if (end == END_AT_ONCE) _exit(1);
    if (end == END_RELEASE) weft_context_release(&ctx);
    return 1;
}

/* ---- a trial ---- */

struct stream {
    int fd; /* -1: ended */
    size_t length;
    char text[65536];
};

struct rank {
    pid_t pid;
    struct stream out, err;
};

static struct rank ranks[RANKS];
static const char *program;
static uint64_t state;

/* splitmix64 */
static uint64_t draw(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static bool spawn(int index, uint64_t seed, enum end end, int chain)
{
    struct rank *rank = &ranks[index];
    char run[64], end_text[8], chain_text[16];
    int out[2], err[2];

    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    snprintf(run, sizeof run, "%d-%llu", (int)getpid(), (unsigned long long)seed);
    snprintf(end_text, sizeof end_text, "%d", (int)end);
    snprintf(chain_text, sizeof chain_text, "%d", chain);
    rank->pid = fork();
    if (rank->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        set_number("RANK", index);
        set_number("LOCAL_RANK", index);
        set_number("WORLD_SIZE", RANKS);
        setenv("MASTER_ADDR", "127.0.0.1", 1);
        setenv("MASTER_PORT", "29500", 1);
        setenv("TORCHELASTIC_RUN_ID", run, 1);
        setenv("WEFT_LOG", "debug", 1);
        execl(program, program, "rank", end_text, chain_text, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    rank->out = (struct stream){.fd = out[0]};
    rank->err = (struct stream){.fd = err[0]};
    return rank->pid > 0;
}

static void take(struct stream *stream)
{
    size_t room = sizeof stream->text - 1 - stream->length;
    char dropped[4096];
    ssize_t got = room > 0 ? read(stream->fd, stream->text + stream->length, room)
                           : read(stream->fd, dropped, sizeof dropped);

    if (got > 0 && room > 0) stream->length += (size_t)got;
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
    close(stream->fd);
    stream->fd = -1;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool have_joined(int victim)
{
    (void)victim;
    for (int i = 0; i < RANKS; i++)
        if (strstr(ranks[i].err.text, "ranks have joined") == NULL) return false;
    return true;
}

static bool have_ended(int victim)
{
    for (int i = 0; i < RANKS; i++)
        if (i != victim && (ranks[i].out.fd >= 0 || ranks[i].err.fd >= 0)) return false;
    return true;
}

/* Read the output of the ranks until UNTIL returns true. */
static bool read_until(bool (*until)(int victim), int victim, uint64_t deadline_ms)
{
    while (!until(victim)) {
        struct pollfd fds[2 * RANKS];

        for (int i = 0; i < RANKS; i++) {
            fds[2 * i] = (struct pollfd){.fd = ranks[i].out.fd, .events = POLLIN};
            fds[2 * i + 1] = (struct pollfd){.fd = ranks[i].err.fd, .events = POLLIN};
        }
        if (now_ms() >= deadline_ms) return false;
        if (poll(fds, 2 * RANKS, 1000) <= 0) continue;
        for (int i = 0; i < RANKS; i++) {
            if (fds[2 * i].revents != 0) take(&ranks[i].out);
            if (fds[2 * i + 1].revents != 0) take(&ranks[i].err);
        }
    }
    return true;
}

static void end_all(void)
{
    for (int i = 0; i < RANKS; i++) {
        if (ranks[i].pid > 0) kill(ranks[i].pid, SIGKILL);
        if (ranks[i].pid > 0) waitpid(ranks[i].pid, NULL, 0);
        if (ranks[i].out.fd >= 0) close(ranks[i].out.fd);
        if (ranks[i].err.fd >= 0) close(ranks[i].err.fd);
        ranks[i].pid = 0;
    }
}

/* True if VICTIM is in a list such as "1 and 3 of 4". */
static bool lists(const char *list, int victim)
{
    char *end;

    for (; *list >= '0' && *list <= '9'; list = end) {
        if (strtol(list, &end, 10) == victim) return true;
        end += strncmp(end, " and ", 5) == 0 ? 5 : strspn(end, ", ");
    }
    return false;
}

/* True if the printed line is about VICTIM. */
static bool names(const char *line, int victim)
{
    if (strncmp(line, "ERR_PEER", 8) != 0 && strncmp(line, "ERR_TIMEOUT", 11) != 0) return false;
    for (const char *at = line; (at = strstr(at, "rank")) != NULL; at++)
        if (lists(at + (at[4] == 's' ? 6 : 5), victim)) return true;
    return false;
}

/* SIGNAL_NUMBER is 0 for a chain. */
static bool run_trial(uint64_t seed, int signal_number)
{
    int victim, delay_us, chain = signal_number == 0 ? (int)(seed % (2 * RANKS)) : -1;
    bool good = true;
    enum end end;

    state = seed;
    victim = (int)(signal_number == SIGKILL ? draw() % RANKS : seed % RANKS);
    end = (enum end)(draw() % ENDS);
    delay_us = (int)(draw() % LONGEST_US);
    if (draw() % 2 == 0) delay_us /= 10; /* during the creation of the world */
    for (int i = 0; good && i < RANKS; i++)
        good = spawn(i, seed, end, chain);
    good = good && read_until(have_joined, victim, now_ms() + LIMIT_MS);
    if (good && chain < 0) nanosleep(&(struct timespec){0, delay_us * 1000L}, NULL);
    if (good && chain < 0) kill(ranks[victim].pid, signal_number);
    good = good && read_until(have_ended, victim, now_ms() + LIMIT_MS);
    end_all();
    for (int i = 0; i < RANKS; i++)
        good = good && (i == victim || names(ranks[i].out.text, victim));
    if (good) return true;
    printf("seed %llu: rank %d got signal %d after %d us\n", (unsigned long long)seed, victim,
           signal_number, delay_us);
    for (int i = 0; i < RANKS; i++)
        if (i != victim) printf("  rank %d: %s\n", i, ranks[i].out.text);
    return false;
}

int main(int argc, char **argv)
{
    unsigned long trials;
    uint64_t first;
    int failed = 0, signal_number;

    if (argc == 4 && strcmp(argv[1], "rank") == 0)
        return run_rank((enum end)atoi(argv[2]), atoi(argv[3]));
    if (argc != 4) {
        fprintf(stderr, "usage: %s kill|stop|chain TRIALS SEED\n", argv[0]);
        return 2;
    }
    program = argv[0];
    signal_number = strcmp(argv[1], "stop") == 0    ? SIGSTOP
                    : strcmp(argv[1], "chain") == 0 ? 0
                                                    : SIGKILL;
    trials = strtoul(argv[2], NULL, 10);
    first = strtoull(argv[3], NULL, 10);
    for (unsigned long i = 0; i < trials; i++)
        if (!run_trial(first + i, signal_number)) failed++;
    printf("%s: %lu trials, seed %llu, %d failed\n", argv[1], trials, (unsigned long long)first,
           failed);
    return failed == 0 ? 0 : 1;
}
