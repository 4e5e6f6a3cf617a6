// SPDX-License-Identifier: Apache-2.0
// The parent's side of confined.h: starting children, collecting what they write, ending them.

#include "symbol/confined.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define ASK_EVERY_MS 200
#define RUNNING_MAX 64
#define OWN_FILE "/proc/self/exe"
#define ENTER_WORD "--confined"

extern char **environ;

static bool can_start_afresh; /* set once, before there are threads */

void confined_enter(int argc, char **argv, const struct confined_program *const programs[],
                    size_t count)
{
    can_start_afresh = true;
    if (argc != 3 || strcmp(argv[1], ENTER_WORD))
        return;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(argv[2], programs[i]->name))
            confined_child_run(programs[i]);
}

/* ---- starting ---- */

/* The layout at CONFINED_OUTPUT and after it. */
struct child_files {
    int fds[2 + CONFINED_FILES_MAX];
    int null; /* instead of the standard ones */
};

static void child_files_close(struct child_files *files)
{
    for (size_t i = 0; i < ARRAY_LENGTH(files->fds); i++)
        if (files->fds[i] >= 0)
            close(files->fds[i]);
    if (files->null >= 0)
        close(files->null);
}

/* Where no descriptor of the child is yet, so that none is written over before it is moved. */
static int out_of_the_way(int fd)
{
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, CONFINED_FILES + CONFINED_FILES_MAX);
}

static int request_file(const struct buffer *request)
{
    int fd = memfd_create("request", MFD_CLOEXEC);
    if (fd >= 0 && request->length && file_write_all(fd, request->data, request->length) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool open_child_files(const struct confined_job *job, int output,
                             struct child_files *ret_files)
{
    int request = request_file(&job->request);
    ret_files->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    ret_files->fds[0] = out_of_the_way(output);
    ret_files->fds[1] = out_of_the_way(request);
    bool fine = ret_files->null >= 0 && ret_files->fds[0] >= 0 && ret_files->fds[1] >= 0;
    for (int i = 0; i < CONFINED_FILES_MAX; i++) {
        ret_files->fds[2 + i] = out_of_the_way(job->files[i]);
        fine = fine && (job->files[i] < 0 || ret_files->fds[2 + i] >= 0);
    }
    if (request >= 0)
        close(request);
    return fine;
}

/* A sanitizer's word is worth hearing. */
#ifdef __SANITIZE_ADDRESS__
enum { SILENCED = STDERR_FILENO };
#else
enum { SILENCED = STDERR_FILENO + 1 };
#endif

static int start_afresh(const struct confined_program *program, const struct child_files *files,
                        pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    const char *const argv[] = {"assay", ENTER_WORD, program->name, NULL};
    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < SILENCED; fd++)
        posix_spawn_file_actions_adddup2(&actions, files->null, fd);
    for (int i = 0; i < (int)ARRAY_LENGTH(files->fds); i++)
        if (files->fds[i] >= 0)
            posix_spawn_file_actions_adddup2(&actions, files->fds[i], CONFINED_OUTPUT + i);
        else
            posix_spawn_file_actions_addclose(&actions, CONFINED_OUTPUT + i);
    posix_spawn_file_actions_addclosefrom_np(&actions, CONFINED_FILES + CONFINED_FILES_MAX);
    /* Ctrl-C is for the parent to heed. */
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int r = posix_spawn(ret_pid, OWN_FILE, &actions, &attributes, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

static int start_by_fork(const struct confined_program *program, const struct child_files *files,
                         pid_t *ret_pid)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid) {
        int code = errno;
        sigprocmask(SIG_SETMASK, &before, NULL);
        *ret_pid = pid;
        return pid < 0 ? -code : 0;
    }
    for (int fd = 0; fd < SILENCED; fd++)
        dup2(files->null, fd);
    for (int i = 0; i < (int)ARRAY_LENGTH(files->fds); i++)
        if (files->fds[i] >= 0)
            dup2(files->fds[i], CONFINED_OUTPUT + i);
        else
            close(CONFINED_OUTPUT + i);
    close_range(CONFINED_FILES + CONFINED_FILES_MAX, ~0u, 0);
    confined_child_run(program);
}

static bool has_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return true;
    for (const struct dirent *entry; count < 2 && (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count > 1;
}

static int start(struct confined_job *job)
{
    int ends[2];
    struct child_files files;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    int r = open_child_files(job, ends[1], &files) ? 0 : -EMFILE;
    close(ends[1]);
    bool afresh = job->program->name && can_start_afresh && has_threads();
    if (!r)
        r = (afresh ? start_afresh : start_by_fork)(job->program, &files, &job->pid);
    child_files_close(&files);
    if (r < 0) {
        close(ends[0]);
        return r;
    }
    job->from_child = ends[0];
    job->deadline_ms = monotonic_ns() / 1000000 + job->program->deadline_ms;
    return 0;
}

/* ---- running ---- */

static void finish(const struct confined_jobs *jobs, struct confined_job *job)
{
    jobs->done(jobs->context, job);
    buffer_release(&job->request);
    buffer_release(&job->output);
    for (int i = 0; i < CONFINED_FILES_MAX; i++)
        if (job->files[i] >= 0)
            close(job->files[i]);
}

/* Ends a child that is not wanted any longer, and waits for it: a killed one goes at once. One that
 * has closed its output may still stay, so it is killed as well. */
static void end_child(struct confined_job *job, enum confined_end end)
{
    close(job->from_child);
    job->from_child = -1;
    if (end != CONFINED_FINE)
        kill(job->pid, SIGKILL);
    bool waited = false;
    while (!waited) {
        pid_t ended = waitpid(job->pid, &job->status, end == CONFINED_FINE ? WNOHANG : 0);
        if (ended == job->pid || (ended < 0 && errno != EINTR)) {
            waited = true;
        } else if (ended == 0) {
            if (monotonic_ns() / 1000000 >= job->deadline_ms) {
                end = CONFINED_LATE;
                kill(job->pid, SIGKILL);
            } else {
                poll(NULL, 0, 1);
            }
        }
    }
    if (end == CONFINED_FINE && !WIFEXITED(job->status))
        end = CONFINED_DIED;
    else if (end == CONFINED_FINE && WEXITSTATUS(job->status) != 0)
        end = CONFINED_FAILED;
    job->end = end;
}

/* True when the job is over. */
static bool collect(struct confined_job *job, bool readable)
{
    size_t piece = 65536;
    if (!readable && monotonic_ns() / 1000000 < job->deadline_ms)
        return false;
    if (!readable) {
        end_child(job, CONFINED_LATE);
        return true;
    }
    ssize_t got = read(job->from_child, buffer_reserve(&job->output, piece), piece);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return false;
    if (got <= 0) {
        end_child(job, got < 0 ? CONFINED_FAILED : CONFINED_FINE);
        return true;
    }
    job->output.length += (size_t)got;
    if (job->output.length <= job->program->output_max_bytes &&
        monotonic_ns() / 1000000 < job->deadline_ms)
        return false;
    end_child(job, job->output.length > job->program->output_max_bytes ? CONFINED_TOO_LONG
                                                                       : CONFINED_LATE);
    return true;
}

static size_t cpu_count(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : CPU_COUNT(&set);
    return (size_t)MAX(1, MIN(count, RUNNING_MAX));
}

/* Waits until one of the children has written or is late, and takes those off that are over. */
static size_t collect_all(const struct confined_jobs *jobs, struct confined_job *running,
                          size_t count)
{
    struct pollfd fds[RUNNING_MAX];
    int64_t now_ms = monotonic_ns() / 1000000, wait_ms = INT32_MAX;
    for (size_t i = 0; i < count; i++) {
        fds[i] = (struct pollfd){.fd = running[i].from_child, .events = POLLIN};
        wait_ms = MAX(0, MIN(wait_ms, running[i].deadline_ms - now_ms));
    }
    if (jobs->go_on)
        wait_ms = MIN(wait_ms, ASK_EVERY_MS);
    if (poll(fds, (nfds_t)count, (int)wait_ms) < 0)
        for (size_t i = 0; i < count; i++)
            fds[i].revents = 0;
    if (jobs->go_on && !jobs->go_on(jobs->context))
        for (size_t i = 0; i < count; i++)
            running[i].deadline_ms = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (collect(&running[i], fds[i].revents != 0))
            finish(jobs, &running[i]);
        else
            running[kept++] = running[i];
    }
    return kept;
}

void confined_run(const struct confined_jobs *jobs)
{
    struct confined_job running[RUNNING_MAX];
    size_t count = 0, most = cpu_count();
    bool more = true;
    while (more || count) {
        while (more && count < most) {
            struct confined_job *job = &running[count];
            *job = (struct confined_job){.pid = -1, .from_child = -1, .files = {-1, -1, -1, -1}};
            more = jobs->next(jobs->context, job);
            if (!more)
                break;
            if (start(job) == 0) {
                count++;
            } else {
                job->end = CONFINED_FAILED;
                finish(jobs, job);
            }
        }
        if (count)
            count = collect_all(jobs, running, count);
    }
}
