/* pace.c - ticks -> nanoseconds.  Each renewal measures the clock.  A line that is late jumps to
 * the clock.  A line that is ahead is followed by one that meets the clock at the next renewal, so
 * times never go back. */
#include "export.h"

#define FIRST_NS   (4u * 1000 * 1000)
#define LONGEST_NS (500u * 1000 * 1000)

__extension__ typedef __int128 wide;

static uint64_t scale_of(wide ns, wide ticks)
{
    return ticks > 0 && ns > 0 ? (uint64_t)((ns << 32) / ticks) : 1;
}

static void set_renewal(struct wf_pace *pace)
{
    wide ticks = ((wide)pace->interval_ns << 32) / (wide)pace->scale;

    pace->renew_ticks = pace->ticks + (uint64_t)ticks;
}

void wf_pace_begin(struct wf_pace *pace)
{
    struct wf_instant now;

    pace->first = wf_instant_begun();
    now = wf_instant_apart(pace->first);
    pace->ticks = now.ticks;
    pace->ns = now.ns;
    pace->scale =
        scale_of((wide)now.ns - (wide)pace->first.ns, (wide)now.ticks - (wide)pace->first.ticks);
    pace->interval_ns = FIRST_NS;
    set_renewal(pace);
}

void wf_pace_renew(struct wf_pace *pace)
{
    struct wf_instant now = wf_instant_now();
    uint64_t ns, line;
    wide rate, ticks, target;

    if (now.ticks <= pace->ticks || now.ticks <= pace->first.ticks) return;
    line = pace->ns + wf_pace_scale(now.ticks - pace->ticks, pace->scale);
    ns = now.ns;
    if (line < ns) line = ns; /* forward at once, back by a slower line */
    rate = (wide)scale_of((wide)now.ns - (wide)pace->first.ns,
                          (wide)now.ticks - (wide)pace->first.ticks);
    pace->interval_ns = pace->interval_ns < LONGEST_NS / 4 ? 4 * pace->interval_ns : LONGEST_NS;
    ticks = ((wide)pace->interval_ns << 32) / rate;
    target = (wide)ns + (wide)pace->interval_ns - (wide)line;
    pace->ticks = now.ticks;
    pace->ns = line;
    pace->scale = scale_of(target, ticks);
    set_renewal(pace);
}

uint64_t wf_pace_invert(const struct wf_pace *pace, uint64_t ns)
{
    bool back = ns < pace->ns;
    wide since = back ? (wide)pace->ns - (wide)ns : (wide)ns - (wide)pace->ns;
    uint64_t ticks = (uint64_t)((since << 32) / (wide)pace->scale);

    return back ? pace->ticks - ticks : pace->ticks + ticks;
}
