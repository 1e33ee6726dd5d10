/* onesided_move.h - operations on the memory of peers: reads of regions, copies of parts,
 * reductions, messages. */
#ifndef WEFT_KERNELS_ONESIDED_MOVE_H
#define WEFT_KERNELS_ONESIDED_MOVE_H

#include "elements.h"
#include "onesided.h"
#include "regions.h"
#include "regions_cast.h"

/* No work between begin and end: opens or closes an operation for other kernels, or is a
 * barrier. */
struct wk_sync_args {
    struct wk_sync sync;
};
WK_SYNC_KERNEL(weft_sync, wk_sync_args, (void)table)

/* This rank takes part in no further operation. */
WK_KERNEL(weft_decline, struct wk_decline_args)
{
    wk_follow();
    if (wk_has_failed(args.channel)) return;
    WK_EACH_THREAD(t)
    {
        if (t == 0) wk_decline(args.channel, args.word);
    }
}

/* ---- pull: regions read from peers ---- */

/* The arguments as the kernels of regions.h read them. */
struct wk_pull_view {
    const struct wk_region *regions;
    struct wk_table buffers;
    uint32_t reduction, size, word, divisor, to;
};
WK_DEVICE struct wk_pull_view wk_view(const struct wk_pull_args &args, const uint64_t *table)
{
    return wk_pull_view{args.regions, wk_table{table}, args.reduction, args.size,
                        args.word,    args.divisor,    args.to};
}

/* The tiles of a block, shared by its threads.  Multiprocessors differ in speed, most of all if
 * several ranks share a device, and the slowest one's last tile ends the operation on all ranks.  A
 * block therefore has two tiles of its own and takes more from a common counter.  It fetches one
 * tile ahead, which hides the latency of the counter. */
struct wk_work {
    alignas(16) struct wk_tile tile[2];
    uint32_t number[2];
};

/* Fetch tile NUMBER, if it exists, to position AT.  It is valid after wk_fetched. */
WK_DEVICE void wk_fetch_tile(const struct wk_pull_args &args, struct wk_work &mine, uint32_t at,
                             uint32_t number)
{
    uint32_t turned = number + args.first;

    mine.number[at] = number;
    if (number < args.count)
        wk_fetch16(&mine.tile[at], &args.tiles[turned < args.count ? turned : turned - args.count]);
}

/* The number of a tile that no other block has. */
WK_DEVICE uint32_t wk_take_tile(const struct wk_pull_args &args)
{
    if (2 * args.blocks >= args.count) return args.count;
    return 2 * args.blocks + wk_count_up(&wk_own(args.sync.channel)->taken[args.pull]);
}

/* Run WORK with mine.tile[now] for each tile of this block. */
#define WK_EACH_TILE(work)                                                                         \
    do {                                                                                           \
        WK_SHARED struct wk_work mine;                                                             \
        uint32_t now = 0;                                                                          \
        WK_EACH_THREAD(t)                                                                          \
        {                                                                                          \
            if (t < 2) wk_fetch_tile(args, mine, t, wk_block() + t * args.blocks);                 \
            if (t < 2) wk_fetched();                                                               \
        }                                                                                          \
        WK_BARRIER();                                                                              \
        while (mine.number[now] < args.count) {                                                    \
            uint32_t next = args.count;                                                            \
            WK_EACH_THREAD(t)                                                                      \
            {                                                                                      \
                if (t == 0) next = wk_take_tile(args);                                             \
            }                                                                                      \
            work;                                                                                  \
            WK_EACH_THREAD(t)                                                                      \
            {                                                                                      \
                if (t == 0) wk_fetched();                                                          \
            }                                                                                      \
            WK_BARRIER();                                                                          \
            WK_EACH_THREAD(t)                                                                      \
            {                                                                                      \
                if (t == 0) wk_fetch_tile(args, mine, now, next);                                  \
            }                                                                                      \
            now ^= 1;                                                                              \
        }                                                                                          \
    } while (0)

template <uint32_t Bytes>
WK_DEVICE void wk_pull_copy(const struct wk_pull_args &args, const uint64_t *table)
{
    const struct wk_pull_view view = wk_view(args, table);

    WK_EACH_TILE(wk_copy_block<Bytes>(view, mine.tile[now]));
}

#define WK_PULL(bytes)                                                                             \
    WK_SYNC_KERNEL(weft_pull_##bytes, wk_pull_args, (wk_pull_copy<bytes>(args, table)))
WK_PULL(1)
WK_PULL(2)
WK_PULL(4)
WK_PULL(8)
WK_PULL(16)

template <uint32_t Bytes>
WK_DEVICE void wk_pull_turned(const struct wk_pull_args &args, const uint64_t *table)
{
    constexpr uint32_t side = wk_side<Bytes>;
    WK_SHARED typename wk_word<Bytes>::type turned[side][side + 1];
    const struct wk_pull_view view = wk_view(args, table);

    WK_EACH_TILE(
        wk_transpose_block<Bytes>(view, wk_bits<struct wk_transpose_tile>(mine.tile[now]), turned));
}

#define WK_PULL_TURNED(bytes)                                                                      \
    WK_SYNC_KERNEL(weft_pull_turned_##bytes, wk_pull_args, (wk_pull_turned<bytes>(args, table)))
WK_PULL_TURNED(1)
WK_PULL_TURNED(2)
WK_PULL_TURNED(4)
WK_PULL_TURNED(8)
WK_PULL_TURNED(16)

template <class D>
WK_DEVICE void wk_pull_reduce(const struct wk_pull_args &args, const uint64_t *table)
{
    const struct wk_pull_view view = wk_view(args, table);

    WK_EACH_TILE((wk_regions_reduce<D, D>(view, mine.tile[now])));
}

#define WK_PULL_REDUCE(name)                                                                       \
    WK_SYNC_KERNEL(weft_pull_reduce_##name, wk_pull_args, (wk_pull_reduce<wk_##name>(args, table)))

/* Each element, or its reduction, becomes one of dtype args.to. */
template <class From>
WK_DEVICE void wk_pull_cast(const struct wk_pull_args &args, const uint64_t *table)
{
    const struct wk_pull_view view = wk_view(args, table);

    if (args.size > 1)
        WK_EACH_TILE(wk_reduce_cast<From>(view, mine.tile[now]));
    else
        WK_EACH_TILE(wk_regions_cast<From>(view, mine.tile[now]));
}

#define WK_PULL_CAST(name, number)                                                                 \
    WK_SYNC_KERNEL(weft_pull_cast_##name, wk_pull_args, (wk_pull_cast<wk_##name>(args, table)))

/* ---- copies of parts ---- */

template <class Word>
WK_DEVICE void wk_move_words(uint64_t to, uint64_t from, uint64_t words, uint64_t first,
                             uint64_t step)
{
    for (uint64_t start = first; start < words; start += WK_BATCH * step) {
        Word value[WK_BATCH] = {};
        WK_UNROLL
        for (uint32_t i = 0; i < WK_BATCH; i++)
            if (start + i * step < words) value[i] = ((const Word *)from)[start + i * step];
        WK_UNROLL
        for (uint32_t i = 0; i < WK_BATCH; i++)
            if (start + i * step < words) ((Word *)to)[start + i * step] = value[i];
    }
}

/* Copy BYTES with STEP threads.  This thread has number FIRST. */
WK_DEVICE void wk_move_bytes(uint64_t to, uint64_t from, uint64_t bytes, uint64_t first,
                             uint64_t step)
{
    uint64_t bits = to | from, done = 0;

    if (to == from) return;
    if (bits % 16 == 0) {
        wk_move_words<wk_word16>(to, from, bytes / 16, first, step);
        done = bytes / 16 * 16;
    } else if (bits % 4 == 0) {
        wk_move_words<uint32_t>(to, from, bytes / 4, first, step);
        done = bytes / 4 * 4;
    } else if (bits % 2 == 0) {
        wk_move_words<uint16_t>(to, from, bytes / 2, first, step);
        done = bytes / 2 * 2;
    }
    wk_move_words<uint8_t>(to + done, from + done, bytes - done, first, step);
}

WK_DEVICE void wk_move_parts(const struct wk_move_args &args, const uint64_t *table)
{
    uint32_t part = wk_block() / args.per_part, within = wk_block() % args.per_part;
    uint64_t at = args.varied ? args.at[part] : part * args.step;
    uint64_t bytes = args.varied ? args.length[part] : args.bytes;

    WK_EACH_THREAD(t)
    {
        wk_move_bytes(table[0] + at, table[1 + args.first + part], bytes,
                      uint64_t(within) * WK_THREADS + t, uint64_t(args.per_part) * WK_THREADS);
    }
}
WK_SYNC_KERNEL(weft_move, wk_move_args, wk_move_parts(args, table))

/* ---- reductions ---- */

/* The reduction of element or pack INDEX of all sources. */
template <class D, uint32_t N>
WK_DEVICE wk_pack<typename D::bits, N> wk_reduced_at(const struct wk_gather_reduce_args &args,
                                                     const uint64_t *table, uint64_t index)
{
    using pack = wk_pack<typename D::bits, N>;
    typename D::number sum[N] = {};

    for (uint32_t k = 0; k < args.size; k++)
        wk_reduce_pack<D>(args, ((const pack *)table[1 + k])[index], k == 0, sum);
    return wk_finish<D>(sum);
}

/* The average of integers. */
template <class D, uint32_t N>
WK_DEVICE wk_pack<typename D::bits, N> wk_averaged_at(const struct wk_gather_reduce_args &args,
                                                      const uint64_t *table, uint64_t index)
{
    using pack = wk_pack<typename D::bits, N>;
    struct wk_wide sum[N] = {};

    for (uint32_t k = 0; k < args.size; k++)
        wk_sum_pack<D>(((const pack *)table[1 + k])[index], sum);
    return wk_average_pack<D>(sum, args.divisor);
}

template <class D, uint32_t N>
WK_DEVICE void wk_gather_reduce_at(const struct wk_gather_reduce_args &args, const uint64_t *table,
                                   uint64_t index)
{
    using pack = wk_pack<typename D::bits, N>;
    pack out;

    if constexpr (D::kind == WK_INTEGER)
        out = wk_is_wide<D>(args.reduction) ? wk_averaged_at<D, N>(args, table, index)
                                            : wk_reduced_at<D, N>(args, table, index);
    else
        out = wk_reduced_at<D, N>(args, table, index);
    if (args.pushes == 0) {
        ((pack *)table[0])[index] = out;
        return;
    }
    for (uint32_t k = 0; k < args.pushes; k++)
        ((pack *)table[1 + args.size + k])[index] = out;
}

template <class D>
WK_DEVICE void wk_gather_reduce(const struct wk_gather_reduce_args &args, const uint64_t *table)
{
    constexpr uint32_t wide = 16 / sizeof(typename D::bits);
    uint64_t bits = table[0] | args.begin * sizeof(typename D::bits);
    uint64_t step = uint64_t(args.sync.blocks) * WK_THREADS, packs = 0, first, begin;

    for (uint32_t k = 0; k < args.size + args.pushes; k++)
        bits |= table[1 + k];
    if (bits % 16 == 0) packs = (args.end - args.begin) / wide;
    first = args.begin / wide;
    begin = args.begin + packs * wide;
    WK_EACH_THREAD(t)
    {
        uint64_t thread = uint64_t(wk_block()) * WK_THREADS + t;
        for (uint64_t i = thread; i < packs; i += step)
            wk_gather_reduce_at<D, wide>(args, table, first + i);
        for (uint64_t i = begin + thread; i < args.end; i += step)
            wk_gather_reduce_at<D, 1>(args, table, i);
    }
}

#define WK_GATHER_REDUCE(name)                                                                     \
    WK_SYNC_KERNEL(weft_gather_reduce_##name, wk_gather_reduce_args,                               \
                   (wk_gather_reduce<wk_##name>(args, table)))

/* ---- messages ---- */

/* Runs in one thread, because messages to one peer are ordered. */
WK_DEVICE void wk_post_messages(const struct wk_post_args &args)
{
    struct wk_control *own = wk_own(args.channel);

    for (uint32_t i = 0; i < args.count; i++) {
        const struct wk_post_item &item = args.items[i];
        struct wk_post *here = &own->posts[item.peer];
        uint64_t number = here->sent + 1;
        struct wk_message *message =
            &wk_post_at(args.channel, item.peer)->messages[number % WK_MESSAGES];
        if (number > WK_MESSAGES &&
            !wk_await(args.channel, &here->taken, number - WK_MESSAGES, WK_NOT_TAKEN, item.peer))
            return;
        here->sent = number;
        wk_store_plainly(&message->address, item.address);
        wk_store_plainly(&message->bytes, item.bytes);
        wk_store(&message->number, number);
    }
}

WK_KERNEL(weft_post, struct wk_post_args)
{
    wk_follow();
    WK_EACH_THREAD(t)
    {
        if (t == 0 && !wk_has_failed(args.channel)) {
            if (args.settle != 1) wk_post_messages(args);
            for (uint32_t i = 0; i < args.count && args.settle != 0; i++) {
                const struct wk_post *here = &wk_own(args.channel)->posts[args.items[i].peer];
                wk_await(args.channel, &here->taken, here->sent, WK_NOT_TAKEN, args.items[i].peer);
            }
        }
    }
}

/* The address of the next message of ITEM's peer; 0 if this rank has timed out. */
WK_DEVICE uint64_t wk_await_message(const struct wk_channel &channel,
                                    const struct wk_fetch_item &item)
{
    const struct wk_post *post = &wk_own(channel)->posts[item.peer];
    uint64_t number = post->received + 1;
    const struct wk_message *message = &post->messages[number % WK_MESSAGES];

    if (wk_has_failed(channel) ||
        !wk_await(channel, &message->number, number, WK_NO_MESSAGE, item.peer))
        return 0;
    if (wk_load_plainly(&message->bytes) != item.bytes) {
        wk_give_up(channel, wk_awaited{WK_WRONG_BYTES, item.peer, wk_load_plainly(&message->bytes),
                                       item.bytes});
        return 0;
    }
    return channel.peers[item.peer].arena + wk_load_plainly(&message->address);
}

/* Runs in one thread, when all blocks have copied. */
WK_DEVICE void wk_message_end(const struct wk_fetch_args &args)
{
    struct wk_control *own = wk_own(args.channel);
    uint32_t peer = args.item.peer;

    if (wk_gave_up(args.channel, peer)) return;
    own->finished = 0;
    wk_store(&wk_post_at(args.channel, peer)->taken, ++own->posts[peer].received);
    if (args.is_chained != 0) *(uint64_t *)args.table = wk_await_message(args.channel, args.next);
}

WK_KERNEL(weft_fetch, struct wk_fetch_args)
{
    WK_SHARED uint64_t source[1];
    WK_SHARED uint32_t state[2];

    wk_follow();
    WK_EACH_THREAD(t)
    {
        if (t == 0 && (args.phases & WK_AWAIT) != 0)
            source[0] = wk_await_message(args.channel, args.item);
        if (t == 0 && (args.phases & WK_AWAIT) == 0)
            source[0] = wk_has_failed(args.channel) ? 0 : *(const uint64_t *)args.table;
    }
    WK_BARRIER();
    if (source[0] == 0) return;
    if ((args.phases & WK_KEEP) != 0) {
        WK_EACH_THREAD(t)
        {
            if (t == 0) *(uint64_t *)args.table = source[0];
        }
        return;
    }
    WK_EACH_THREAD(t)
    {
        wk_move_bytes(args.item.target, source[0], args.item.bytes,
                      uint64_t(wk_block()) * WK_THREADS + t, uint64_t(args.blocks) * WK_THREADS);
    }
    if (!wk_is_last(args.channel, args.blocks, state)) return;
    WK_EACH_THREAD(t)
    {
        if (t == 0) wk_message_end(args);
    }
}

#endif
