/* fork.c - closes descriptors in forks of this process, and refuses the use of its objects there.
 */
#include "fork.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* No process has more descriptors, unless the kernel's fs.nr_open was raised. */
#define MAX_FDS (1 << 20)

_Atomic uint32_t wf_generation;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below; held during a fork */
static uint64_t kept[MAX_FDS / 64];                      /* a bit for each descriptor */
static int beyond;                                       /* all that are kept are below it */
static bool begun;                                       /* this process has begun a context */
static bool inherited; /* this process is a fork of one that had */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static bool take_out(int fd)
{
    uint64_t bit = UINT64_C(1) << (fd % 64);
    bool was_kept = fd < MAX_FDS && (kept[fd / 64] & bit) != 0;

    if (was_kept) kept[fd / 64] &= ~bit;
    return was_kept;
}

static void in_child(void)
{
    for (int fd = 0; fd < beyond; fd++) {
        if (kept[fd / 64] == 0)
            fd |= 63; /* the last of these 64 */
        else if (take_out(fd))
            close(fd);
    }
    beyond = 0;
    inherited = inherited || begun;
    begun = false;
    atomic_fetch_add(&wf_generation, 1);
    pthread_mutex_unlock(&lock);
}

/* If memory for the handlers is missing, only the protection of forks is missing. */
static void watch(void)
{
    if (pthread_atfork(before_fork, in_parent, in_child) != 0)
        wf_log(WF_LOG_WARNING,
               "out of memory: a fork of this process will keep its connections open");
}

weft_status wf_fork_enter(void)
{
    bool refused;

    pthread_once(&once, watch);
    pthread_mutex_lock(&lock);
    refused = inherited;
    begun = begun || !refused;
    pthread_mutex_unlock(&lock);
    return refused ? wf_fail_fork("weft_init") : WEFT_OK;
}

/* ---- descriptors ---- */

/* The lock is held. */
static int put_in(int fd)
{
    if (fd >= MAX_FDS) {
        close(fd);
        errno = EMFILE;
        return -1;
    }
    if (fd < 0) return fd;
    kept[fd / 64] |= UINT64_C(1) << (fd % 64);
    if (fd >= beyond) beyond = fd + 1;
    return fd;
}

void wf_fd_hold(void)
{
    pthread_once(&once, watch);
    pthread_mutex_lock(&lock);
}

int wf_fd_keep(int fd)
{
    int why;

    fd = put_in(fd);
    why = errno;
    pthread_mutex_unlock(&lock);
    errno = why;
    return fd;
}

int wf_fd_keep_pair(int code, int fds[2])
{
    int why;

    if (code == 0 && put_in(fds[0]) < 0) {
        close(fds[1]);
        errno = EMFILE;
        code = -1;
    } else if (code == 0 && put_in(fds[1]) < 0) {
        (void)take_out(fds[0]);
        close(fds[0]);
        errno = EMFILE;
        code = -1;
    }
    why = errno;
    pthread_mutex_unlock(&lock);
    errno = why;
    return code;
}

int wf_fd_close(int fd)
{
    int code, why;

    pthread_mutex_lock(&lock);
    (void)take_out(fd);
    code = close(fd);
    why = errno;
    pthread_mutex_unlock(&lock);
    errno = why;
    return code;
}
