// SPDX-License-Identifier: Apache-2.0
// Confined children: what they can't do, and that the parent outlives whatever they try.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "symbol/confined.h"
#include "unit.h"

/* One job after the other, of one program. */
struct batch {
    struct confined_program program;
    const char *request;
    int file;
    int left, done;
    enum confined_end end; /* of the last one */
    int status;
    struct buffer output;
};

static bool next(void *context, struct confined_job *job)
{
    struct batch *batch = context;
    if (!batch->left)
        return false;
    batch->left--;
    job->program = &batch->program;
    if (batch->request)
        buffer_add_text(&job->request, batch->request);
    if (batch->file >= 0)
        job->files[0] = dup(batch->file);
    return true;
}

static void done(void *context, struct confined_job *job)
{
    struct batch *batch = context;
    batch->done++;
    batch->end = job->end;
    batch->status = job->status;
    batch->output.length = 0;
    buffer_add(&batch->output, job->output.data, job->output.length);
}

static struct batch batch_of(int (*run)(const struct confined_input *input))
{
    return (struct batch){.program = {.run = run,
                                      .memory_bytes = 64 << 20,
                                      .cpu_seconds = 10,
                                      .deadline_ms = 60000,
                                      .output_max_bytes = 1 << 20},
                          .file = -1,
                          .left = 1};
}

static enum confined_end run_batch(struct batch *batch)
{
    confined_run(&(struct confined_jobs){next, done, batch});
    return batch->end;
}

/* ---- what works ---- */

static int echo(const struct confined_input *input)
{
    char text[64];
    ssize_t got = input->files[0] < 0 ? 0 : pread(input->files[0], text, sizeof(text), 0);
    confined_write(input->request, input->request_bytes);
    confined_write(text, got > 0 ? (size_t)got : 0);
    return input->files[1] == -1 ? 0 : 1;
}

static void answers(void **state)
{
    (void)state;
    struct batch batch = batch_of(echo);
    int file = memfd_create("content", MFD_CLOEXEC);
    assert_int_equal(write(file, "content", 7), 7);
    batch.request = "request and ";
    batch.file = file;
    assert_int_equal(run_batch(&batch), CONFINED_FINE);
    assert_buffer(&batch.output, "request and content");

    /* More jobs than CPUs, and one without anything. */
    batch.left = 20;
    batch.done = 0;
    run_batch(&batch);
    assert_int_equal(batch.done, 20);
    assert_buffer(&batch.output, "request and content");
    batch.request = NULL;
    batch.file = -1;
    batch.left = 1;
    assert_int_equal(run_batch(&batch), CONFINED_FINE);
    assert_int_equal(batch.output.length, 0);
    close(file);
    buffer_release(&batch.output);
}

static int fail_it(const struct confined_input *input)
{
    (void)input;
    return -1;
}

/* ---- what is not allowed ---- */

static int open_files(const struct confined_input *input)
{
    (void)input;
    struct stat found;
    return open("/proc/self/status", O_RDONLY) < 0 && errno == EACCES &&
                   openat(AT_FDCWD, "x", O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES &&
                   stat("/", &found) < 0
               ? 0
               : 1;
}

static int make_socket(const struct confined_input *input)
{
    (void)input;
    return socket(AF_INET, SOCK_STREAM, 0) < 0 ? 0 : 1;
}

static int make_process(const struct confined_input *input)
{
    (void)input;
    return fork() < 0 ? 0 : 1;
}

static int run_program(const struct confined_input *input)
{
    (void)input;
    char *const argv[] = {NULL};
    return execve("/bin/true", argv, argv);
}

static int signal_parent(const struct confined_input *input)
{
    (void)input;
    return kill(getppid(), SIGTERM);
}

static int make_code(const struct confined_input *input)
{
    (void)input;
    void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? 0 : 1;
}

static void forbidden(void **state)
{
    (void)state;
    int (*const deadly[])(const struct confined_input *) = {
        make_socket, make_process, run_program, signal_parent, make_code,
    };
    for (size_t i = 0; i < ARRAY_LENGTH(deadly); i++) {
        struct batch batch = batch_of(deadly[i]);
        assert_int_equal(run_batch(&batch), CONFINED_DIED);
        assert_int_equal(WTERMSIG(batch.status), SIGSYS);
        buffer_release(&batch.output);
    }
    struct batch batch = batch_of(open_files);
    assert_int_equal(run_batch(&batch), CONFINED_FINE);
    batch = batch_of(fail_it);
    assert_int_equal(run_batch(&batch), CONFINED_FAILED);
}

/* ---- limits ---- */

static int take_memory(const struct confined_input *input)
{
    (void)input;
    size_t bytes = 1 << 20;
    for (int i = 0; i < 256; i++) {
        char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED)
            return i < 60 ? 2 : 0; /* not before what is allowed */
        map[0] = 1;
    }
    return 1;
}

static int spin(const struct confined_input *input)
{
    for (volatile size_t i = 0; input; i++)
        ;
    return 0;
}

static int crash(const struct confined_input *input)
{
    (void)input;
    raise(SIGSEGV);
    __builtin_trap();
}

static int talk(const struct confined_input *input)
{
    static const char text[4096];
    while (input)
        confined_write(text, sizeof(text));
    return 0;
}

static int answer_and_spin(const struct confined_input *input)
{
    confined_write("answer", 6);
    close(CONFINED_OUTPUT);
    return spin(input);
}

static void limits(void **state)
{
    (void)state;
    struct batch batch = batch_of(take_memory);
    assert_int_equal(run_batch(&batch), CONFINED_FINE);

    batch = batch_of(spin);
    batch.program.cpu_seconds = 1;
    assert_int_equal(run_batch(&batch), CONFINED_DIED);
    batch = batch_of(spin);
    batch.program.deadline_ms = 50;
    assert_int_equal(run_batch(&batch), CONFINED_LATE);
    batch = batch_of(answer_and_spin);
    batch.program.deadline_ms = 50;
    assert_int_equal(run_batch(&batch), CONFINED_LATE);
    buffer_release(&batch.output);

    batch = batch_of(crash);
    assert_int_equal(run_batch(&batch), CONFINED_DIED);
    batch = batch_of(talk);
    assert_int_equal(run_batch(&batch), CONFINED_TOO_LONG);
    assert_true(batch.output.length <= batch.program.output_max_bytes + 65536);
    buffer_release(&batch.output);

    /* Nothing of it is left behind. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* No descriptor stays open. */
static void descriptors(void **state)
{
    (void)state;
    int before = dup(0);
    close(before);
    struct batch batch = batch_of(echo);
    batch.request = "x";
    batch.left = 5;
    run_batch(&batch);
    batch = (struct batch){.program = batch.program, .file = -1, .left = 1, .output = batch.output};
    batch.program.run = fail_it;
    run_batch(&batch);
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
    buffer_release(&batch.output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(forbidden),
        cmocka_unit_test(limits),
        cmocka_unit_test(descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
