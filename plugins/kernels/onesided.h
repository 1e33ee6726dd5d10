/* onesided.h - begin and end of operations between ranks, inside kernels.
 *
 * Begin: the first block publishes this rank's data to its readers, and every block waits for the
 * ranks that it reads from.  End: the last block to finish notifies these ranks that this rank has
 * read its data, and waits for the same notice from its own readers.  After that no peer uses the
 * rank's memory.  If readers and sources are unknown, every rank counts as both.  Every notice is
 * waited for.  A rank therefore does not start a later operation while a peer still uses it in this
 * one, so one post per pair of ranks is enough, and no notice arrives after the last operation.
 *
 * Blocks that wait occupy their multiprocessor.  If the blocks of large kernels waited for peers,
 * kernels of two communicators could block each other on two devices permanently.  Blocks of large
 * kernels therefore do not wait for peers.  A kernel of a single block opens the operation first,
 * and at the end only the last block waits.  The large kernel may start before the single block has
 * ended, but only after that block has synchronized with all its peers.  The remaining wait depends
 * on no other rank. */
#ifndef WEFT_KERNELS_ONESIDED_H
#define WEFT_KERNELS_ONESIDED_H

#include "onesided_args.h"
#include "portable.h"

/* ---- memory that several ranks use ---- */

#if defined(__CUDACC__)

WK_DEVICE uint64_t wk_load(const uint64_t *from)
{
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}
WK_DEVICE uint64_t wk_load_plainly(const uint64_t *from)
{
    uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}
WK_DEVICE void wk_store(uint64_t *to, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
WK_DEVICE void wk_store_plainly(uint64_t *to, uint64_t value)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
WK_DEVICE void wk_add_shared(uint64_t *to, uint64_t value)
{
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
WK_DEVICE uint32_t wk_count_up(uint32_t *counter)
{
    return atomicAdd(counter, 1u);
}
WK_DEVICE bool wk_claim(uint64_t *flag)
{
    return atomicCAS((unsigned long long *)flag, 0ull, 1ull) == 0;
}
WK_DEVICE void wk_fence(void)
{
    __threadfence_system();
}
WK_DEVICE void wk_fence_device(void)
{
    __threadfence();
}
WK_DEVICE uint64_t wk_clock_ns(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
WK_DEVICE void wk_relax(uint32_t round)
{
    if (round > 200) __nanosleep(round > 2000 ? 500 : 40);
}

#else

WK_DEVICE uint64_t wk_load(const uint64_t *from)
{
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
WK_DEVICE uint64_t wk_load_plainly(const uint64_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}
WK_DEVICE void wk_store(uint64_t *to, uint64_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}
WK_DEVICE void wk_store_plainly(uint64_t *to, uint64_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELAXED);
}
WK_DEVICE void wk_add_shared(uint64_t *to, uint64_t value)
{
    __atomic_fetch_add(to, value, __ATOMIC_ACQ_REL);
}
WK_DEVICE uint32_t wk_count_up(uint32_t *counter)
{
    return __atomic_fetch_add(counter, 1u, __ATOMIC_ACQ_REL);
}
WK_DEVICE bool wk_claim(uint64_t *flag)
{
    return __atomic_exchange_n(flag, uint64_t(1), __ATOMIC_ACQ_REL) == 0;
}
WK_DEVICE void wk_fence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
WK_DEVICE void wk_fence_device(void)
{
    wk_fence();
}

#if defined(__HIP__)
WK_DEVICE uint64_t wk_clock_ns(void)
{
    return __builtin_amdgcn_s_memrealtime() * 10; /* 100 MHz */
}
WK_DEVICE void wk_relax(uint32_t round)
{
    if (round > 200) __builtin_amdgcn_s_sleep(8);
}
#else
extern "C" uint64_t wk_host_clock_ns(void);
extern "C" void wk_host_relax(uint32_t round);
WK_DEVICE uint64_t wk_clock_ns(void)
{
    return wk_host_clock_ns();
}
WK_DEVICE void wk_relax(uint32_t round)
{
    wk_host_relax(round);
}
#endif

#endif

/* ---- kernels that are launched before the preceding kernel has ended ---- */

/* Waits for the preceding kernels and their stores.  Call it before any access to memory. */
WK_DEVICE void wk_follow(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets the next kernel start.  That kernel calls wk_follow. */
WK_DEVICE void wk_be_followed(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

WK_DEVICE struct wk_control *wk_own(const struct wk_channel &channel)
{
    return (struct wk_control *)channel.control;
}

WK_DEVICE struct wk_control *wk_control_of(const struct wk_channel &channel, uint32_t peer)
{
    return (struct wk_control *)channel.peers[peer].control;
}

/* This rank's post in the control block of PEER. */
WK_DEVICE struct wk_post *wk_post_at(const struct wk_channel &channel, uint32_t peer)
{
    return &wk_control_of(channel, peer)->posts[channel.rank];
}

WK_DEVICE bool wk_has_failed(const struct wk_channel &channel)
{
    return wk_load_plainly(&wk_own(channel)->failed) != 0;
}

/* ---- waiting ---- */

struct wk_awaited {
    uint32_t reason, peer;
    uint64_t have, want;
};

/* Fail this rank with the reason AWAITED.  Only the first reason is kept. */
WK_DEVICE void wk_give_up(const struct wk_channel &channel, const struct wk_awaited &awaited)
{
    struct wk_report *report = (struct wk_report *)channel.report;

    if (!wk_claim(&wk_own(channel)->failed)) return;
    wk_store_plainly(&report->peer, awaited.peer);
    wk_store_plainly(&report->have, awaited.have);
    wk_store_plainly(&report->want, awaited.want);
    wk_store(&report->reason, awaited.reason);
}

/* Fail this rank with WORD as the reason for its peers.  Peers read it from this rank's memory,
 * because a store into their memory could arrive after they end the communicator. */
WK_DEVICE void wk_decline(const struct wk_channel &channel, uint64_t word)
{
    wk_store(&wk_own(channel)->declined, word);
    wk_give_up(channel, wk_awaited{WK_DECLINED, uint32_t(word & 0xffff) - 1, word, 0});
}

/* True if the awaited rank has declined and *FLAG is too small.  The rank stored all its posts
 * before it declined, so *FLAG does not change any more.  This rank declines with the same word. */
WK_DEVICE bool wk_peer_declined(const struct wk_channel &channel, const struct wk_awaited &awaited,
                                const uint64_t *flag)
{
    uint64_t word = wk_load(&wk_control_of(channel, awaited.peer)->declined);

    if (word == 0 || wk_load_plainly(flag) >= awaited.want) return false;
    wk_decline(channel, word);
    return true;
}

/* The same for a signal, which any rank may set.  The communicators of a window exist as long as
 * the window. */
WK_DEVICE bool wk_any_declined(const struct wk_channel &channel)
{
    for (uint32_t p = 0; channel.peers != nullptr && p < channel.size; p++) {
        uint64_t word = wk_load(&wk_control_of(channel, p)->declined);
        if (word == 0) continue;
        wk_decline(channel, word);
        return true;
    }
    return false;
}

/* Called repeatedly during a wait since BEGAN.  Returns false if the wait must end.  AWAITED.peer,
 * a rank, writes FLAG; FLAG is NULL for a signal. */
WK_DEVICE bool wk_go_on(const struct wk_channel &channel, const struct wk_awaited &awaited,
                        const uint64_t *flag, uint64_t began, uint32_t round)
{
    const struct wk_report *report = (const struct wk_report *)channel.report;

    wk_relax(round);
    if (round % 64 != 63) return true;
    if (wk_has_failed(channel)) return false;
    if (flag != nullptr ? wk_peer_declined(channel, awaited, flag) : wk_any_declined(channel))
        return false;
    if (wk_load_plainly(&report->abort) != 0) {
        wk_give_up(channel, wk_awaited{WK_WAS_ABORTED, awaited.peer, 0, 0});
        return false;
    }
    if (channel.timeout_ns == 0 || wk_clock_ns() - began < channel.timeout_ns) return true;
    wk_give_up(channel, awaited);
    return false;
}

/* Wait until *FLAG, which never decreases, is at least VALUE.  Stores before that store are then
 * visible.  Only the last load acquires, because an acquire invalidates caches.  A fence costs even
 * more. */
WK_DEVICE bool wk_await(const struct wk_channel &channel, const uint64_t *flag, uint64_t value,
                        uint32_t reason, uint32_t peer)
{
    uint64_t seen = wk_load_plainly(flag), began = 0;

    for (uint32_t round = 0; seen < value; round++) {
        if (round == 0) began = wk_clock_ns();
        if (!wk_go_on(channel, wk_awaited{reason, peer, seen, value}, flag, began, round))
            return false;
        seen = wk_load_plainly(flag);
    }
    return wk_load(flag) >= value;
}

/* ---- begin of an operation ---- */

/* True if PEER uses memory of this rank. */
WK_DEVICE bool wk_is_reader(const struct wk_sync &m, uint32_t peer)
{
    return !m.by_few || (m.readers >> peer & 1) != 0;
}

/* True if this rank uses memory of PEER. */
WK_DEVICE bool wk_is_source(const struct wk_sync &m, uint32_t peer)
{
    return !m.by_few || (m.sources >> peer & 1) != 0;
}

WK_DEVICE void wk_offer(const struct wk_sync &m, uint32_t thread, uint64_t operation)
{
    for (uint32_t i = thread; i < m.count; i += WK_THREADS) {
        uint32_t peer = m.first + i;
        struct wk_post *post = wk_post_at(m.channel, peer);
        if (!wk_is_reader(m, peer)) continue;
        wk_store_plainly(&post->send, m.varied ? m.offers[i] : m.send + peer * m.send_step);
        wk_store_plainly(&post->recv, m.recv);
        wk_store(&post->ready, operation);
    }
}

WK_DEVICE bool wk_look_up(const struct wk_sync &m, uint64_t *table, uint32_t thread,
                          uint64_t operation)
{
    for (uint32_t i = thread; i < m.listed; i += WK_THREADS) {
        uint32_t peer = m.in_order ? i : m.list[i];
        const struct wk_post *post = &wk_own(m.channel)->posts[peer];
        uint64_t arena = m.channel.peers[peer].arena;
        if (!wk_is_source(m, peer)) continue;
        if (!wk_await(m.channel, &post->ready, operation, WK_NOT_READY, peer)) return false;
        table[1 + m.place + i] = arena + wk_load_plainly(&post->send);
        if (m.pushes) table[1 + m.listed + i] = arena + wk_load_plainly(&post->recv);
    }
    if (thread == 0) table[0] = m.local;
    return true;
}

/* The table of addresses, or NULL if this rank has failed.  STATE is shared by the block. */
WK_DEVICE const uint64_t *wk_begin(const struct wk_sync &m, uint64_t *near, uint32_t *state)
{
    uint64_t *table = (m.phases & WK_KEEP) != 0 ? (uint64_t *)m.table : near;
    uint64_t operation;

    /* Plain loads are enough, because only earlier kernels and this kernel's last block write these
     * fields.  Acquiring loads would invalidate the cached regions in every block. */
    if ((m.phases & (WK_OFFER | WK_AWAIT)) == 0)
        return wk_own(m.channel)->failed != 0 ? nullptr : (const uint64_t *)m.table;
    if (wk_own(m.channel)->failed != 0) return nullptr;
    operation = wk_own(m.channel)->operation + 1;
    WK_EACH_THREAD(t)
    {
        if (t == 0) state[0] = 1;
        if ((m.phases & WK_OFFER) != 0 && wk_block() == 0) wk_offer(m, t, operation);
    }
    WK_BARRIER();
    WK_EACH_THREAD(t)
    {
        if ((m.phases & WK_AWAIT) != 0 && !wk_look_up(m, table, t, operation)) state[0] = 0;
    }
    WK_BARRIER();
    return state[0] != 0 ? table : nullptr;
}

/* ---- end of an operation ---- */

/* True if this block is the last one.  The work of all other blocks then happens before it.
 * Release is cumulative, so other devices that see this block's stores also see that work. */
WK_DEVICE bool wk_is_last(const struct wk_channel &channel, uint32_t blocks, uint32_t *state)
{
    WK_BARRIER();
    WK_EACH_THREAD(t)
    {
        if (t == 0) {
            wk_fence_device();
            state[1] = wk_count_up(&wk_own(channel)->finished) + 1 == blocks;
            wk_fence_device();
        }
    }
    WK_BARRIER();
    return state[1] != 0;
}

/* True if PEER has failed after this rank read from it.  A failed rank does not wait for readers,
 * so the data may be invalid, and this rank fails too. */
WK_DEVICE bool wk_gave_up(const struct wk_channel &channel, uint32_t peer)
{
    const struct wk_control *source = wk_control_of(channel, peer);
    uint64_t word;

    if (wk_load(&source->failed) == 0) return false;
    word = wk_load(&source->declined);
    if (word != 0)
        wk_decline(channel, word);
    else
        wk_give_up(channel, wk_awaited{WK_GAVE_UP, peer, 0, 0});
    return true;
}

WK_DEVICE void wk_end(const struct wk_sync &m, uint32_t *state)
{
    struct wk_control *own = wk_own(m.channel);
    uint64_t operation = own->operation + 1;

    if ((m.phases & WK_CLOSE) == 0 || !wk_is_last(m.channel, m.blocks, state)) return;
    WK_EACH_THREAD(t) /* if all ranks wait for all ranks, the wait below detects this */
    {
        for (uint32_t p = t; p < m.channel.size && m.by_few; p += WK_THREADS)
            if (wk_is_source(m, p) && wk_gave_up(m.channel, p)) state[1] = 0;
    }
    WK_BARRIER();
    if (state[1] == 0) return;
    WK_EACH_THREAD(t)
    {
        for (uint32_t p = t; p < m.channel.size && (m.phases & WK_FREELY) == 0; p += WK_THREADS)
            if (wk_is_source(m, p)) wk_store(&wk_post_at(m.channel, p)->done, operation);
    }
    WK_BARRIER();
    WK_EACH_THREAD(t)
    {
        for (uint32_t p = t; p < m.channel.size && (m.phases & WK_FREELY) == 0; p += WK_THREADS)
            if (wk_is_reader(m, p))
                wk_await(m.channel, &own->posts[p].done, operation, WK_NOT_DONE, p);
    }
    WK_BARRIER();
    WK_EACH_THREAD(t)
    {
        if (t == 0) {
            own->finished = 0;
            for (uint32_t i = 0; i < WK_PULLS; i++)
                own->taken[i] = 0;
            own->operation = operation;
        }
    }
}

/* A kernel that runs WORK(args, table) between begin and end. */
#define WK_SYNC_KERNEL(name, args_type, work)                                                      \
    WK_KERNEL(name, struct args_type)                                                              \
    {                                                                                              \
        WK_SHARED uint64_t near[WK_HELD];                                                          \
        WK_SHARED uint32_t state[2];                                                               \
        wk_follow();                                                                               \
        const uint64_t *table = wk_begin(args.sync, near, state);                                  \
        if (table == nullptr) return;                                                              \
        if ((args.sync.phases & WK_KEEP) != 0) wk_be_followed();                                   \
        work;                                                                                      \
        wk_end(args.sync, state);                                                                  \
    }

#endif
