/* cpu_queue.h - a lock-free queue of tasks with several producers and one consumer, in order.
 *
 * Done tasks are reused.  A queue allocates only if it holds more or larger tasks than ever
 * before.  It also allocates a temporary task if several threads give tasks at the same time. */
#ifndef WEFT_CPU_QUEUE_H
#define WEFT_CPU_QUEUE_H

#include "cpu.h"

struct cpu_error;

/* Work for a stream.  A failure is written to ERROR. */
typedef void (*cpu_work)(void *argument, struct cpu_error *error);

struct cpu_task {
    struct cpu_task *next;
    cpu_work work;
    _Atomic(uint64_t) *under_way; /* counter of the stream that the task is counted in, or NULL */
    size_t room;                  /* bytes of ARGUMENT */
    bool stays; /* kept by the queue when done; else freed, so that concurrent producers do not
                   enlarge the queue */
    _Alignas(16) unsigned char argument[];
};

struct cpu_queue {
    _Atomic(struct cpu_task *) given; /* the newest first */
    struct cpu_task *taken;           /* by the consumer; the oldest first */
    _Atomic(struct cpu_task *) done;
    _Atomic(bool) picking;   /* a thread uses PICKED; other threads allocate instead */
    struct cpu_task *picked; /* done tasks that a producer has taken */
};

/* Initialize the queue with some reusable tasks. */
weft_status cpu_queue_begin(struct cpu_queue *queue);
/* A task with room for BYTES, or NULL if memory is exhausted. */
struct cpu_task *cpu_queue_task(struct cpu_queue *queue, size_t bytes);
void cpu_queue_give(struct cpu_queue *queue, struct cpu_task *task);
bool cpu_queue_is_empty(const struct cpu_queue *queue);
/* The oldest task, or NULL.  Return it with cpu_queue_done. */
struct cpu_task *cpu_queue_take(struct cpu_queue *queue);
void cpu_queue_done(struct cpu_queue *queue, struct cpu_task *task);
/* Free the tasks of an empty queue.  No thread may use it any more. */
void cpu_queue_free(struct cpu_queue *queue);

#endif
