/* signals.h - kernels that set a word of another rank's memory, or wait for a word of this rank's
 * memory. */
#ifndef WEFT_KERNELS_SIGNALS_H
#define WEFT_KERNELS_SIGNALS_H

#include "onesided.h"

WK_KERNEL(weft_signal, struct wk_signal_args)
{
    WK_EACH_THREAD(t)
    {
        if (t == 0) {
            wk_fence();
            if (args.op == WK_SIGNAL_ADD)
                wk_add_shared((uint64_t *)args.address, args.value);
            else
                wk_store((uint64_t *)args.address, args.value);
        }
    }
}

WK_DEVICE bool wk_compares(uint64_t seen, uint32_t compare, uint64_t value)
{
    switch (compare) {
    case WK_EQ:
        return seen == value;
    case WK_NE:
        return seen != value;
    case WK_GE:
        return seen >= value;
    case WK_GT:
        return seen > value;
    case WK_LE:
        return seen <= value;
    default:
        return seen < value;
    }
}

WK_KERNEL(weft_await_signal, struct wk_signal_args)
{
    WK_EACH_THREAD(t)
    {
        if (t == 0) {
            const uint64_t *signal = (const uint64_t *)args.address;
            uint64_t seen = wk_load(signal), began = wk_clock_ns();
            for (uint32_t round = 0; !wk_compares(seen, args.compare, args.value); round++) {
                if (!wk_go_on(args.channel, wk_awaited{WK_NO_SIGNAL, args.signal, seen, args.value},
                              nullptr, began, round))
                    break;
                seen = wk_load(signal);
            }
        }
    }
}

#endif
