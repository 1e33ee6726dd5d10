/* faults.c - a library to preload: one call that reads or writes a file goes wrong.
 *
 *     WEFT_TEST_FAULT=pwrite:3:EIO    the third pwrite fails
 *
 * Calls are pread, pwrite, fdatasync, fsync, fallocate, rename (renameat2), unlink (unlinkat), and
 * any (all of them together).  What happens is EIO, EINVAL, ENOSPC, short (half of the bytes), kill
 * (SIGKILL), late (the same after two seconds), stop (SIGSTOP; then the call succeeds), slow (it
 * takes three seconds more) or touch (the file changes first).  With 0 in place of 3, it happens at
 * every call.  A program can also call weft_test_fault when it wants the fault.
 */

/* The C library's headers must declare the functions that this file defines, not inline or rename
 * them. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum fault { NONE, FAIL, SHORT, TOUCH };

static char wanted[32], action[32];
static long number;
static atomic_long calls;

/* The fault becomes TEXT, and calls are counted from now on. */
void weft_test_fault(const char *text);
void weft_test_fault(const char *text)
{
    atomic_store(&calls, 0);
    sscanf(text, "%31[^:]:%ld:%31s", wanted, &number, action);
}

__attribute__((constructor)) static void read_fault(void)
{
    const char *text = getenv("WEFT_TEST_FAULT");

    if (text != NULL) weft_test_fault(text);
}

/* What happens at this call of NAME. */
static enum fault next(const char *name)
{
    if (strcmp(wanted, name) != 0 && strcmp(wanted, "any") != 0) return NONE;
    if (atomic_fetch_add(&calls, 1) + 1 != number && number != 0) return NONE;
    if (strcmp(action, "late") == 0) sleep(2); /* other threads go on */
    if (strcmp(action, "kill") == 0 || strcmp(action, "late") == 0) raise(SIGKILL);
    if (strcmp(action, "stop") == 0) return raise(SIGSTOP) == 0 ? NONE : FAIL;
    if (strcmp(action, "slow") == 0) return sleep(3) == 0 ? NONE : FAIL;
    if (strcmp(action, "short") == 0) return SHORT;
    if (strcmp(action, "touch") == 0) return TOUCH;
    errno = strcmp(action, "ENOSPC") == 0 ? ENOSPC : strcmp(action, "EINVAL") == 0 ? EINVAL : EIO;
    return FAIL;
}

static void touch(int fd)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 12345}};

    if (futimens(fd, times) != 0) abort();
}

static void *real(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL) abort();
    return function;
}

typedef ssize_t read_function(int, void *, size_t, off_t);
typedef ssize_t write_function(int, const void *, size_t, off_t);
typedef int sync_function(int);
typedef int allocate_function(int, int, off_t, off_t);
typedef int rename_function(int, const char *, int, const char *, unsigned);
typedef int unlink_function(int, const char *, int);

/* dlsym returns an object pointer. */
#define REAL(type, name)                                                                           \
    type *function;                                                                                \
    void *found = real(name);                                                                      \
    memcpy(&function, &found, sizeof function)

static ssize_t read_faulty(int fd, void *buffer, size_t count, off_t offset)
{
    enum fault fault = next("pread");
    REAL(read_function, "pread");

    if (fault == FAIL) return -1;
    if (fault == TOUCH) touch(fd);
    return function(fd, buffer, fault == SHORT ? (count + 1) / 2 : count, offset);
}

static ssize_t write_faulty(int fd, const void *buffer, size_t count, off_t offset)
{
    enum fault fault = next("pwrite");
    REAL(write_function, "pwrite");

    if (fault == FAIL) return -1;
    return function(fd, buffer, fault == SHORT ? (count + 1) / 2 : count, offset);
}

static int sync_faulty(const char *name, int fd)
{
    REAL(sync_function, name);

    return next(name) == FAIL ? -1 : function(fd);
}

static int allocate_faulty(int fd, int mode, off_t offset, off_t count)
{
    REAL(allocate_function, "fallocate");

    return next("fallocate") == FAIL ? -1 : function(fd, mode, offset, count);
}

ssize_t pread(int fd, void *buffer, size_t count, off_t offset)
{
    return read_faulty(fd, buffer, count, offset);
}

ssize_t pread64(int fd, void *buffer, size_t count, off_t offset)
{
    return read_faulty(fd, buffer, count, offset);
}

ssize_t pwrite(int fd, const void *buffer, size_t count, off_t offset)
{
    return write_faulty(fd, buffer, count, offset);
}

ssize_t pwrite64(int fd, const void *buffer, size_t count, off_t offset)
{
    return write_faulty(fd, buffer, count, offset);
}

/* What callers built with _FORTIFY_SOURCE call, where SIZE bytes of the buffer are known. */
ssize_t __pread_chk(int fd, void *buffer, size_t count, off_t offset, size_t size);
ssize_t __pread64_chk(int fd, void *buffer, size_t count, off_t offset, size_t size);

ssize_t __pread_chk(int fd, void *buffer, size_t count, off_t offset, size_t size)
{
    if (count > size) abort();
    return read_faulty(fd, buffer, count, offset);
}

ssize_t __pread64_chk(int fd, void *buffer, size_t count, off_t offset, size_t size)
{
    return __pread_chk(fd, buffer, count, offset, size);
}

int fsync(int fd)
{
    return sync_faulty("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_faulty("fdatasync", fd);
}

int fallocate(int fd, int mode, off_t offset, off_t count)
{
    return allocate_faulty(fd, mode, offset, count);
}

int fallocate64(int fd, int mode, off_t offset, off_t count)
{
    return allocate_faulty(fd, mode, offset, count);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    REAL(rename_function, "renameat2");

    return next("rename") == FAIL ? -1 : function(from, old, to, new, flags);
}

int unlinkat(int folder, const char *name, int flags)
{
    REAL(unlink_function, "unlinkat");

    return next("unlink") == FAIL ? -1 : function(folder, name, flags);
}
