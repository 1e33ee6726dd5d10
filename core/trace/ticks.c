/* ticks.c - the processor's counter as a clock. */
#include "trace.h"

/* The counter is read before and after the clock.  The narrowest of some tries is taken, so that an
 * interrupt between the two does not shift the instant. */
struct wf_instant wf_instant_now(void)
{
    struct wf_instant best = {0, 0};
    uint64_t narrowest = UINT64_MAX;

    for (int i = 0; i < 5; i++) {
        uint64_t before = wf_ticks(), ns = wf_now_ns(), width = wf_ticks() - before;

        if (width >= narrowest) continue;
        narrowest = width;
        best = (struct wf_instant){before + width / 2, ns};
    }
    return best;
}

__extension__ typedef unsigned __int128 wide;

/* Without signed numbers of 128 bits, whose overflow checks some compilers leave to a library. */
uint64_t wf_ticks_convert(struct wf_instant first, struct wf_instant last, uint64_t ticks)
{
    bool before = ticks < first.ticks;
    uint64_t apart = before ? first.ticks - ticks : ticks - first.ticks, ns;

    if (ticks == 0) return 0;
    if (last.ticks == first.ticks) return first.ns;
    ns = (uint64_t)((wide)apart * (last.ns - first.ns) / (last.ticks - first.ticks));
    return before ? first.ns - ns : first.ns + ns;
}

static pthread_once_t begun_once = PTHREAD_ONCE_INIT;
static struct wf_instant begun;

static void begin(void)
{
    begun = wf_instant_now();
}

struct wf_instant wf_instant_begun(void)
{
    pthread_once(&begun_once, begin);
    return begun;
}

#define APART_NS 1000000

struct wf_instant wf_instant_apart(struct wf_instant first)
{
    struct wf_instant last = wf_instant_now();

    while (last.ns - first.ns < APART_NS)
        last = wf_instant_now();
    return last;
}

/* The other end of the line that weft_ticks_to_ns uses.  It moves rarely, so that times of one
 * operation are converted by one line. */
static pthread_mutex_t line_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_instant line_end;

static struct wf_instant find_line_end(struct wf_instant first)
{
    struct wf_instant last;

    pthread_mutex_lock(&line_lock);
    if (line_end.ns == 0 || wf_now_ns() - first.ns > 2 * (line_end.ns - first.ns))
        line_end = wf_instant_apart(first);
    last = line_end;
    pthread_mutex_unlock(&line_lock);
    return last;
}

uint64_t weft_ticks_to_ns(uint64_t ticks)
{
    struct wf_instant first = wf_instant_begun();

    return ticks == 0 ? 0 : wf_ticks_convert(first, find_line_end(first), ticks);
}
