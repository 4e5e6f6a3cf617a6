// SPDX-License-Identifier: Apache-2.0
// Recordings of a JVM's own flight recorder: see recording.h.

#include "capture/jvm/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"

#define PROC_FILE_BYTES (64u << 20)
#define ANSWER_BYTES 65536
#define SOCKET_WAIT_NS 10000000000ll
#define ANSWER_WAIT_S 30
#define SETTINGS "assay.jfc"
#define OUTPUT "assay.jfr"

/* Nothing else is recorded, whatever the JVM's defaults are. */
static const char settings[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration version=\"2.0\">\n"
    "<event name=\"jdk.ObjectAllocationSample\"><setting name=\"enabled\">true</setting>"
    "<setting name=\"stackTrace\">true</setting><setting "
    "name=\"throttle\">1000/s</setting></event>\n"
    "</configuration>\n";

struct jvm_recording {
    pid_t pid;
    unsigned inner_pid; /* as the JVM sees itself */
    uid_t user;
    gid_t group;
    int tmp;       /* its /tmp */
    int directory; /* ours in it; -1: not made */
    char name[32]; /* of the directory and the recording */
    bool started;
};

/* ---- the process ---- */

/* The number behind "NAME:" of /proc/PID/status: the last of several, in `base`. */
static bool read_status(pid_t pid, const char *name, int base, unsigned long long *ret_value)
{
    char path[64];
    _cleanup_buffer_ struct buffer content = {0};
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    if (file_read(path, 65536, &content, NULL) < 0)
        return false;
    char *line = strstr(buffer_text(&content), name);
    if (!line)
        return false;
    line++; /* behind the end of the one before */
    line[strcspn(line, "\n")] = 0;
    char *word = strrchr(line, '\t');
    if (!word)
        return false;
    *ret_value = strtoull(word, NULL, base);
    return true;
}

static bool has_mapped(pid_t pid, const char *library)
{
    char path[64];
    _cleanup_buffer_ struct buffer content = {0};
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    return file_read(path, PROC_FILE_BYTES, &content, NULL) == 0 &&
           strstr(buffer_text(&content), library);
}

bool jvm_is_there(pid_t pid)
{
    unsigned long long caught = 0;
    return has_mapped(pid, "/libjvm.so\n") && read_status(pid, "\nSigCgt:", 16, &caught) &&
           caught & 1ull << (SIGQUIT - 1);
}

/* Links in the JVM's root lead to what they mean there, not to our files. */
static int open_tmp(pid_t pid)
{
    char path[64];
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
    int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    int tmp = (int)syscall(SYS_openat2, root, "tmp", &how, sizeof(how));
    int r = tmp < 0 ? -errno : tmp;
    close(root);
    return r;
}

/* ---- its socket ---- */

static bool has_socket(const struct jvm_recording *jvm, const char *name)
{
    struct stat found;
    return fstatat(jvm->tmp, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(found.st_mode) &&
           (found.st_uid == jvm->user || found.st_uid == 0);
}

/* A file that has the JVM look up, when SIGQUIT comes, from printing its threads. */
static int wake(const struct jvm_recording *jvm, const char *socket_name, struct error *error)
{
    char name[48];
    snprintf(name, sizeof(name), ".attach_pid%u", jvm->inner_pid);
    int fd = openat(jvm->tmp, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return error_set_errno(error, -errno, "Failed to write to the /tmp of process %d",
                               (int)jvm->pid);
    bool own = fd >= 0;
    if (own && fchown(fd, jvm->user, jvm->group) < 0)
        errno = 0; /* root's is as good */
    if (own)
        close(fd);
    int64_t until_ns = monotonic_ns() + SOCKET_WAIT_NS;
    int r = kill(jvm->pid, SIGQUIT) < 0 ? -errno : 0;
    while (!r && !has_socket(jvm, socket_name) && monotonic_ns() < until_ns)
        poll(NULL, 0, 20);
    if (own)
        unlinkat(jvm->tmp, name, 0);
    if (r < 0)
        return error_set_errno(error, r, "Failed to signal process %d", (int)jvm->pid);
    return has_socket(jvm, socket_name)
               ? 0
               : error_set(error, -ETIMEDOUT,
                           "The JVM of process %d doesn't answer: it may run with "
                           "-XX:+DisableAttachMechanism.",
                           (int)jvm->pid);
}

static int connect_to(const struct jvm_recording *jvm, struct error *error)
{
    char name[48];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval wait = {.tv_sec = ANSWER_WAIT_S};
    snprintf(name, sizeof(name), ".java_pid%u", jvm->inner_pid);
    int r = has_socket(jvm, name) ? 0 : wake(jvm, name, error);
    if (r < 0)
        return r;
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", jvm->tmp, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        r = -errno;
        if (fd >= 0)
            close(fd);
        return error_set_errno(error, r, "Failed to connect to the JVM of process %d",
                               (int)jvm->pid);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    return fd;
}

/* Version 1 of the protocol, the command, and three arguments. The answer begins with a number. */
static int command(const struct jvm_recording *jvm, const char *text, struct error *error)
{
    _cleanup_buffer_ struct buffer request = {0};
    char answer[ANSWER_BYTES];
    size_t length = 0;
    ssize_t got = 1;
    buffer_add(&request, "1\0jcmd", 7);
    buffer_add(&request, text, strlen(text) + 1);
    buffer_add(&request, "\0", 2);
    int fd = connect_to(jvm, error);
    if (fd < 0)
        return fd;
    int r =
        send(fd, request.data, request.length, MSG_NOSIGNAL) == (ssize_t)request.length ? 0 : -EIO;
    while (!r && length < sizeof(answer) - 1 &&
           (got = recv(fd, answer + length, sizeof(answer) - 1 - length, 0)) > 0)
        length += (size_t)got;
    if (!r && got < 0)
        r = -errno;
    close(fd);
    answer[length] = 0;
    if (r < 0)
        return error_set_errno(error, r, "The JVM of process %d did not answer", (int)jvm->pid);
    if (strncmp(answer, "0\n", 2) != 0)
        return error_set(error, -ENOTSUP, "The JVM of process %d refuses \"%.16s\": %.*s",
                         (int)jvm->pid, text, 200, strchrnul(answer, '\n'));
    return 0;
}

/* ---- recordings ---- */

static int make_directory(struct jvm_recording *jvm, struct error *error)
{
    snprintf(jvm->name, sizeof(jvm->name), "assay-%016llx", (unsigned long long)random_bits());
    if (mkdirat(jvm->tmp, jvm->name, 0700) == 0)
        jvm->directory =
            openat(jvm->tmp, jvm->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (jvm->directory < 0)
        return error_set_errno(error, -errno, "Failed to write to the /tmp of process %d",
                               (int)jvm->pid);
    int fd = openat(jvm->directory, SETTINGS, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : file_write_all(fd, settings, strlen(settings));
    if (!r && fchown(jvm->directory, jvm->user, jvm->group) < 0)
        r = -errno;
    if (!r && fchmod(fd, 0644) < 0)
        r = -errno;
    if (fd >= 0)
        close(fd);
    return r < 0 ? error_set_errno(error, r, "Failed to write to the /tmp of process %d",
                                   (int)jvm->pid)
                 : 0;
}

static int start(struct jvm_recording *jvm, struct error *error)
{
    char text[256];
    unsigned long long inner = (unsigned long long)jvm->pid;
    struct stat process;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d", (int)jvm->pid);
    if (stat(path, &process) < 0)
        return error_set_errno(error, -errno, "Failed to inspect process %d", (int)jvm->pid);
    jvm->user = process.st_uid;
    jvm->group = process.st_gid;
    read_status(jvm->pid, "\nNSpid:", 10, &inner);
    jvm->inner_pid = (unsigned)inner;
    jvm->tmp = open_tmp(jvm->pid);
    if (jvm->tmp < 0)
        return error_set_errno(error, jvm->tmp, "Failed to open the /tmp of process %d",
                               (int)jvm->pid);
    int r = make_directory(jvm, error);
    if (r < 0)
        return r;
    snprintf(text, sizeof(text), "JFR.start name=%s settings=/tmp/%s/" SETTINGS, jvm->name,
             jvm->name);
    r = command(jvm, text, error);
    jvm->started = !r;
    return r;
}

int jvm_recording_start(pid_t pid, struct jvm_recording **ret_recording, struct error *error)
{
    struct jvm_recording *jvm = memory_zalloc(1, sizeof(*jvm));
    *jvm = (struct jvm_recording){.pid = pid, .tmp = -1, .directory = -1};
    int r = start(jvm, error);
    if (r < 0) {
        jvm_recording_free(jvm);
        return r;
    }
    *ret_recording = jvm;
    return 0;
}

int jvm_recording_stop(struct jvm_recording *jvm, int *ret_fd, struct error *error)
{
    char text[256];
    struct stat found;
    snprintf(text, sizeof(text), "JFR.stop name=%s filename=/tmp/%s/" OUTPUT, jvm->name, jvm->name);
    jvm->started = false;
    int r = command(jvm, text, error);
    if (r < 0)
        return r;
    int fd = openat(jvm->directory, OUTPUT, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &found) < 0 || !S_ISREG(found.st_mode)) {
        if (fd >= 0)
            close(fd);
        return error_set(error, -EIO, "The JVM of process %d has not written its recording.",
                         (int)jvm->pid);
    }
    *ret_fd = fd;
    return 0;
}

void jvm_recording_free(struct jvm_recording *jvm)
{
    char text[128];
    struct error ignored;
    if (!jvm)
        return;
    if (jvm->started) {
        snprintf(text, sizeof(text), "JFR.stop name=%s", jvm->name);
        command(jvm, text, &ignored);
    }
    if (jvm->directory >= 0) {
        unlinkat(jvm->directory, OUTPUT, 0);
        unlinkat(jvm->directory, SETTINGS, 0);
        close(jvm->directory);
        unlinkat(jvm->tmp, jvm->name, AT_REMOVEDIR);
    }
    if (jvm->tmp >= 0)
        close(jvm->tmp);
    free(jvm);
}
