// SPDX-License-Identifier: Apache-2.0
// Modules: the very file that a process has mapped, whatever has become of its name; and no more
// open files and rows than there may be.

#include <fcntl.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "capture/record/module_file.h"
#include "elf_image.h"
#include "unit.h"

#define BUILD_ID_AT (IMAGE_NOTES + 24 + 16)
#define NOBODY 65534

static struct modules modules;
static char folder[64];

static int begin(void **state)
{
    int r = enter_folder(state);
    snprintf(folder, sizeof(folder), "%s", r ? "" : (char *)*state);
    modules_init(&modules);
    return r;
}

static int end(void **state)
{
    modules_release(&modules);
    return leave_folder(state);
}

/* The small binary with another build ID: cafebaNN. */
static void make_binary(const char *path, uint8_t number)
{
    _cleanup_buffer_ struct buffer image = {0};
    make_image(&image);
    image.data[BUILD_ID_AT + 3] = (char)number;
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755);
    if (fd < 0 || write(fd, image.data, image.length) != (ssize_t)image.length || close(fd) < 0)
        abort();
}

static const char *full_path(const char *name)
{
    static char path[200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* What /proc/PID/maps says of the executable mapping whose path has this in it. */
static bool find_mapping(pid_t pid, const char *part, struct module_request *ret_request,
                         char ret_path[4096])
{
    char name[64], line[4600], protection[5];
    unsigned major_number, minor_number;
    bool found = false;
    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(name, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        uint64_t start, limit, inode;
        found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %x:%x %" SCNu64 " %4095[^\n]", &start,
                       &limit, protection, &major_number, &minor_number, &inode, ret_path) == 7 &&
                strstr(ret_path, part) && protection[2] == 'x';
        if (found)
            *ret_request = (struct module_request){.path = ret_path,
                                                   .pid = (uint32_t)pid,
                                                   .start = start,
                                                   .end = limit,
                                                   .device = makedev(major_number, minor_number),
                                                   .inode = inode};
    }
    if (file)
        fclose(file);
    return found;
}

static void *map(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *at = mmap(NULL, IMAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (fd < 0 || at == MAP_FAILED)
        abort();
    close(fd);
    return at;
}

static size_t open_files(void)
{
    size_t count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Through the path that naming would use. */
static void assert_content(const struct module *module, uint8_t number)
{
    char path[MODULE_PATH_BYTES];
    uint8_t id[4] = {0};
    assert_non_null(module_open_path(module, path));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, id, sizeof(id), BUILD_ID_AT), 4);
    close(fd);
    assert_int_equal(id[3], number);
}

/* Somebody has mounted something else over a file that is mapped. To open a device can do
 * something, so what is no regular file isn't opened at all. */
static void other_things_are_not_opened(void **state)
{
    (void)state;
    char events[4096];
    struct stat found;
    const char *path = full_path("thing");
    assert_int_equal(mkfifo(path, 0600), 0);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    struct module_request request = {
        .path = path, .pid = (uint32_t)getpid(), .ancestors = {(uint32_t)getppid()}};
    assert_true(module_file_find(&modules, &request, &found) < 0);
    assert_int_equal(module_file_in_root((uint32_t)getpid(), path), -EINVAL);
    assert_int_equal(read(watch, events, sizeof(events)), -1);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* it would have been seen */
    assert_true(read(watch, events, sizeof(events)) > 0);
    close(fd);
    close(watch);
}

static void what_is_no_file(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "[heap]",
        "[stack]",
        "[vsyscall]",
        "[uprobes]",
        "//anon",
        "anon_inode:[x]",
        "/memfd:jit (deleted)",
        "/dev/zero",
        "/dev/shm/code",
        "/SYSV00000000 (deleted)",
        "[vdso] ",
        "/anon_hugepage (deleted)",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        assert_null(modules_get(&modules, &(struct module_request){.path = names[i]}));
    assert_int_equal(modules.count, 0);
}

static void the_vdso(void **state)
{
    (void)state;
    char path[MODULE_PATH_BYTES];
    struct module_request request = {.path = "[vdso]", .pid = 1, .inode = 7};
    struct module *module = modules_get(&modules, &request);
    if (!module->readable) {
        print_message("This process has no vDSO.\n");
        skip();
    }
    request.pid = 2;
    request.inode = 0;
    assert_ptr_equal(modules_get(&modules, &request), module);
    assert_non_null(module_rows(&modules, module));
    assert_null(module_open_path(module, path));
}

static void files_by_name_only(void **state)
{
    (void)state;
    make_binary("a", 1);
    struct module_request request = {.path = full_path("a")};
    struct module *module = modules_get(&modules, &request);
    assert_true(module->readable);
    assert_string_equal(module->build_id, "cafeba01");
    assert_ptr_equal(modules_get(&modules, &request), module);
    assert_content(module, 1);
    uint64_t bias = 0;
    assert_true(module_bias(module, 0x7f0000001000, IMAGE_CODE, &bias));
    assert_int_equal(bias, 0x7f0000001000 - IMAGE_CODE_ADDRESS);
    assert_false(module_bias(module, 0x7f0000001000, 0x100000, &bias));
    const struct unwind_rows *rows = module_rows(&modules, module);
    assert_non_null(rows);
    assert_int_not_equal(unwind_rows_find(rows, IMAGE_CODE_ADDRESS), UNWIND_RULE_NONE);
}

static void what_can_not_be_read(void **state)
{
    (void)state;
    char path[MODULE_PATH_BYTES];
    uint64_t bias;
    struct module_request request = {.path = "/no/such/file", .pid = 4194304};
    struct module *module = modules_get(&modules, &request);
    assert_false(module->readable);
    assert_ptr_equal(modules_get(&modules, &request), module);
    assert_null(module_rows(&modules, module));
    assert_null(module_open_path(module, path));
    assert_false(module_bias(module, 0, 0, &bias));
    /* Not ELF, a FIFO, a directory. */
    static const char *const names[] = {"text", "fifo", "folder"};
    assert_int_equal(close(open("text", O_CREAT | O_WRONLY | O_CLOEXEC, 0644)), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(mkdir("folder", 0700), 0);
    size_t before = open_files();
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        request.path = full_path(names[i]);
        module = modules_get(&modules, &request);
        assert_false(module->readable);
        assert_null(module_rows(&modules, module));
    }
    assert_int_equal(open_files(), before);
}

/* The kernel ends a process in this mode that makes any call but read, write and exit. */
static void known_files_cost_no_call(void **state)
{
    (void)state;
    make_binary("a", 1);
    struct stat found;
    assert_int_equal(stat("a", &found), 0);
    struct module_request request = {
        .path = full_path("a"), .device = found.st_dev, .inode = found.st_ino};
    pid_t child = fork();
    if (!child) {
        struct module *module = modules_get(&modules, &request);
        unsigned wrong = !module->readable;
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) < 0)
            _exit(77);
        for (int i = 0; i < 1000; i++)
            wrong += modules_get(&modules, &request) != module;
        syscall(SYS_exit, wrong ? 1 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("This kernel has no seccomp.\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* With a mapping's own link, and without the privilege that it needs. */
static void deleted(void **state)
{
    (void)state;
    char path[4096];
    struct module_request request;
    make_binary("a", 1);
    void *mapped = map("a");
    assert_int_equal(unlink("a"), 0);
    make_binary("a", 2); /* another file of that name */
    assert_true(find_mapping(getpid(), full_path("a"), &request, path));
    assert_non_null(strstr(request.path, " (deleted)"));

    modules.no_map_files = true;
    struct module *module = modules_get(&modules, &request);
    assert_false(module->readable); /* and not the other file */
    assert_string_equal(module->path, full_path("a"));
    assert_string_equal(module->build_id, "");
    modules.no_map_files = false;
    module->checked_ns = 0; /* a second later */
    struct module *again = modules_get(&modules, &request);
    if (modules.no_map_files) {
        print_message("Opening a file through a mapping of it needs a capability.\n");
        munmap(mapped, IMAGE_BYTES);
        skip();
    }
    assert_ptr_not_equal(again, module);
    assert_string_equal(again->build_id, "cafeba01");
    assert_string_equal(again->path, full_path("a"));
    munmap(mapped, IMAGE_BYTES); /* as if the process had ended */
    assert_content(again, 1);
    assert_non_null(module_rows(&modules, again));
}

static void replaced(void **state)
{
    (void)state;
    struct stat found;
    char path[MODULE_PATH_BYTES];
    make_binary("a", 1);
    assert_int_equal(stat("a", &found), 0);
    struct module_request request = {
        .path = full_path("a"), .device = found.st_dev, .inode = found.st_ino};
    struct module *old = modules_get(&modules, &request);
    make_binary("b", 2);
    assert_int_equal(rename("b", "a"), 0);
    /* The old file is still what it was, for who has it mapped. */
    assert_ptr_equal(modules_get(&modules, &request), old);
    old->checked_ns = 0;
    assert_ptr_equal(modules_get(&modules, &request), old);
    assert_content(old, 1);
    assert_int_equal(stat("a", &found), 0);
    request.inode = found.st_ino;
    struct module *new = modules_get(&modules, &request);
    assert_ptr_not_equal(new, old);
    assert_string_equal(new->build_id, "cafeba02");
    /* Once it is closed it is gone: its name leads to the other. */
    module_file_close(&modules, old);
    assert_null(module_open_path(old, path));
    assert_null(module_rows(&modules, old));
    assert_content(new, 2);
}

static void changed_in_place(void **state)
{
    (void)state;
    struct stat found;
    for (int closed = 0; closed < 2; closed++) {
        make_binary("a", 1);
        assert_int_equal(stat("a", &found), 0);
        struct module_request request = {
            .path = full_path("a"), .device = found.st_dev, .inode = found.st_ino};
        struct module *old = modules_get(&modules, &request);
        struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
        if (closed)
            module_file_close(&modules, old);
        make_binary("a", 3);
        assert_int_equal(utimensat(AT_FDCWD, "a", times, 0), 0);
        assert_ptr_equal(modules_get(&modules, &request), old); /* seen a moment ago */
        old->checked_ns = 0;
        struct module *new = modules_get(&modules, &request);
        assert_ptr_not_equal(new, old);
        assert_string_equal(new->build_id, "cafeba03");
        assert_ptr_equal(modules_get(&modules, &request), new);
        assert_int_equal(unlink("a"), 0);
    }
}

/* A child in a mount namespace of its own, with a binary that only it can see, mapped. */
static pid_t start_elsewhere(const char *options)
{
    int pipe_ends[2];
    char ready = 0;
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bool good = unshare(CLONE_NEWNS) == 0 &&
                    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                    mount("none", "place", "tmpfs", 0, NULL) == 0;
        if (good && options) {
            mkdir("place/lower", 0755);
            mkdir("place/upper", 0755);
            mkdir("place/work", 0755);
            mkdir("place/merged", 0755);
            make_binary("place/lower/hidden", 9);
            good = mount("none", "place/merged", "overlay", 0, options) == 0;
        } else if (good) {
            mkdir("place/merged", 0755);
            make_binary("place/merged/hidden", 9);
        }
        if (good)
            map("place/merged/hidden");
        if (write(pipe_ends[1], good ? "y" : "n", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(pipe_ends[0], &ready, 1), 1);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    if (ready == 'y')
        return child;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return -1;
}

static void elsewhere(const char *options)
{
    char path[4096], open_path[MODULE_PATH_BYTES];
    struct module_request request;
    assert_int_equal(mkdir("place", 0755), 0);
    pid_t child = start_elsewhere(options);
    if (child < 0) {
        print_message("This user can't have a mount namespace of that kind.\n");
        skip();
    }
    bool found = find_mapping(child, "hidden", &request, path);
    struct modules *by_path = memory_zalloc(1, sizeof(*by_path));
    modules_init(by_path);
    by_path->no_map_files = true;
    struct module *module = modules_get(&modules, &request);
    struct module *same = modules_get(by_path, &request);
    module_file_close(&modules, module); /* and opened again through the process */
    bool reopened = module_rows(&modules, module) && module->fd >= 0;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(found);
    assert_true(module->readable && same->readable && reopened);
    assert_string_equal(module->build_id, "cafeba09");
    assert_string_equal(same->build_id, "cafeba09");
    /* The process and its namespace are gone, but not the file. */
    assert_content(module, 9);
    module_file_close(&modules, module);
    assert_null(module_open_path(module, open_path));
    modules_release(by_path);
    free(by_path);
}

static void in_another_mount_namespace(void **state)
{
    (void)state;
    elsewhere(NULL);
}

/* Where mappings have another device than stat gives. */
static void on_an_overlay(void **state)
{
    (void)state;
    elsewhere("lowerdir=place/lower,upperdir=place/upper,workdir=place/work");
}

static void few_files_are_open(void **state)
{
    (void)state;
    enum { FILES = 20, LIMIT = 4 };
    struct module *list[FILES];
    char name[16], path[MODULE_PATH_BYTES];
    size_t before = open_files();
    modules.open_max = LIMIT;
    for (uint8_t i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "file%u", i);
        make_binary(name, i);
        list[i] = modules_get(&modules, &(struct module_request){.path = full_path(name)});
        assert_true(list[i]->readable);
        assert_true(open_files() <= before + LIMIT);
        if (i == 3 || i == 5) /* never to be opened again */
            assert_int_equal(unlink(name), 0);
    }
    assert_int_equal(open_files(), before + LIMIT);
    for (uint8_t i = 0; i < FILES; i++) {
        assert_content(list[i], i);
        assert_non_null(module_rows(&modules, list[i]));
        assert_true(open_files() <= before + LIMIT);
    }
    assert_true(list[3]->fd >= 0 && list[5]->fd >= 0);
    /* More deleted ones than may be open: the longest unused is lost. */
    for (uint8_t i = 10; i < 14; i++) {
        snprintf(name, sizeof(name), "file%u", i);
        assert_true(modules_get(&modules, &(struct module_request){.path = full_path(name)}) ==
                    list[i]);
        assert_int_equal(unlink(name), 0);
    }
    assert_null(module_open_path(list[3], path));
    assert_content(list[13], 13);
}

static void rows_come_and_go(void **state)
{
    (void)state;
    enum { FILES = 10 };
    struct module *list[FILES];
    char name[16];
    for (uint8_t i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "file%u", i);
        make_binary(name, i);
        list[i] = modules_get(&modules, &(struct module_request){.path = full_path(name)});
    }
    assert_int_equal(modules.compiled, 0); /* nothing before it is asked for */
    const struct unwind_rows *rows = module_rows(&modules, list[0]);
    uint64_t each = unwind_rows_bytes(rows);
    uint16_t rule = unwind_rows_find(rows, IMAGE_CODE_ADDRESS + 4);
    modules.held_bytes_soft = modules.held_bytes_max = 3 * each;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < FILES; i++) {
            rows = module_rows(&modules, list[i]);
            assert_non_null(rows);
            assert_int_equal(unwind_rows_find(rows, IMAGE_CODE_ADDRESS + 4), rule);
            assert_true(modules.held_bytes <= 3 * each);
            assert_int_equal(modules.held_bytes, modules.held_count * each);
        }
    assert_true(modules.released > FILES);
    /* Those in use stay while they are idle for a short time only. */
    modules.held_bytes_max = 1 << 20;
    for (int i = 0; i < FILES; i++)
        module_rows(&modules, list[i]);
    assert_int_equal(modules.held_count, FILES);
    for (int i = 0; i < FILES; i++)
        list[i]->rows_used_ns -= 2 * MODULES_ROWS_MOMENT_NS;
    make_binary("last", 77);
    struct module *last =
        modules_get(&modules, &(struct module_request){.path = full_path("last")});
    assert_non_null(module_rows(&modules, last));
    assert_int_equal(modules.held_count, 3);
    /* In any case, after a while. */
    last->rows_used_ns -= MODULES_ROWS_IDLE_NS;
    modules_tidy(&modules);
    assert_int_equal(modules.held_count, 2);
    assert_int_equal(modules.held_bytes, 2 * each);
    assert_int_equal(unwind_rows_find(module_rows(&modules, last), IMAGE_CODE_ADDRESS + 4), rule);
    /* A single file with more than all may have is held all the same. */
    modules.held_bytes_soft = modules.held_bytes_max = 1;
    assert_non_null(module_rows(&modules, list[0]));
    assert_non_null(module_rows(&modules, list[1]));
    assert_int_equal(modules.held_count, 1);
}

static void equal_files_share_rows(void **state)
{
    (void)state;
    make_binary("a", 1);
    make_binary("b", 1);
    make_binary("c", 2);
    make_binary("d", 1);
    bool is_root = geteuid() == 0;
    if (is_root)
        assert_int_equal(chown("d", NOBODY, NOBODY), 0);
    struct module *list[4];
    for (int i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i)};
        list[i] = modules_get(&modules, &(struct module_request){.path = full_path(name)});
        assert_non_null(module_rows(&modules, list[i]));
    }
    assert_ptr_not_equal(list[0], list[1]);
    assert_ptr_equal(module_rows(&modules, list[0]), module_rows(&modules, list[1]));
    assert_ptr_equal(list[1]->same, list[0]);
    assert_ptr_equal(list[2]->same, list[2]);
    /* Whoever may write a file may give it any build ID. */
    assert_ptr_equal(list[3]->same, list[is_root ? 3 : 0]);
    /* The one that stands for both is gone. */
    modules.held_bytes_soft = modules.held_bytes_max = 1;
    assert_non_null(module_rows(&modules, list[2]));
    module_file_close(&modules, list[0]);
    assert_int_equal(unlink("a"), 0);
    assert_non_null(module_rows(&modules, list[1]));
}

/* This program has rows enough to be worth a file. */
static void rows_from_the_cache(void **state)
{
    (void)state;
    setenv("ASSAY_CACHE", full_path("cache"), 1);
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    assert_true(length > 0);
    path[length] = '\0';
    struct unwind_row first[1000];
    for (int run = 0; run < 2; run++) {
        struct modules *some = memory_zalloc(1, sizeof(*some));
        modules_init(some);
        struct module *module = modules_get(some, &(struct module_request){.path = path});
        const struct unwind_rows *rows = module_rows(some, module);
        assert_true(rows && rows->row_count > ARRAY_LENGTH(first));
        if (!module->build_id[0] || !module->trusted) {
            print_message("This program has no build ID, or belongs to a third user.\n");
            modules_release(some);
            free(some);
            skip();
        }
        assert_int_equal(some->compiled, !run);
        assert_int_equal(some->cache.hits, run);
        /* Rules are numbered in the order in which they come, in both. */
        if (run)
            for (size_t i = 0; i < ARRAY_LENGTH(first); i++)
                assert_int_equal(rows->rows[i].offset, first[i].offset);
        memcpy(first, rows->rows, sizeof(first));
        modules_release(some);
        free(some);
    }
    setenv("ASSAY_CACHE", "", 1);
}

static void no_more_than_the_limit(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i <= MODULES_MAX; i++) {
        snprintf(name, sizeof(name), "/no/such/%d", i);
        struct module *module = modules_get(&modules, &(struct module_request){.path = name});
        assert_int_equal(module == NULL, i == MODULES_MAX);
    }
    assert_int_equal(modules.refused, 1);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_no_file),
        CASE(other_things_are_not_opened),
        CASE(the_vdso),
        CASE(files_by_name_only),
        CASE(what_can_not_be_read),
        CASE(known_files_cost_no_call),
        CASE(deleted),
        CASE(replaced),
        CASE(changed_in_place),
        CASE(in_another_mount_namespace),
        CASE(on_an_overlay),
        CASE(few_files_are_open),
        CASE(rows_come_and_go),
        CASE(equal_files_share_rows),
        CASE(rows_from_the_cache),
        CASE(no_more_than_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
