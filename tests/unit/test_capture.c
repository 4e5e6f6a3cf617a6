// SPDX-License-Identifier: Apache-2.0
// Processes, their mappings and modules; and what a recorder makes of records.

#include "base/clock.h"
#include "capture/record/recorder.h"
#include "unit.h"

struct table {
    struct modules modules;
    struct processes processes;
    struct process *process;
};

static int setup(void **state)
{
    struct table *table = calloc(1, sizeof(*table));
    modules_init(&table->modules);
    processes_init(&table->processes, &table->modules);
    table->process = processes_get(&table->processes, 4142424);
    *state = table;
    return 0;
}

static int teardown(void **state)
{
    struct table *table = *state;
    processes_release(&table->processes);
    modules_release(&table->modules);
    free(table);
    return 0;
}

static void map(struct table *table, uint64_t start, uint64_t end, uint64_t offset)
{
    process_map(&table->processes, table->process,
                &(struct mapping_event){
                    .start = start, .length = end - start, .offset = offset, .path = "[heap]"});
}

static void assert_mapping(const struct table *table, uint64_t address, uint64_t start,
                           uint64_t end, uint64_t offset)
{
    const struct mapping *mapping = process_find(table->process, address);
    if (!mapping) {
        fail_msg("nothing is mapped at %#llx", (unsigned long long)address);
        return;
    }
    assert_int_equal(mapping->start, start);
    assert_int_equal(mapping->end, end);
    assert_int_equal(mapping->offset, offset);
}

static void found_by_address(void **state)
{
    struct table *table = *state;
    assert_null(process_find(table->process, 0x1000));
    map(table, 0x5000, 0x6000, 0);
    map(table, 0x1000, 0x3000, 0x100);
    assert_mapping(table, 0x1000, 0x1000, 0x3000, 0x100);
    assert_mapping(table, 0x2fff, 0x1000, 0x3000, 0x100);
    assert_mapping(table, 0x5fff, 0x5000, 0x6000, 0);
    assert_null(process_find(table->process, 0xfff));
    assert_null(process_find(table->process, 0x3000));
    assert_null(process_find(table->process, 0x6000));
    assert_null(process_find(table->process, UINT64_MAX));
}

static void new_mappings_take_the_place_of_old_ones(void **state)
{
    struct table *table = *state;
    map(table, 0x1000, 0x9000, 0);
    map(table, 0x3000, 0x4000, 0x7000); /* the middle */
    assert_mapping(table, 0x2fff, 0x1000, 0x3000, 0);
    assert_mapping(table, 0x3000, 0x3000, 0x4000, 0x7000);
    assert_mapping(table, 0x4000, 0x4000, 0x9000, 0x3000);
    map(table, 0x8000, 0xa000, 0); /* a tail */
    assert_mapping(table, 0x7fff, 0x4000, 0x8000, 0x3000);
    map(table, 0, 0x2000, 0); /* a head */
    assert_mapping(table, 0x2000, 0x2000, 0x3000, 0x1000);
    map(table, 0, 0x10000, 0); /* all of it */
    assert_int_equal(table->process->count, 1);
}

static void absurd_mappings(void **state)
{
    struct table *table = *state;
    map(table, 0x1000, 0x1000, 0);
    map(table, UINT64_MAX - 5, 94, 0);
    assert_int_equal(table->process->count, 0);
    process_map(
        &table->processes, table->process,
        &(struct mapping_event){.start = 0x1000, .length = 0x1000, .path = "/no/such/file"});
    const struct mapping *mapping = process_find(table->process, 0x1000);
    assert_non_null(mapping->module);
    assert_false(mapping->module->readable);
    assert_string_equal(mapping->module->build_id, "");
    for (uint32_t pid = 1; pid <= PROCESSES_MAX; pid++)
        processes_get(&table->processes, pid);
    assert_null(processes_get(&table->processes, 1 << 30));
    assert_true(table->processes.refused > 0);
}

static void our_own_process(void **state)
{
    struct table *table = *state;
    struct process *self = processes_get(&table->processes, (uint32_t)getpid());
    process_catch_up(&table->processes, self);
    struct mapping *mapping = process_find(self, (uint64_t)(uintptr_t)our_own_process);
    assert_non_null(mapping);
    assert_true(mapping->module->readable);
    const struct unwind_rows *rows = module_rows(&table->modules, mapping->module);
    assert_non_null(rows);
    assert_int_not_equal(
        unwind_rows_find(rows, (uint64_t)(uintptr_t)our_own_process - mapping->bias),
        UNWIND_RULE_NONE);
    uint64_t start = mapping->start;
    const struct module *module = mapping->module;
    processes_start(&table->processes, 1, self);
    const struct process *child = processes_find(&table->processes, 1);
    assert_ptr_equal(process_find(child, start)->module, module);
    process_execute(&table->processes, self, 5);
    assert_null(process_find(self, (uint64_t)(uintptr_t)our_own_process));
    assert_int_equal(self->replaced_ns, 5);
}

static unsigned forgotten;

static void count_forgotten(void *context, struct process *process)
{
    (void)context;
    (void)process;
    forgotten++;
}

/* Processes end and are forgotten, unless they live on after their main thread; a pid that comes
 * again is another process. */
static void ends_and_comes_again(void **state)
{
    struct table *table = *state;
    struct processes *processes = &table->processes;
    forgotten = 0;
    processes->forget = count_forgotten;
    map(table, 0x1000, 0x2000, 0);
    processes_end(processes, table->process->pid, 1);
    processes_tidy(processes, 2);
    assert_non_null(processes_find(processes, 4142424)); /* its last samples may still come */
    processes_tidy(processes, 10000000000);
    assert_null(processes_find(processes, 4142424));
    assert_int_equal(forgotten, 1);

    struct process *self = processes_get(processes, (uint32_t)getpid());
    processes_end(processes, self->pid, 1);
    processes_tidy(processes, 10000000000);
    assert_ptr_equal(processes_find(processes, (uint32_t)getpid()), self);
    assert_int_equal(self->ended_ns, 0);

    self->known = true;
    self->sampled = true;
    processes_start(processes, 4000000, self);
    struct process *child = processes_find(processes, 4000000);
    assert_true(child->known);
    assert_false(child->sampled);
    child->sampled = true;
    processes_start(processes, 4000000, self);
    assert_int_equal(forgotten, 2);
    assert_false(processes_find(processes, 4000000)->sampled);
    processes_start(processes, 4000000, NULL); /* of a parent that nobody knows */
    assert_null(processes_find(processes, 4000000));
    processes->forget = NULL;
}

/* Only other code at the same place makes earlier walks doubtful. */
static void replaced_code_is_noticed(void **state)
{
    struct table *table = *state;
    struct mapping_event event = {
        .start = 0x10000, .length = 0x4000, .path = "/no/such/a", .inode = 7, .time_ns = 100};
    process_map(&table->processes, table->process, &event);
    assert_int_equal(table->process->replaced_ns, 0);
    event.time_ns = 200;
    process_map(&table->processes, table->process, &event); /* the same again: mprotect */
    assert_int_equal(table->process->replaced_ns, 0);
    event.path = "/no/such/b";
    event.inode = 8;
    event.start = 0x12000;
    event.time_ns = 300;
    process_map(&table->processes, table->process, &event);
    assert_int_equal(table->process->replaced_ns, 300);
}

/* Samples that were taken with an earlier list are on their way while the next one is made. */
static void lists_are_stale_when_code_was_replaced(void **state)
{
    struct table *table = *state;
    struct process *process = table->process;
    process_note_list(process, 7, 50);
    assert_false(process_list_is_stale(process, 7, 1000)); /* nothing was replaced */
    process_execute(&table->processes, process, 100);
    assert_false(process_list_is_stale(process, 7, 99));
    assert_true(process_list_is_stale(process, 7, 100));
    process_note_list(process, 8, 90); /* it was made before that was known */
    assert_true(process_list_is_stale(process, 8, 110));
    process_note_list(process, 9, 120);
    process_note_list(process, 12, 130);
    assert_true(process_list_is_stale(process, 8, 140));
    assert_false(process_list_is_stale(process, 9, 140));
    assert_false(process_list_is_stale(process, 12, 140));
    struct mapping_event event = {
        .start = 0x10000, .length = 0x4000, .path = "/no/such/a", .inode = 7, .time_ns = 150};
    process_map(&table->processes, process, &event);
    assert_false(process_list_is_stale(process, 9, 160)); /* more code, and none is gone */
    event.path = "/no/such/b";
    event.inode = 8;
    event.time_ns = 200;
    process_map(&table->processes, process, &event);
    assert_true(process_list_is_stale(process, 12, 210));
    process_note_list(process, UINT32_MAX, 220);
    assert_false(process_list_is_stale(process, 1, 230)); /* numbers begin anew */
}

/* Records as the kernel sends them: a program starts, maps, is sampled, forks and executes. */
static void records_become_a_profile(void **state)
{
    (void)state;
    struct profile profile;
    struct recorder recorder;
    profile_init(&profile, PROFILE_ALL & ~PROFILE_TIMES);
    recorder_init(&recorder, 100);
    recorder_into(&recorder, &profile);
    struct perf_record named = {
        .kind = PERF_NAMED, .pid = 70, .tid = 70, .path = "shop", .executed = true};
    struct perf_record mapped = {.kind = PERF_MAPPED,
                                 .pid = 70,
                                 .tid = 70,
                                 .start = 0x1000,
                                 .length = 0x1000,
                                 .offset = 0x200,
                                 .path = "/no/such/shop"};
    recorder_take(&recorder, &named);
    recorder_take(&recorder, &mapped);
    uint64_t kernel[] = {(uint64_t)-128, 0xffffffff81000010, 0xffffffff81000020};
    struct perf_record sample = {.kind = PERF_SAMPLE,
                                 .pid = 70,
                                 .tid = 71,
                                 .period = 10000000,
                                 .kernel_frames = kernel,
                                 .kernel_count = 3,
                                 .has_user = true,
                                 .ip = 0x1040};
    recorder_take(&recorder, &sample);
    recorder_take(&recorder, &sample);
    assert_int_equal(recorder.samples, 2);
    assert_int_equal(profile.samples.count, 1);
    assert_int_equal(profile.samples.values[recorder.samples_type][0], 2);
    assert_int_equal(profile.samples.values[recorder.cpu_type][0], 20000000);

    /* From the leaf: two kernel frames, the user's address as an offset in its file, and the mark
     * that the walk did not reach the first frame. */
    uint32_t node = profile.samples.node[0];
    const struct profile_frame *leaf = &profile.frames[profile.nodes[node].frame];
    assert_int_equal(leaf->kind, FRAME_KERNEL);
    assert_true(leaf->address == 0xffffffff81000010);
    node = profile.nodes[profile.nodes[node].parent].parent;
    const struct profile_frame *user = &profile.frames[profile.nodes[node].frame];
    assert_int_equal(user->address, 0x240);
    assert_string_equal(profile_text(&profile, profile.mappings[user->mapping].file),
                        "/no/such/shop");
    node = profile.nodes[node].parent;
    const struct profile_frame *mark = &profile.frames[profile.nodes[node].frame];
    assert_int_equal(profile_text(&profile, profile.functions[mark->function].name)[0], '[');
    assert_int_equal(profile.nodes[node].parent, 0);

    /* A child has its parent's mappings; executing another program ends that. */
    recorder_take(&recorder, &(struct perf_record){
                                 .kind = PERF_STARTED, .pid = 80, .tid = 80, .parent_pid = 70});
    assert_non_null(process_find(processes_get(&recorder.processes, 80), 0x1040));
    named.pid = named.tid = 80;
    recorder_take(&recorder, &named);
    assert_null(process_find(processes_get(&recorder.processes, 80), 0x1040));

    /* A thread has the process's name until it takes one. */
    const struct process *shop = processes_get(&recorder.processes, 70);
    assert_string_equal(processes_thread_name(&recorder.processes, shop, 71), "shop");
    recorder_take(&recorder,
                  &(struct perf_record){
                      .kind = PERF_NAMED, .pid = 70, .tid = 71, .path = "worker-with-a-long-name"});
    assert_string_equal(processes_thread_name(&recorder.processes, shop, 71), "worker-with-a-l");
    assert_string_equal(processes_thread_name(&recorder.processes, shop, 70), "shop");

    /* After lost events nothing that they told is believed. */
    recorder_take(&recorder, &(struct perf_record){.kind = PERF_LOST, .lost = 5});
    assert_int_equal(recorder.lost_events, 5);
    assert_false(processes_find(&recorder.processes, 70)->known);
    recorder_release(&recorder);
    profile_release(&profile);
}

/* /proc is read while events wait: those from before say nothing new of the process. */
static void events_before_proc_was_read_are_old(void **state)
{
    (void)state;
    struct recorder recorder;
    recorder_init(&recorder, 100);
    uint32_t pid = (uint32_t)getpid();
    struct process *self = processes_get(&recorder.processes, pid);
    process_catch_up(&recorder.processes, self);
    process_note_list(self, 3, self->read_ns);
    self->told_ns = self->read_ns + 1;
    uint64_t here = (uint64_t)(uintptr_t)events_before_proc_was_read_are_old;
    size_t count = self->count;
    assert_non_null(process_find(self, here));
    struct perf_record record = {.kind = PERF_NAMED,
                                 .pid = pid,
                                 .tid = pid,
                                 .parent_pid = 1,
                                 .path = "before",
                                 .time_ns = self->read_ns - 1,
                                 .executed = true};
    recorder_take(&recorder, &record);
    assert_non_null(process_find(self, here));
    assert_false(process_list_is_stale(self, 3, self->read_ns));
    record.kind = PERF_MAPPED;
    record.start = 0x1000;
    record.length = 0x1000;
    recorder_take(&recorder, &record);
    assert_int_equal(self->count, count);
    record.kind = PERF_STARTED;
    recorder_take(&recorder, &record);
    record.kind = PERF_ENDED;
    recorder_take(&recorder, &record);
    assert_ptr_equal(processes_find(&recorder.processes, pid), self);
    assert_int_equal(self->ended_ns, 0);
    record.kind = PERF_NAMED;
    record.time_ns = self->read_ns + 2;
    recorder_take(&recorder, &record);
    assert_null(process_find(self, here));
    assert_true(process_list_is_stale(self, 3, record.time_ns));
    recorder_release(&recorder);
}

/* The frame of a sample's innermost user function. */
static const struct profile_frame *sampled(struct recorder *recorder, uint32_t pid, uint64_t ip)
{
    uint64_t before = recorder->samples;
    recorder_take(recorder, &(struct perf_record){.kind = PERF_SAMPLE,
                                                  .pid = pid,
                                                  .tid = pid,
                                                  .time_ns = (uint64_t)monotonic_ns(),
                                                  .has_user = true,
                                                  .ip = ip});
    assert_int_equal(recorder->samples, before + 1);
    const struct profile *profile = recorder->profile;
    uint32_t node = profile->samples.node[profile->samples.count - 1];
    return &profile->frames[profile->nodes[node].frame];
}

/* Code of a file is in its file, code of no file is a JIT's, and all else is in no known mapping.
 */
static void addresses_are_placed(void **state)
{
    (void)state;
    struct profile profile;
    struct recorder recorder;
    profile_init(&profile, PROFILE_ALL);
    recorder_init(&recorder, 100);
    recorder_into(&recorder, &profile);
    struct perf_record mapped = {
        .kind = PERF_MAPPED, .pid = 4194000, .start = 0x1000, .length = 0x1000, .path = "//anon"};
    recorder_take(
        &recorder,
        &(struct perf_record){
            .kind = PERF_NAMED, .pid = 4194000, .tid = 4194000, .path = "shop", .executed = true});
    recorder_take(&recorder, &mapped);
    mapped.start = 0x8000;
    mapped.path = "/no/such/shop";
    recorder_take(&recorder, &mapped);
    const struct profile_frame *frame = sampled(&recorder, 4194000, 0x1040);
    assert_string_equal(profile_text(&profile, profile.mappings[frame->mapping].file),
                        "[jit 4194000]");
    frame = sampled(&recorder, 4194000, 0x8040);
    assert_string_equal(profile_text(&profile, profile.mappings[frame->mapping].file),
                        "/no/such/shop");
    assert_int_equal(recorder.unplaced, 0);
    frame = sampled(&recorder, 4194000, 0x99999);
    assert_string_equal(profile_text(&profile, profile.functions[frame->function].name),
                        "[unknown mapping]");
    assert_int_equal(recorder.unplaced, 1);

    /* Events of our own process were lost: /proc knows. */
    uint32_t self = (uint32_t)getpid();
    uint64_t here = (uint64_t)(uintptr_t)addresses_are_placed;
    recorder_take(&recorder,
                  &(struct perf_record){
                      .kind = PERF_NAMED, .pid = self, .tid = self, .path = "x", .executed = true});
    /* But not yet between two programs: it may know the next. */
    frame = sampled(&recorder, self, here);
    assert_string_equal(profile_text(&profile, profile.functions[frame->function].name),
                        "[unknown mapping]");
    mapped.pid = self;
    recorder_take(&recorder, &mapped);
    frame = sampled(&recorder, self, here);
    const char *file = profile_text(&profile, profile.mappings[frame->mapping].file);
    assert_non_null(strstr(file, "test_capture"));
    assert_int_equal(recorder.unplaced, 2);

    /* Only samples of the recording's own time count. */
    recorder.until_ns = (uint64_t)monotonic_ns() - 1;
    recorder_take(&recorder, &(struct perf_record){.kind = PERF_SAMPLE,
                                                   .pid = self,
                                                   .tid = self,
                                                   .time_ns = (uint64_t)monotonic_ns()});
    assert_int_equal(recorder.samples, 5);
    recorder_release(&recorder);
    profile_release(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(found_by_address, setup, teardown),
        cmocka_unit_test_setup_teardown(new_mappings_take_the_place_of_old_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(absurd_mappings, setup, teardown),
        cmocka_unit_test_setup_teardown(our_own_process, setup, teardown),
        cmocka_unit_test_setup_teardown(ends_and_comes_again, setup, teardown),
        cmocka_unit_test_setup_teardown(replaced_code_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_are_stale_when_code_was_replaced, setup, teardown),
        cmocka_unit_test(records_become_a_profile),
        cmocka_unit_test(events_before_proc_was_read_are_old),
        cmocka_unit_test(addresses_are_placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
