/* queue.h - tasks that any thread gives and one thread takes, in order and without a lock.
 *
 * Tasks that were done serve again, so a queue allocates only when it holds more of them, or
 * larger ones, than ever before and than it was begun with; and, for the time of a task, when
 * several threads give at the same moment. */
#ifndef WEFT_CPU_QUEUE_H
#define WEFT_CPU_QUEUE_H

#include "cpu.h"

struct cpu_error;

/* Work for a stream.  It describes its own failure into ERROR. */
typedef void (*cpu_work)(void *argument, struct cpu_error *error);

struct cpu_task {
    struct cpu_task *next;
    cpu_work work;
    _Atomic(uint64_t) *under_way; /* the stream's, which counts it; or NULL */
    size_t room;                  /* bytes of ARGUMENT */
    bool stays; /* with the queue when it is done; else it is freed, so that the queue does not
                   grow whenever two threads give at once */
    _Alignas(16) unsigned char argument[];
};

struct cpu_queue {
    _Atomic(struct cpu_task *) given; /* the newest first */
    struct cpu_task *taken;           /* by the consumer; the oldest first */
    _Atomic(struct cpu_task *) done;
    _Atomic(bool) picking;   /* somebody is at PICKED, the others do without it */
    struct cpu_task *picked; /* that were done */
};

/* Begin with some tasks, none of them given. */
weft_status cpu_queue_begin(struct cpu_queue *queue);
/* A task with room for BYTES, or NULL when there is no memory. */
struct cpu_task *cpu_queue_task(struct cpu_queue *queue, size_t bytes);
void cpu_queue_give(struct cpu_queue *queue, struct cpu_task *task);
bool cpu_queue_is_empty(const struct cpu_queue *queue);
/* The oldest task, or NULL.  It goes back with cpu_queue_done. */
struct cpu_task *cpu_queue_take(struct cpu_queue *queue);
void cpu_queue_done(struct cpu_queue *queue, struct cpu_task *task);
/* Free the tasks of an empty queue that nobody uses any more. */
void cpu_queue_free(struct cpu_queue *queue);

#endif
