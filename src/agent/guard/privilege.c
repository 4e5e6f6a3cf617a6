// SPDX-License-Identifier: Apache-2.0
// Capabilities and users: see privilege.h.

#include "agent/guard/privilege.h"

#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

#define FOLDERS_OPEN_MAX 16

static const unsigned kept[] = {
    CAP_BPF,                /* recordings load programs while the agent runs */
    CAP_PERFMON,            /* perf events of all processes */
    CAP_SYS_PTRACE,         /* /proc of other users' processes: what they have mapped, where */
    CAP_DAC_READ_SEARCH,    /* their binaries, where others may not read them */
    CAP_CHECKPOINT_RESTORE, /* binaries that are deleted and still run, by /proc/PID/map_files */
    CAP_SYSLOG,             /* /proc/kallsyms with addresses, where BPF can't be asked */
};

static uint64_t kept_set(void)
{
    uint64_t set = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(kept); i++)
        set |= 1ull << kept[i];
    return set;
}

static int get_capabilities(struct __user_cap_data_struct data[2])
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, &header, data) < 0 ? -errno : 0;
}

static int set_capabilities(uint64_t set)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    for (int i = 0; i < 2; i++)
        data[i].effective = data[i].permitted = (uint32_t)(set >> (32 * i));
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

uint64_t privilege_capabilities(void)
{
    struct __user_cap_data_struct data[2] = {0};
    get_capabilities(data);
    return (uint64_t)data[1].effective << 32 | data[0].effective;
}

/* Without the right to it the set can stay: what is not permitted and can't be had by executing
 * something is of no use. */
static void narrow_bounding_set(uint64_t set)
{
    for (unsigned i = 0; i < 64 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
        if (!(set & 1ull << i))
            prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

/* ---- another user ---- */

static uid_t new_owner;
static gid_t new_group;

static int give_away(const char *path, const struct stat *found, int kind, struct FTW *place)
{
    (void)found, (void)kind, (void)place;
    return lchown(path, new_owner, new_group) < 0 && errno != ENOENT ? -1 : 0;
}

/* Only files that nobody but root could have put there: otherwise a link would give away another
 * file with it. */
static int give_folder(const char *folder, const struct passwd *user, struct error *error)
{
    struct stat found;
    if (stat(folder, &found) < 0)
        return error_set_errno(error, -errno, "Failed to inspect the directory %s", folder);
    if (found.st_uid != 0 || (found.st_mode & (S_IWGRP | S_IWOTH)))
        return 0;
    new_owner = user->pw_uid;
    new_group = user->pw_gid;
    if (nftw(folder, give_away, FOLDERS_OPEN_MAX, FTW_PHYS | FTW_MOUNT | FTW_DEPTH) != 0)
        return error_set_errno(error, -errno, "Failed to give the directory %s to the user %s",
                               folder, user->pw_name);
    return 0;
}

static int become(const char *name, const char *folder, struct error *error)
{
    int parent_signal = 0;
    errno = 0;
    const struct passwd *user = getpwnam(name);
    if (!user)
        return error_set(error, -ENOENT, "Unknown user %s (the setting `user`).", name);
    if (user->pw_uid == geteuid())
        return 0;
    if (geteuid() != 0)
        return error_set(error, -EPERM,
                         "Only root can switch to the user %s (the setting `user`): start the "
                         "agent as root, or as that user with the capabilities it needs.",
                         name);
    int r = folder ? give_folder(folder, user, error) : 0;
    if (r < 0)
        return r;
    prctl(PR_GET_PDEATHSIG, &parent_signal);
    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    if (initgroups(user->pw_name, user->pw_gid) < 0 ||
        setresgid(user->pw_gid, user->pw_gid, user->pw_gid) < 0 ||
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
        return error_set_errno(error, -errno, "Failed to switch to the user %s", name);
    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, parent_signal); /* which goes with the old user */
    return 0;
}

/* ---- all of it ---- */

int privilege_drop(const char *user, const char *folder, struct error *error)
{
    struct __user_cap_data_struct data[2] = {0};
    get_capabilities(data);
    uint64_t set = ((uint64_t)data[1].permitted << 32 | data[0].permitted) & kept_set();
    narrow_bounding_set(set);
    int r = user ? become(user, folder, error) : 0;
    if (r < 0)
        return r;
    r = set_capabilities(set);
    if (!r && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    return r < 0 ? error_set_errno(error, r, "Failed to drop privileges") : 0;
}
