/* ledger.h - memory that a context has allocated and not yet freed, and what its communicators know
 * of memory until some of it is freed. */
#ifndef WEFT_COMM_CONTEXT_LEDGER_H
#define WEFT_COMM_CONTEXT_LEDGER_H

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>

/* Memory that a context has allocated and not yet freed, by address. */
struct wf_ledger {
    pthread_mutex_t lock;
    struct wf_ledger_entry *entries; /* open addressing; a free one has no pointer */
    uint64_t room, bytes, bytes_peak;
    _Atomic uint64_t count; /* also after the end */
    _Atomic uint64_t frees; /* how often memory was taken out, or symmetric memory ended */
};

/* Memory that was allocated: BYTES as the caller asked for; IS_ORDERED by allocate_on. */
struct wf_ledger_entry {
    void *pointer;
    uint64_t bytes;
    bool is_ordered;
};

#define WF_ROOM_BITS 8
#define WF_ROOMS     (1 << WF_ROOM_BITS)

/* Memory that calls used: BYTES from MEMORY on are in one allocation, as far as the device knows,
 * unless memory was freed since FREES of the ledger. */
struct wf_known_room {
    uintptr_t memory;
    uint64_t bytes, frees;
};

/* A collective whose arguments were checked, unless memory was freed since FREES of the ledger. */
struct wf_last_call {
    const void *send, *recv;
    uint64_t count, type; /* TYPE: dtype, and reduction above it */
    uint64_t frees;
    uint32_t collective;
    int32_t root;
};

void wf_ledger_begin(struct wf_ledger *ledger);
void wf_ledger_end(struct wf_ledger *ledger);
weft_status wf_ledger_add(struct wf_ledger *ledger,
                          const struct wf_ledger_entry *entry) WF_NODISCARD;
/* Remove POINTER and write its entry to *OUT; false: it is not in LEDGER. */
bool wf_ledger_take(struct wf_ledger *ledger, const void *pointer, struct wf_ledger_entry *out);
uint64_t wf_ledger_count(const struct wf_ledger *ledger);

#endif
