/* cpu_process.c - identity of a process, whether it still runs, and its number of processors. */
#include "cpu.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static pthread_mutex_t self_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cpu_process self;

weft_status cpu_random(void *out, size_t bytes)
{
    unsigned char *at = out;

    while (bytes > 0) {
        ssize_t got = getrandom(at, bytes, 0);

        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return plug_fail_errno(WEFT_ERR_SYSTEM, errno, "getrandom failed");
        at += got;
        bytes -= (size_t)got;
    }
    return WEFT_OK;
}

/* State and start time from /proc/PID/stat.  The name in it may hold blanks and parentheses, so
 * reading starts after the last one. */
static bool read_stat(int32_t pid, char *state, uint64_t *start)
{
    char path[64], line[1024];
    const char *at;
    char *end;
    size_t length;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL) return false;
    length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    at = strrchr(line, ')');
    if (at == NULL || at[1] != ' ') return false;
    *state = at[2];
    at += 3;
    for (int field = 4; field < 22 && at != NULL; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL) return false;
    *start = strtoull(at, &end, 10);
    return end != at;
}

weft_status cpu_process_self(struct cpu_process *out)
{
    weft_status status = WEFT_OK;
    char state;

    pthread_mutex_lock(&self_lock);
    if (self.pid != getpid()) {
        status = cpu_random(self.token, sizeof self.token);
        if (status == WEFT_OK) {
            self.pid = getpid();
            if (!read_stat(self.pid, &state, &self.start)) self.start = 0;
        }
    }
    if (status == WEFT_OK) *out = self;
    pthread_mutex_unlock(&self_lock);
    return status;
}

bool cpu_process_same(const struct cpu_process *a, const struct cpu_process *b)
{
    return a->token[0] == b->token[0] && a->token[1] == b->token[1];
}

bool cpu_process_alive(const struct cpu_process *process)
{
    uint64_t start;
    char state;

    if (read_stat(process->pid, &state, &start))
        return state != 'Z' && state != 'X' && (process->start == 0 || start == process->start);
    return kill(process->pid, 0) == 0 || errno == EPERM;
}

/* "max 100000" or "150000 100000": microseconds per period. */
static int quota_processors(void)
{
    char line[64];
    long quota, period;
    int count = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");

    if (file == NULL) return 0;
    if (fgets(line, sizeof line, file) != NULL && sscanf(line, "%ld %ld", &quota, &period) == 2 &&
        period > 0)
        count = (int)((quota + period - 1) / period);
    fclose(file);
    return count;
}

int cpu_processors(void)
{
    static atomic_int known;
    cpu_set_t set;
    int count = atomic_load_explicit(&known, memory_order_relaxed), quota;

    if (count > 0) return count;
    quota = quota_processors();
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        count = CPU_COUNT(&set);
    else
        count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (quota > 0 && quota < count) count = quota;
    if (count < 1) count = 1;
    atomic_store_explicit(&known, count, memory_order_relaxed);
    return count;
}
