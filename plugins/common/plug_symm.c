/* plug_symm.c - see plug_symm.h. */
#include "plug_symm.h"

weft_status plug_check_peer(const char *call, int32_t peer, int32_t size)
{
    if (peer >= 0 && peer < size) return WEFT_OK;
    return plug_fail(WEFT_ERR_INVALID, "%s: peer is %d; the communicator has %d ranks", call,
                     (int)peer, (int)size);
}

weft_status plug_check_span(const char *call, uint64_t offset, uint64_t bytes,
                            uint64_t window_bytes)
{
    if (offset <= window_bytes && bytes <= window_bytes - offset) return WEFT_OK;
    return plug_fail(WEFT_ERR_INVALID,
                     "%s: %llu bytes at offset %llu reach beyond the window of %llu bytes", call,
                     (unsigned long long)bytes, (unsigned long long)offset,
                     (unsigned long long)window_bytes);
}

weft_status plug_check_signal(const char *call, uint32_t signal, uint32_t op, uint32_t count)
{
    if (op > WEFT_SIGNAL_ADD)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "%s: signal operation %u is unknown", call, op);
    if (signal < count) return WEFT_OK;
    return plug_fail(WEFT_ERR_INVALID, "%s: signal is %u; the window has %u signals", call, signal,
                     count);
}

weft_status plug_check_compare(const char *call, uint32_t compare)
{
    if (compare <= WEFT_COMPARE_LT) return WEFT_OK;
    return plug_fail(WEFT_ERR_UNSUPPORTED, "%s: comparison %u is unknown", call, compare);
}

weft_status plug_check_memory(const char *call, const void *memory, uint64_t bytes)
{
    if (bytes == 0 || memory != NULL) return WEFT_OK;
    return plug_fail(WEFT_ERR_INVALID, "%s: the memory is NULL, but bytes is %llu", call,
                     (unsigned long long)bytes);
}

weft_status plug_check_same_window(struct plug_window_request a, struct plug_window_request b)
{
    if (a.bytes == b.bytes && a.signals == b.signals) return WEFT_OK;
    return plug_fail(WEFT_ERR_MISMATCH,
                     "window: rank %d asks for %llu bytes and %u signals, rank %d for %llu bytes "
                     "and %u signals",
                     (int)a.rank, (unsigned long long)a.bytes, a.signals, (int)b.rank,
                     (unsigned long long)b.bytes, b.signals);
}

weft_status plug_check_same_windows(const struct plug_window_request *first, size_t stride,
                                    int32_t count)
{
    for (int32_t i = 1; i < count; i++)
        PLUG_TRY(plug_check_same_window(
            *first, *(const struct plug_window_request *)(const void *)((const char *)first +
                                                                        (size_t)i * stride)));
    return WEFT_OK;
}
