/* preload.c - a library that takes signals from the tool: a thread of it blocks none.
 *
 * With WEFT_TEST_TAKE_SIGCHLD the tool cannot handle SIGCHLD at all. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    static int (*next)(int, const struct sigaction *, struct sigaction *);

    if (next == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "sigaction");
        memcpy(&next, &symbol, sizeof symbol);
    }
    if (number == SIGCHLD && getenv("WEFT_TEST_TAKE_SIGCHLD") != NULL) action = NULL;
    return next(number, action, before);
}

static sem_t started;

static void *idle(void *argument)
{
    sigset_t none;

    (void)argument;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    sem_post(&started);
    for (;;)
        pause();
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;

    unsetenv("LD_PRELOAD"); /* the ranks do without */
    if (sem_init(&started, 0, 0) != 0 || pthread_create(&thread, NULL, idle, NULL) != 0) abort();
    /* A sanitizer holds locks while a thread starts, which a child of fork would find locked. */
    while (sem_wait(&started) != 0)
        continue;
}
