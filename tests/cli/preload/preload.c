/* preload.c - a library that takes signals from the tool: a thread of it blocks none.
 *
 * With WEFT_TEST_TAKE_SIGCHLD the tool cannot handle SIGCHLD at all. */
#include <dlfcn.h>
#include <pthread.h>
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

static void *idle(void *argument)
{
    sigset_t none;

    (void)argument;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    for (;;)
        pause();
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;

    unsetenv("LD_PRELOAD"); /* the ranks do without */
    if (pthread_create(&thread, NULL, idle, NULL) != 0) abort();
}
