/* A queue of tasks from any thread to one thread. */
#include "stream/cpu_queue.h"

#include "support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { GIVERS = 3, EACH = 20000 };

struct note {
    uint32_t giver, number;
};

static void give(struct cpu_queue *queue, struct note note)
{
    struct cpu_task *task = cpu_queue_task(queue, sizeof note);

    if (task == NULL) abort();
    memcpy(task->argument, &note, sizeof note);
    cpu_queue_give(queue, task);
}

TEST(tasks_come_in_the_order_given)
{
    struct cpu_queue queue;

    ck_assert_int_eq(cpu_queue_begin(&queue), WEFT_OK);
    ck_assert_ptr_null(cpu_queue_take(&queue));
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 100; i++)
            give(&queue, (struct note){0, i});
        for (uint32_t i = 0; i < 100; i++) {
            struct cpu_task *task = cpu_queue_take(&queue);

            ck_assert_uint_eq(((struct note *)(void *)task->argument)->number, i);
            cpu_queue_done(&queue, task);
        }
        ck_assert(cpu_queue_is_empty(&queue));
    }
    cpu_queue_free(&queue);
}

TEST(a_task_has_the_room_asked_for)
{
    struct cpu_queue queue;

    ck_assert_int_eq(cpu_queue_begin(&queue), WEFT_OK);
    for (size_t bytes = 1; bytes <= 1 << 20; bytes *= 4) {
        struct cpu_task *task = cpu_queue_task(&queue, bytes);

        ck_assert_uint_ge(task->room, bytes);
        memset(task->argument, 1, bytes);
        cpu_queue_done(&queue, task);
    }
    cpu_queue_free(&queue);
}

TEST(what_was_done_serves_again)
{
    struct cpu_task *seen[100];
    struct cpu_queue queue;

    ck_assert_int_eq(cpu_queue_begin(&queue), WEFT_OK);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++) {
            struct cpu_task *task = cpu_queue_task(&queue, 8);
            bool known = round == 0;

            for (int k = 0; k < 100 && !known; k++)
                known = seen[k] == task;
            ck_assert_msg(known, "task %d of round %d is new", i, round);
            if (round == 0) seen[i] = task;
            cpu_queue_give(&queue, task);
        }
        for (int i = 0; i < 100; i++)
            cpu_queue_done(&queue, cpu_queue_take(&queue));
    }
    cpu_queue_free(&queue);
}

static int count_kept(const struct cpu_queue *queue)
{
    int count = 0;

    for (const struct cpu_task *task = atomic_load(&queue->done); task != NULL; task = task->next)
        count++;
    for (const struct cpu_task *task = queue->picked; task != NULL; task = task->next)
        count++;
    return count;
}

TEST(givers_that_meet_leave_nothing_behind)
{
    struct cpu_queue queue;
    int kept;

    ck_assert_int_eq(cpu_queue_begin(&queue), WEFT_OK);
    kept = count_kept(&queue);
    for (int i = 0; i < 1000; i++) {
        atomic_store(&queue.picking, i % 2 == 0); /* as if another thread were picking */
        give(&queue, (struct note){0, 0});
        cpu_queue_done(&queue, cpu_queue_take(&queue));
    }
    ck_assert_int_eq(count_kept(&queue), kept);
    cpu_queue_free(&queue);
}

struct giver {
    struct cpu_queue *queue;
    uint32_t number;
};

static void *give_all(void *argument)
{
    const struct giver *giver = argument;

    for (uint32_t i = 0; i < EACH; i++)
        give(giver->queue, (struct note){giver->number, i});
    return NULL;
}

TEST(several_threads_give_and_each_keeps_its_order)
{
    struct cpu_queue queue;
    struct giver givers[GIVERS];
    pthread_t threads[GIVERS];
    uint32_t next[GIVERS] = {0};

    ck_assert_int_eq(cpu_queue_begin(&queue), WEFT_OK);
    for (uint32_t i = 0; i < GIVERS; i++) {
        givers[i] = (struct giver){&queue, i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, give_all, &givers[i]), 0);
    }
    for (uint32_t taken = 0; taken < GIVERS * EACH;) {
        struct cpu_task *task = cpu_queue_take(&queue);
        struct note note;

        if (task == NULL) {
            sched_yield();
            continue;
        }
        memcpy(&note, task->argument, sizeof note);
        ck_assert_uint_lt(note.giver, GIVERS);
        ck_assert_uint_eq(note.number, next[note.giver]++);
        cpu_queue_done(&queue, task);
        taken++;
    }
    for (uint32_t i = 0; i < GIVERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert(cpu_queue_is_empty(&queue));
    cpu_queue_free(&queue);
}
