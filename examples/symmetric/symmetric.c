/* symmetric.c - ranks pass numbers around a ring by writing to each other's memory.
 *
 *     weft run -n 3 ./symmetric
 *
 * Each rank has an inbox in memory that its neighbours can write.  First the library moves the
 * numbers: a put, and a signal that arrives after it.  Then a kernel does: it stores to the
 * neighbour's inbox, and changes a slot of the neighbour's signals.  Then each rank reads its
 * neighbour's numbers where they are.  At last, in memory of the library, several puts arrive
 * before one signal, and the receiver computes until it is there.  The kernel here runs on the
 * host, so the backend must work in host memory; symm_device.h compiles for CUDA and HIP, too. */
#include <weft/symm.h>
#include <weft/weft.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 1000, BLOCK = 300, BY_LIBRARY = 0, BY_KERNEL = 1 }; /* two channels */

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

/* What the engine has in one allocation: numbers to send, and an inbox. */
struct buffers {
    double outbox[LENGTH], inbox[LENGTH];
};

static void fill(double *numbers, double value)
{
    for (int i = 0; i < LENGTH; i++)
        numbers[i] = value + i;
}

static bool holds(const double *numbers, double value)
{
    for (int i = 0; i < LENGTH; i++)
        if (numbers[i] != value + i) return false;
    return true;
}

/* The library writes OUTBOX to the inbox of rank RIGHT, and waits for that of rank LEFT. */
static void send_by_library(weft_symm *symm, struct buffers *own, int left, int right)
{
    uint64_t offset;

    MUST(weft_symm_offset(symm, own->inbox, sizeof own->inbox, &offset)); /* alike on all ranks */
    MUST(weft_symm_put_signal_to(symm, own->outbox, right, offset, sizeof own->outbox, BY_LIBRARY,
                                 1, WEFT_SIGNAL_SET, NULL));
    MUST(weft_symm_wait_from(symm, left, BY_LIBRARY, WEFT_COMPARE_GE, 1, 0, NULL));
    MUST(weft_context_wait(weft_comm_context(weft_symm_comm(symm)), NULL, WEFT_FOREVER));
}

/* The same by the kernel of an engine. */
static void send_by_kernel(weft_symm_device device, const struct buffers *own, uint64_t offset,
                           int left, int right)
{
    double *inbox = weft_symm_address(&device, right, offset);
    _Atomic uint64_t *there = (void *)weft_symm_slot(&device, right, BY_KERNEL, device.rank);
    _Atomic uint64_t *here = (void *)weft_symm_slot(&device, device.rank, BY_KERNEL, left);

    for (int i = 0; i < LENGTH; i++)
        inbox[i] = own->outbox[i];
    atomic_store_explicit(there, 1, memory_order_release);
    while (atomic_load_explicit(here, memory_order_acquire) < 1) {
    }
}

/* The numbers in the outbox of rank PEER are VALUE and more: read there, without a copy, if loads
 * of this rank reach them, and otherwise by the library. */
static bool peer_holds(weft_symm *symm, const struct buffers *own, int peer, double value)
{
    const struct buffers *there = weft_symm_peer(symm, peer);
    static double copy[LENGTH];
    uint64_t offset;

    if (there != NULL) return holds(there->outbox, value);
    MUST(weft_symm_offset(symm, own->outbox, sizeof own->outbox, &offset));
    MUST(weft_symm_get_from(symm, peer, offset, copy, sizeof copy, NULL));
    MUST(weft_context_wait(weft_comm_context(weft_symm_comm(symm)), NULL, WEFT_FOREVER));
    return holds(copy, value);
}

/* Post the outbox of OWN to rank RIGHT in blocks, and a signal that arrives after all of them. */
static void post_blocks(weft_symm *symm, const struct buffers *own, int right)
{
    for (int at = 0; at < LENGTH; at += BLOCK) {
        int count = LENGTH - at < BLOCK ? LENGTH - at : BLOCK;

        MUST(weft_symm_put_to(symm, own->outbox + at, right,
                              offsetof(struct buffers, inbox) + (size_t)at * sizeof(double),
                              (size_t)count * sizeof(double), NULL));
    }
    MUST(weft_symm_fence(symm, NULL));
    MUST(weft_symm_signal_to(symm, right, BY_LIBRARY, 1, WEFT_SIGNAL_SET, NULL));
}

/* The ranks pass VALUE and more on in memory that the library has allocated. */
static bool send_in_blocks(weft_comm *world, int left, int right, double value)
{
    weft_symm *symm;
    struct buffers *own;
    weft_status status;
    bool arrived;

    MUST(weft_symm_create(world, sizeof *own, NULL, &symm));
    own = weft_symm_local(symm);
    fill(own->outbox, value + weft_comm_rank(world));
    post_blocks(symm, own, right);
    while ((status = weft_symm_test_from(symm, left, BY_LIBRARY, WEFT_COMPARE_GE, 1)) ==
           WEFT_IN_PROGRESS) { /* an engine would do something else meanwhile */
    }
    MUST(status);
    arrived = holds(own->inbox, value + left);
    weft_symm_release(&symm);
    return arrived;
}

int main(void)
{
    weft_symm_options options = {.struct_size = sizeof options, .channels = 2};
    struct buffers *own;
    weft_symm_device device;
    weft_context *ctx;
    weft_symm *symm;
    uint64_t offset;
    int rank, left, right;
    bool first, second, third, fourth;
    void *memory;

    MUST(weft_init(NULL, &ctx));
    rank = weft_rank(ctx);
    right = (rank + 1) % weft_size(ctx);
    left = (rank + weft_size(ctx) - 1) % weft_size(ctx);
    MUST(weft_alloc(ctx, sizeof *own, WEFT_MEMORY_DEVICE, &memory));
    own = memory;
    MUST(weft_symm_register(weft_world(ctx), own, sizeof *own, &options, &symm));

    fill(own->outbox, rank);
    send_by_library(symm, own, left, right);
    first = holds(own->inbox, left);
    MUST(weft_symm_barrier(symm, NULL)); /* all have read what they got */
    MUST(weft_context_wait(ctx, NULL, WEFT_FOREVER));

    fill(own->outbox, rank + 0.5);
    MUST(weft_symm_device_get(symm, &device));
    MUST(weft_symm_offset(symm, own->inbox, sizeof own->inbox, &offset));
    send_by_kernel(device, own, offset, left, right);
    second = holds(own->inbox, left + 0.5);
    third = peer_holds(symm, own, left, left + 0.5); /* the signal came after what LEFT stored */
    fourth = send_in_blocks(weft_world(ctx), left, right, 0.25);
    printf("rank %d: %llu bytes of every rank by %s, with %u channels: %s, %s, %s, %s\n", rank,
           (unsigned long long)weft_symm_bytes(symm), weft_symm_backend(symm),
           weft_symm_channels(symm), first ? "right" : "wrong", second ? "right" : "wrong",
           third ? "right" : "wrong", fourth ? "right" : "wrong");

    weft_symm_release(&symm);
    MUST(weft_free(ctx, memory));
    weft_context_release(&ctx);
    return first && second && third && fourth ? EXIT_SUCCESS : EXIT_FAILURE;
}
