/* cpu_queue.c - two lock-free stacks.  Producers push given tasks, and the consumer takes the whole
 * stack at once and reverses it.  The consumer pushes done tasks, and a producer takes that stack
 * at once.  No thread pops a single entry off a shared stack, so the ABA problem does not arise. */
#include "cpu_queue.h"

#include <string.h>

#define FIRST_TASKS 64
#define ROOM_MIN    512 /* a collective of eight ranks with all its counts fits */

static void push(_Atomic(struct cpu_task *) *stack, struct cpu_task *task)
{
    struct cpu_task *top = atomic_load_explicit(stack, memory_order_relaxed);

    do {
        task->next = top;
    } while (!atomic_compare_exchange_weak(stack, &top, task));
}

/* Returns false if another thread is picking.  *OUT is NULL if there is no done task. */
static bool pick_done(struct cpu_queue *queue, struct cpu_task **out)
{
    if (atomic_exchange_explicit(&queue->picking, true, memory_order_acquire)) return false;
    if (queue->picked == NULL)
        queue->picked = atomic_exchange_explicit(&queue->done, NULL, memory_order_acquire);
    *out = queue->picked;
    if (*out != NULL) queue->picked = (*out)->next;
    atomic_store_explicit(&queue->picking, false, memory_order_release);
    return true;
}

static struct cpu_task *make(size_t bytes, bool stays)
{
    size_t room = ROOM_MIN;
    struct cpu_task *task;

    while (room < bytes)
        room *= 2;
    task = plug_alloc(sizeof *task + room);
    if (task == NULL) return NULL;
    task->room = room;
    task->stays = stays;
    return task;
}

weft_status cpu_queue_begin(struct cpu_queue *queue)
{
    memset(queue, 0, sizeof *queue);
    for (int i = 0; i < FIRST_TASKS; i++) {
        struct cpu_task *task = make(0, true);

        if (task == NULL) {
            cpu_queue_free(queue);
            return plug_fail_memory(sizeof *task + ROOM_MIN);
        }
        push(&queue->done, task);
    }
    return WEFT_OK;
}

struct cpu_task *cpu_queue_task(struct cpu_queue *queue, size_t bytes)
{
    struct cpu_task *task = NULL;

    if (!pick_done(queue, &task)) return make(bytes, false);
    if (task != NULL && task->room >= bytes) return task;
    plug_free(task);
    return make(bytes, true);
}

void cpu_queue_give(struct cpu_queue *queue, struct cpu_task *task)
{
    push(&queue->given, task);
}

bool cpu_queue_is_empty(const struct cpu_queue *queue)
{
    return queue->taken == NULL && atomic_load(&queue->given) == NULL;
}

struct cpu_task *cpu_queue_take(struct cpu_queue *queue)
{
    struct cpu_task *task, *next;

    if (queue->taken == NULL)
        for (task = atomic_exchange(&queue->given, NULL); task != NULL; task = next) {
            next = task->next;
            task->next = queue->taken;
            queue->taken = task;
        }
    task = queue->taken;
    if (task != NULL) queue->taken = task->next;
    return task;
}

void cpu_queue_done(struct cpu_queue *queue, struct cpu_task *task)
{
    if (task->stays)
        push(&queue->done, task);
    else
        plug_free(task);
}

static void free_all(struct cpu_task *task)
{
    while (task != NULL) {
        struct cpu_task *next = task->next;

        plug_free(task);
        task = next;
    }
}

void cpu_queue_free(struct cpu_queue *queue)
{
    free_all(atomic_load(&queue->done));
    free_all(queue->picked);
}
