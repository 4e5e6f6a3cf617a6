// SPDX-License-Identifier: Apache-2.0
// The sampler's books: threads and what they owe, records between threads; and what can be done
// here, as far as that is the same everywhere.

#include "capture/abilities.h"
#include "capture/perf/record_queue.h"
#include "capture/ptrace/tracees.h"
#include "unit.h"

#include <pthread.h>

#include "base/clock.h"

/* Threads of no process use no CPU time: what they owe is what we say. */
#define NOBODY_PID 0x7ffffff0

static void table_by_tid(void **state)
{
    (void)state;
    struct tracees tracees;
    tracees_init(&tracees);
    const pid_t tids[] = {50, 10, 90, 30, 70};
    for (size_t i = 0; i < 5; i++)
        tracees_add(&tracees, tids[i], tids[i], NULL);
    struct tracee *thread = tracees_add(&tracees, 60, 50, NULL);
    assert_ptr_equal(thread->process, tracees_find(&tracees, 50)->process);
    assert_int_equal(thread->process->living, 2);
    for (size_t i = 1; i < tracees.count; i++)
        assert_true(tracees.list[i - 1]->tid < tracees.list[i]->tid);
    assert_null(tracees_find(&tracees, 55));
    tracees_remove(&tracees, tracees_find(&tracees, 50));
    assert_null(tracees_find(&tracees, 50));
    assert_int_equal(tracees_find(&tracees, 60)->process->threads, 1);
    tracees_release(&tracees);
}

static void children_begin_as_their_parents(void **state)
{
    (void)state;
    struct tracees tracees;
    tracees_init(&tracees);
    struct tracee *parent = tracees_add(&tracees, NOBODY_PID, NOBODY_PID, NULL);
    strcpy(parent->process->name, "shop");
    parent->process->mappings = memory_zalloc(1, sizeof(struct tracee_mapping));
    parent->process->mapping_capacity = parent->process->mapping_count = 1;
    parent->process->mappings[0].start = 0x1000;
    parent->process->owed_ns = 7;
    struct tracee *child = tracees_add(&tracees, NOBODY_PID + 1, NOBODY_PID + 1, parent->process);
    assert_string_equal(child->name, "shop");
    assert_int_equal(child->process->mapping_count, 1);
    assert_int_equal(child->process->mappings[0].start, 0x1000);
    assert_int_equal(child->process->owed_ns, 0);
    tracees_release(&tracees);
}

static void accounts(void **state)
{
    (void)state;
    struct tracees tracees;
    tracees_init(&tracees);
    struct tracee *first = tracees_add(&tracees, NOBODY_PID, NOBODY_PID, NULL);
    struct tracee *thread = tracees_add(&tracees, NOBODY_PID + 1, NOBODY_PID, NULL);
    strcpy(first->process->name, "shop");
    first->process->owed_ns = 100;
    assert_false(tracees_end(&tracees, thread));
    assert_false(tracees_end(&tracees, thread)); /* once */
    assert_true(tracees_end(&tracees, first));
    assert_int_equal(tracees_owed_ns(&tracees, first->process), 100);
    tracees_bequeath(&tracees, first->process);
    assert_int_equal(first->process->owed_ns, 0);
    assert_int_equal(tracees_unsettled_ns(&tracees), 100);

    /* Another name settles nothing of it, the same name all. */
    struct tracee *other = tracees_add(&tracees, NOBODY_PID + 2, NOBODY_PID + 2, NULL);
    strcpy(other->process->name, "bank");
    assert_int_equal(tracees_settle(&tracees, other), 0);
    struct tracee *heir = tracees_add(&tracees, NOBODY_PID + 3, NOBODY_PID + 3, NULL);
    strcpy(heir->process->name, "shop");
    heir->process->owed_ns = 20;
    assert_int_equal(tracees_settle(&tracees, heir), 120);
    assert_int_equal(tracees_settle(&tracees, heir), 0);
    assert_int_equal(tracees_unsettled_ns(&tracees), 0);

    /* Names beyond the limit are written off, and counted. */
    for (int i = 0; i <= TRACEE_NAMES_MAX; i++) {
        snprintf(other->process->name, TRACEE_NAME_BYTES, "name %d", i);
        other->process->owed_ns = 1;
        tracees_bequeath(&tracees, other->process);
    }
    assert_int_equal(tracees.account_count, TRACEE_NAMES_MAX);
    assert_int_equal(tracees.written_off_ns, 1);
    assert_int_equal(tracees_unsettled_ns(&tracees), TRACEE_NAMES_MAX + 1);
    tracees_release(&tracees);
}

static void our_own_time(void **state)
{
    (void)state;
    struct tracees tracees;
    int64_t used_ns;
    tracees_init(&tracees);
    struct tracee *self = tracees_add(&tracees, getpid(), getpid(), NULL);
    assert_true(tracee_process_active(self->process, 1));
    volatile uint64_t sink = 0;
    do
        for (int i = 0; i < 100000; i++)
            sink += (uint64_t)i;
    while ((used_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID)) < 50000000);
    assert_true(tracee_process_active(self->process, 2));
    assert_true(tracee_clock_ns(&tracees, self) >= (uint64_t)used_ns);
    uint64_t settled_ns = tracees_settle(&tracees, self);
    assert_true(settled_ns > 20000000);
    assert_int_equal(self->paid_ns, settled_ns);

    /* Without the scheduler's count, in steps of 10 ms. */
    tracees.coarse = true;
    assert_true(tracee_cpu_ns(&tracees, self, NULL) >= 20000000);
    assert_int_equal(tracee_cpu_ns(&tracees, self, NULL) % 1000000, 0);
    struct tracee *nobody = tracees_add(&tracees, NOBODY_PID, NOBODY_PID, NULL);
    assert_int_equal(tracee_cpu_ns(&tracees, nobody, NULL), 0);
    tracees.coarse = false;
    assert_int_equal(tracee_cpu_ns(&tracees, nobody, NULL), 0);
    assert_int_equal(tracees_settle(&tracees, nobody), 0);
    tracees_release(&tracees);
}

/* ---- records ---- */

#define RECORDS (RECORD_QUEUE_MAX + 5000)

static void *write_many(void *context)
{
    struct record_queue *queue = context;
    char name[32];
    for (uint32_t i = 0; i < RECORDS; i++) {
        snprintf(name, sizeof(name), "thread %u", i);
        record_queue_add(queue, &(struct perf_record){.kind = PERF_NAMED, .tid = i, .path = name});
    }
    record_queue_end(queue);
    return NULL;
}

static void expect_next(void *context, const struct perf_record *record)
{
    uint32_t *next = context;
    char name[32];
    snprintf(name, sizeof(name), "thread %u", *next);
    assert_int_equal(record->tid, *next);
    assert_string_equal(record->path, name);
    ++*next;
}

static void records_in_order(void **state)
{
    (void)state;
    struct record_queue queue;
    pthread_t writer;
    uint32_t next = 0;
    record_queue_init(&queue);
    pthread_create(&writer, NULL, write_many, &queue);
    while (record_queue_read(&queue, 1000, expect_next, &next) == 0)
        ;
    pthread_join(writer, NULL);
    assert_int_equal(next, RECORDS);
    assert_int_equal(queue.count, 0);
    record_queue_release(&queue);
}

static void expect_stack(void *context, const struct perf_record *record)
{
    size_t *count = context;
    assert_int_equal(record->stack_bytes, 1 << 20);
    assert_int_equal(record->stack[(1 << 20) - 1], 9);
    ++*count;
}

static void nobody_reads(void **state)
{
    (void)state;
    struct record_queue queue;
    pthread_t writer;
    record_queue_init(&queue);
    assert_int_equal(record_queue_read(&queue, 1, expect_next, NULL), 0);

    /* Stacks say when they are too many. */
    static uint8_t stack[1 << 20];
    size_t added = 0, taken = 0;
    stack[sizeof(stack) - 1] = 9;
    for (; !record_queue_busy(&queue); added++)
        record_queue_add(&queue, &(struct perf_record){
                                     .kind = PERF_SAMPLE, .stack = stack, .stack_bytes = 1 << 20});
    assert_int_equal(added, RECORD_QUEUE_SAMPLE_BYTES >> 20);
    assert_int_equal(record_queue_read(&queue, 0, expect_stack, &taken), 0);
    assert_int_equal(taken, added);
    assert_false(record_queue_busy(&queue));

    /* A writer that waits for a reader is freed when there is none. */
    pthread_create(&writer, NULL, write_many, &queue);
    record_queue_stop(&queue);
    pthread_join(writer, NULL);
    assert_true(queue.count <= RECORD_QUEUE_MAX);
    record_queue_release(&queue);
}

/* ---- abilities ---- */

static void abilities_are_complete(void **state)
{
    (void)state;
    struct abilities *abilities = memory_zalloc(1, sizeof(*abilities));
    abilities_find(abilities);
    assert_true(abilities->count > 15 && abilities->count < ABILITIES_MAX);
    for (size_t i = 0; i < abilities->count; i++) {
        const struct ability *ability = &abilities->list[i];
        assert_ptr_equal(abilities_get(abilities, ability->name), ability);
        assert_true(ability->found[0] && ability->meaning[0]);
        assert_int_equal(ability->meaning[strlen(ability->meaning) - 1], '.');
        assert_true(ability->state != ABILITY_OK || !ability->fix[0]);
    }
    assert_null(abilities_get(abilities, "flying"));
    assert_string_equal(ability_state_name(ABILITY_LIMITED), "limited");
    for (int i = 0; i < ABILITY_COMMANDS; i++)
        assert_true(abilities->commands[i].means[0]);
    free(abilities);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_by_tid),
        cmocka_unit_test(children_begin_as_their_parents),
        cmocka_unit_test(accounts),
        cmocka_unit_test(our_own_time),
        cmocka_unit_test(records_in_order),
        cmocka_unit_test(nobody_reads),
        cmocka_unit_test(abilities_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
