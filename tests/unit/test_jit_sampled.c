// SPDX-License-Identifier: Apache-2.0
// Names of sampled code within limits: what is kept, how long large files take, and that whoever
// writes too much loses his own names and nobody else's.

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/limits/shares.h"
#include "symbol/jit/jit.h"
#include "unit.h"

#define HOSTILE_USER 61234
#define CODE_BYTES 64

/* ---- shares ---- */

static void an_owner_may_hold_what_is_free(void **state)
{
    (void)state;
    struct shares shares;
    shares_init(&shares, 1200);
    assert_int_equal(shares_left(&shares, 1), 600);
    assert_false(shares_take(&shares, 1, 601));
    assert_true(shares_take(&shares, 1, 600));
    assert_false(shares_take(&shares, 1, 1));
    /* The next one gets half of what is left, and so on. */
    assert_int_equal(shares_left(&shares, 2), 300);
    assert_true(shares_take(&shares, 2, 300));
    assert_false(shares_take(&shares, 2, 1));
    /* Who held more than it may have now keeps it, and gets more when the others have left. */
    shares_give(&shares, 2, 1000);
    shares_give(&shares, 1, 200);
    assert_int_equal(shares.held, 400);
    assert_true(shares_take(&shares, 1, 200));
    assert_int_equal(shares.list[1].refused, 2);
    shares_tidy(&shares);
    assert_int_equal(shares.count, 2);
    assert_int_equal(shares_left(&shares, 1), 0);
    shares_release(&shares);
}

static void too_many_owners_are_one(void **state)
{
    (void)state;
    struct shares shares;
    shares_init(&shares, 1u << 30);
    for (uint32_t owner = 0; owner < SHARES_OWNERS_MAX + 100; owner++)
        assert_true(shares_take(&shares, owner, 10));
    assert_int_equal(shares.count, SHARES_OWNERS_MAX + 1);
    assert_int_equal(shares.list[0].held, 1000);
    shares_release(&shares);
}

/* ---- processes with maps ---- */

static void map_path(char path[64], pid_t pid)
{
    snprintf(path, 64, "/tmp/perf-%d.map", (int)pid);
}

/* A process of a user that does nothing, with nothing in its map yet. */
static pid_t start_process(uid_t user)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        if (user && setuid(user) < 0)
            _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* which another user would clear */
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void end_process(pid_t pid)
{
    char path[64];
    map_path(path, pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unlink(path);
}

/* Lines of code that follows each other from `start` on, or that is all in one place. */
static void put_map(pid_t pid, uid_t user, uint64_t start, size_t lines, const char *word,
                    bool one_place)
{
    char path[64];
    map_path(path, pid);
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < lines; i++)
        fprintf(file, "%llx %x %s_%zu\n",
                (unsigned long long)(start + (one_place ? 0 : i * CODE_BYTES)), CODE_BYTES, word,
                i);
    assert_int_equal(fchown(fileno(file), user, user), 0);
    assert_int_equal(fclose(file), 0);
}

/* ---- samples ---- */

static void sample(struct profile *profile, pid_t pid, uint64_t address)
{
    char name[JIT_MAPPING_NAME_BYTES];
    jit_mapping_name(name, (uint32_t)pid);
    struct profile_mapping mapping = {.limit = UINT64_MAX, .file = profile_cstring(profile, name)};
    profile_frame(profile, &(struct profile_frame){.address = address,
                                                   .mapping = profile_mapping(profile, &mapping),
                                                   .kind = FRAME_NATIVE});
}

static struct jit_names *limited(uint64_t read_bytes)
{
    struct jit_names *names = jit_names_new();
    jit_names_limit(names, &(struct jit_limits){.memory_bytes = 4u << 20,
                                                .process_bytes = 1u << 20,
                                                .read_bytes = read_bytes});
    return names;
}

static const char *name_of(struct jit_names *names, pid_t pid, uint64_t address)
{
    struct symbol_frame frame;
    enum frame_kind kind;
    return jit_names_find(names, (uint32_t)pid, address, 0, &frame, &kind) ? frame.name : "";
}

static void only_what_was_sampled_is_kept(void **state)
{
    (void)state;
    struct jit_names *names = limited(64u << 20);
    pid_t pid = start_process(0);
    struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    put_map(pid, geteuid(), 0x10000, 100000, "f", false);
    sample(&profile, pid, 0x10000 + 7 * CODE_BYTES + 5);
    sample(&profile, pid, 0x10000 + 99999 * CODE_BYTES);
    sample(&profile, pid, 0x100);
    jit_names_load_sampled(names, &profile);
    assert_string_equal(name_of(names, pid, 0x10000 + 7 * CODE_BYTES + 9), "f_7");
    assert_string_equal(name_of(names, pid, 0x10000 + 99999 * CODE_BYTES), "f_99999");
    assert_string_equal(name_of(names, pid, 0x10000 + 8 * CODE_BYTES), "");
    assert_string_equal(name_of(names, pid, 0x100), "");
    assert_int_equal(jit_names_stats(names).codes, 2);
    assert_true(jit_names_stats(names).bytes < 65536);
    /* Another address: the file is read again. What is written on is read, too. */
    sample(&profile, pid, 0x10000 + 8 * CODE_BYTES);
    jit_names_load_sampled(names, &profile);
    assert_string_equal(name_of(names, pid, 0x10000 + 8 * CODE_BYTES), "f_8");
    assert_string_equal(name_of(names, pid, 0x10000 + 7 * CODE_BYTES), "f_7");
    char path[64];
    map_path(path, pid);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("100 20 late\n10000 40 other\n", file);
    fclose(file);
    jit_names_load_sampled(names, &profile);
    assert_string_equal(name_of(names, pid, 0x110), "late");
    /* Another file in its place. */
    put_map(pid, geteuid(), 0x10000, 1000, "g", false);
    jit_names_load_sampled(names, &profile);
    assert_string_equal(name_of(names, pid, 0x10000 + 7 * CODE_BYTES), "g_7");
    struct jit_excess excess;
    assert_int_equal(jit_names_excess(names, &excess, 1), 0);
    /* Without samples it is forgotten. */
    struct profile nothing;
    profile_init(&nothing, PROFILE_ALL);
    for (int i = 0; i < 8; i++)
        jit_names_load_sampled(names, &nothing);
    assert_int_equal(jit_names_stats(names).processes, 0);
    assert_int_equal(jit_names_stats(names).bytes, 0);
    profile_release(&nothing);
    profile_release(&profile);
    jit_names_free(names);
    end_process(pid);
}

/* Files of gigabytes, of holes, and of names without end; and somebody else's, which are small. */
static void the_hostile_lose_their_own_names(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        puts("Only root can give files to other users.");
        skip();
    }
    struct jit_names *names = limited(1u << 20);
    pid_t victim = start_process(0), large = start_process(HOSTILE_USER),
          holes = start_process(HOSTILE_USER + 1), names_only = start_process(HOSTILE_USER + 2);
    struct profile profile;
    char path[64];
    profile_init(&profile, PROFILE_ALL);
    put_map(victim, 0, 0x10000, 2000, "f", false);
    put_map(large, HOSTILE_USER, 0x10000, 200000, "hostile", false);
    put_map(names_only, HOSTILE_USER + 2, 0x10000, 200000, "a_name_that_is_another_each_time",
            true);
    put_map(holes, HOSTILE_USER + 1, 0x10000, 10, "g", false);
    map_path(path, holes);
    assert_int_equal(truncate(path, 1ll << 36), 0);
    sample(&profile, victim, 0x10000 + 1234 * CODE_BYTES);
    sample(&profile, large, 0x10000 + 199999 * CODE_BYTES);
    sample(&profile, holes, 0x10000);
    sample(&profile, names_only, 0x10000);
    jit_names_load_sampled(names, &profile);
    assert_string_equal(name_of(names, victim, 0x10000 + 1234 * CODE_BYTES), "f_1234");
    assert_string_equal(name_of(names, large, 0x10000 + 199999 * CODE_BYTES), "");
    struct jit_excess excess[4];
    assert_int_equal(jit_names_excess(names, excess, 4), 3);
    for (int i = 0; i < 3; i++)
        assert_in_range(excess[i].user, HOSTILE_USER, HOSTILE_USER + 2);
    /* Memory that is given back doesn't take along who was hostile. */
    jit_names_forget(names);
    assert_int_equal(jit_names_stats(names).bytes, 0);
    assert_string_equal(name_of(names, victim, 0x10000 + 1234 * CODE_BYTES), "");
    assert_int_equal(jit_names_excess(names, excess, 4), 3);
    /* In time even a large file is read to its end; memory stays within the limit. */
    for (int round = 0; round < 60; round++) {
        jit_names_load_sampled(names, &profile);
        assert_true(jit_names_stats(names).bytes <= 4u << 20);
    }
    assert_string_equal(name_of(names, victim, 0x10000 + 1234 * CODE_BYTES), "f_1234");
    assert_string_equal(name_of(names, large, 0x10000 + 199999 * CODE_BYTES), "hostile_199999");
    profile_release(&profile);
    jit_names_free(names);
    end_process(victim);
    end_process(large);
    end_process(holes);
    end_process(names_only);
}

static void a_pid_that_comes_again_is_another_process(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        puts("Only root can give files to other users.");
        skip();
    }
    struct jit_names *names = limited(1u << 20);
    struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    pid_t pid = start_process(0);
    put_map(pid, geteuid(), 0x10000, 10, "first", false);
    sample(&profile, pid, 0x10000);
    jit_names_load_sampled(names, &profile);
    assert_string_equal(name_of(names, pid, 0x10000), "first_0");
    end_process(pid);
    usleep(20000); /* the kernel counts starts in ticks */
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
    long again = syscall(SYS_clone3, &args, sizeof(args));
    if (!again) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    if (again == pid) { /* unless somebody else has it by now */
        jit_names_load_sampled(names, &profile);
        assert_string_equal(name_of(names, pid, 0x10000), "");
        end_process(pid);
    }
    profile_release(&profile);
    jit_names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_may_hold_what_is_free),
        cmocka_unit_test(too_many_owners_are_one),
        cmocka_unit_test(only_what_was_sampled_is_kept),
        cmocka_unit_test(the_hostile_lose_their_own_names),
        cmocka_unit_test(a_pid_that_comes_again_is_another_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
