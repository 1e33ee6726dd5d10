/* ucx_library.c - opens UCX, and is the table of the carrier. */
#include "ucx.h"

#include "network/carriers.h"
#include "plug_host.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

struct ucx_functions ucx;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static weft_status opened;
static char why_not[1024], version[64];
static _Atomic(int) user; /* the process that has made groups */

static const struct net_carrier carrier = {
    .version = NET_VERSION,
    .library = version,
    .listen = ucx_listen,
    .address_bytes = ucx_address_bytes,
    .address = ucx_address,
    .connect = ucx_connect,
    .close = ucx_close,
    .abort = ucx_abort,
    .start = ucx_start,
    .wait = ucx_work_wait,
    .hang_up = ucx_hang_up,
    .read_notice = ucx_read_notice,
    .transport = ucx_transport,
    .await = ucx_await,
    .end_await = ucx_end_await,
};

/* Loading UCX replaces handlers of signals such as SIGSEGV and SIGHUP.  They are the program's. */
static void *open_quietly(const char *file)
{
    struct sigaction before[NSIG], now;
    void *library;

    for (int number = 1; number < NSIG; number++)
        if (sigaction(number, NULL, &before[number]) != 0) before[number].sa_handler = SIG_ERR;
    library = net_open_library(file, why_not, sizeof why_not);
    for (int number = 1; number < NSIG; number++)
        if (before[number].sa_handler != SIG_ERR && sigaction(number, NULL, &now) == 0 &&
            now.sa_handler != before[number].sa_handler)
            (void)sigaction(number, &before[number], NULL);
    return library;
}

static bool find_functions(void *library)
{
#define UCX_FIND(name)                                                                             \
    *(void **)&ucx.name = dlsym(library, #name);                                                   \
    if (ucx.name == NULL) {                                                                        \
        snprintf(why_not, sizeof why_not, "it has no function " #name);                            \
        return false;                                                                              \
    }
    UCX_FUNCTIONS(UCX_FIND)
#undef UCX_FIND
    return true;
}

static void open_library(void)
{
    const char *given = plug_knob("WEFT_UCX_LIB"), *file = given != NULL ? given : "libucp.so.0";
    void *library = open_quietly(file);
    unsigned major, minor, release;

    opened = WEFT_ERR_NO_LIBRARY;
    if (library == NULL || !find_functions(library)) return;
    ucx.ucp_get_version(&major, &minor, &release);
    snprintf(version, sizeof version, "UCX %u.%u.%u", major, minor, release);
    opened = WEFT_ERR_OLD_LIBRARY;
    if (major != UCP_API_MAJOR || minor < UCP_API_MINOR)
        snprintf(why_not, sizeof why_not, "%s has version %u.%u; expected %d.%d or a later %d",
                 file, major, minor, UCP_API_MAJOR, UCP_API_MINOR, UCP_API_MAJOR);
    else
        opened = WEFT_OK;
}

void ucx_library_is_used(void)
{
    atomic_store(&user, (int)getpid());
}

weft_status net_ucx(const struct net_carrier **out)
{
    int process = atomic_load(&user);

    pthread_once(&once, open_library);
    if (opened != WEFT_OK) return plug_fail(opened, "UCX cannot be used: %s", why_not);
    if (process != 0 && process != (int)getpid())
        return plug_fail(WEFT_ERR_UNSUPPORTED,
                         "UCX cannot be used: process %d has used it and then forked this one",
                         process);
    *out = &carrier;
    return WEFT_OK;
}
