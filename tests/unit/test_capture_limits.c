// SPDX-License-Identifier: Apache-2.0
// What the capture does about processes that make too much of something: events, mappings, lists of
// mappings that take long to read; and who is said to have done it.

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/memory.h"
#include "capture/record/contexts.h"
#include "capture/record/excess.h"
#include "capture/record/flood.h"
#include "capture/record/processes.h"
#include "unit.h"

#define SECOND 1000000000ll

static void floods_end_listening_for_a_while(void **state)
{
    (void)state;
    struct flood flood;
    int64_t now = 100 * SECOND;
    flood_init(&flood, 1000, now);
    /* What comes slowly may go on for ever. */
    for (int i = 0; i < 100; i++)
        assert_false(flood_note(&flood, 90, now += SECOND / 10));
    /* A second's worth at once is no flood, and twice as much is. */
    assert_false(flood_note(&flood, 900, now += SECOND));
    assert_true(flood_note(&flood, 1000, now));
    assert_true(flood.deaf);
    assert_false(flood_note(&flood, 1000000, now));
    assert_false(flood_over(&flood, now + 4 * SECOND));
    assert_true(flood_over(&flood, now += 5 * SECOND));
    assert_false(flood.deaf);
    /* It goes on: twice as long, up to a limit. */
    for (int64_t wait = 10; wait <= 160; wait *= 2) {
        assert_true(flood_note(&flood, 1000, now));
        int64_t expected = wait < 80 ? wait : 80;
        assert_false(flood_over(&flood, now + expected * SECOND - 1));
        assert_true(flood_over(&flood, now += expected * SECOND));
    }
    /* After it was quiet, as at first. */
    assert_true(flood_note(&flood, 2000, now += 60 * SECOND));
    assert_true(flood_over(&flood, now + 5 * SECOND));
    /* Without a limit, none. */
    flood_init(&flood, 0, now);
    assert_false(flood_note(&flood, UINT64_MAX / 2, now));
}

static void map_code(struct processes *processes, struct process *process, uint64_t number)
{
    process_map(processes, process,
                &(struct mapping_event){
                    .start = 0x100000 + number * 0x2000, .length = 0x1000, .path = "//anon"});
}

static void a_user_has_a_share_of_mappings(void **state)
{
    (void)state;
    struct modules modules;
    struct processes processes;
    modules_init(&modules);
    processes_init(&processes, &modules);
    processes_limit(&processes,
                    &(struct processes_limits){.process_mappings = 100, .mappings = 1200});
    /* A process has so many, ... */
    struct process *hostile = processes_get(&processes, 4000001);
    hostile->user = 1;
    hostile->known = true;
    for (uint64_t i = 0; i < 1000; i++)
        map_code(&processes, hostile, i);
    assert_int_equal(hostile->count, 100);
    /* ... and a user half of all, however many processes it starts; ... */
    for (uint32_t child = 4000002; child < 4000102; child++)
        processes_start(&processes, child, hostile);
    assert_int_equal(processes.mappings.held, 600);
    assert_true(processes.refused >= 900 + 94);
    /* ... which leaves enough for others, ... */
    struct process *other = processes_get(&processes, 4000200);
    other->user = 2;
    for (uint64_t i = 0; i < 100; i++)
        map_code(&processes, other, i);
    assert_int_equal(other->count, 100);
    assert_int_equal(processes.mappings.list[2].refused, 0);
    /* ... and all of it comes back. */
    process_execute(&processes, hostile, 1);
    assert_int_equal(processes.mappings.held, 600);
    for (uint32_t pid = 4000002; pid < 4000102; pid++)
        processes_start(&processes, pid, NULL); /* another process, of which nothing is known */
    assert_int_equal(processes.mappings.held, 100);
    processes_release(&processes);
    modules_release(&modules);
}

/* A worker that root's daemon has started, and that is its user's since. */
static void who_changes_his_user_takes_along_what_he_holds(void **state)
{
    (void)state;
    struct modules modules;
    struct processes processes;
    uint32_t before = geteuid() + 1, own = geteuid();
    modules_init(&modules);
    processes_init(&processes, &modules);
    processes_limit(&processes,
                    &(struct processes_limits){.process_mappings = 100, .mappings = 1200});
    struct process *worker = processes_get(&processes, (uint32_t)getpid());
    worker->user = before;
    worker->user_ns = monotonic_ns();
    for (uint64_t i = 0; i < 50; i++)
        map_code(&processes, worker, i);
    assert_int_equal(worker->charged, 50);
    worker->user_ns -= 2 * SECOND;
    map_code(&processes, worker, 50);
    assert_int_equal(worker->user, own);
    assert_int_equal(worker->charged_user, own);
    assert_int_equal(processes.mappings.held, 51);
    assert_int_equal(shares_left(&processes.mappings, before), (1200 - 51) / 2);
    assert_int_equal(shares_left(&processes.mappings, own), (1200 - 2 * 51) / 2);
    /* And whose cgroup it is when mappings are refused is noted, once. */
    static struct excess_list noted;
    processes.excess = &noted;
    for (uint64_t i = 51; i < 150; i++)
        map_code(&processes, worker, i);
    assert_int_equal(noted.count, 1);
    assert_int_equal(excess_cgroup(&noted, EXCESS_MAPPINGS, own)[0], '/');
    assert_string_equal(excess_cgroup(&noted, EXCESS_MAPPINGS, before), "");
    assert_string_equal(excess_cgroup(&noted, "lookups", own), "");
    processes_release(&processes);
    modules_release(&modules);
}

/* This process, with so many mappings that its list isn't read at once. */
static void long_lists_take_a_share_of_time(void **state)
{
    (void)state;
    enum { PAGES = 20000 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *room = mmap(NULL, PAGES * 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(room, MAP_FAILED);
    for (size_t i = 0; i < PAGES; i++)
        assert_int_equal(mprotect(room + 2 * i * page, page, PROT_READ | PROT_EXEC), 0);
    struct modules modules;
    struct processes processes;
    modules_init(&modules);
    processes_init(&processes, &modules);
    processes_limit(&processes, &(struct processes_limits){.process_mappings = 1024,
                                                           .mappings = 1 << 17,
                                                           .lookup_ns = 100 * 1000000ll});
    struct process *self = processes_get(&processes, (uint32_t)getpid());
    process_catch_up(&processes, self);
    assert_int_equal(self->count, 1024);
    assert_int_equal(self->user, geteuid());
    assert_true(self->lookup_ns > 0);
    /* It may not be read on and on. */
    for (int i = 0; i < 1000 && !processes.postponed; i++)
        process_catch_up(&processes, self);
    assert_true(processes.postponed > 0);
    assert_true(processes.lookups.held <= 50 * 1000000);
    assert_int_equal(self->count, 1024); /* what is known stays */
    /* Another user's processes are still looked up: there is as much for him as was left. */
    assert_true(shares_left(&processes.lookups, geteuid() + 1) > 20 * 1000000);
    /* Nor for what processes publish: that has a smaller share of its own. */
    static struct contexts contexts;
    struct runtime_reader reader = {0};
    contexts_init(&contexts);
    int64_t now = monotonic_ns(), began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < 300; i++)
        contexts_look_published(&contexts, &processes, self, &reader, true, now += SECOND / 40);
    int64_t took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    assert_true(processes.searches.held <= 25 * 1000000);
    assert_true(took < 20 * MAX(self->search_ns, 5 * 1000000));
    assert_true(shares_left(&processes.searches, geteuid() + 1) > 10 * 1000000);
    contexts_release(&contexts);
    processes_release(&processes);
    modules_release(&modules);
    munmap(room, PAGES * 2 * page);
}

static void the_culprit_is_named(void **state)
{
    (void)state;
    static struct excess_list list;
    excess_note(&list, (uint32_t)getpid(), "events", 10, SECOND);
    excess_note(&list, (uint32_t)getpid(), "events", 5, 2 * SECOND);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.list[0].excess.count, 15);
    assert_int_equal(list.list[0].excess.user, geteuid());
    assert_int_equal(list.list[0].excess.cgroup[0], '/');
    static const char *const kinds[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                        "j", "k", "l", "m", "n", "o", "p", "q"};
    for (size_t i = 0; i < 17; i++)
        excess_note(&list, 0, kinds[i], 1, (int64_t)(10 + i) * SECOND);
    assert_int_equal(list.count, CAPTURE_EXCESS_MAX);
    assert_int_equal(list.list[0].excess.user, CAPTURE_USER_UNKNOWN);
    excess_tidy(&list, 320 * SECOND);
    assert_int_equal(list.count, 6);
    excess_tidy(&list, 3000 * SECOND);
    assert_int_equal(list.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floods_end_listening_for_a_while),
        cmocka_unit_test(a_user_has_a_share_of_mappings),
        cmocka_unit_test(who_changes_his_user_takes_along_what_he_holds),
        cmocka_unit_test(long_lists_take_a_share_of_time),
        cmocka_unit_test(the_culprit_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
