/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of modules: finding the very file that a process has mapped, also when it was deleted
 * or replaced since, or is in another mount namespace; and keeping a limited number of them open.
 */
#pragma once

#include <sys/stat.h>

#include "capture/record/modules.h"

/* A memfd: memory with a name that is no path. JITs put code there, and some programs run from it.
 */
bool module_file_is_memory(const char *path);

/*
 * Opens the file of a mapping: through the mapping itself, which needs privilege and is always the
 * right file; by the path in the process's own root; by the path in its ancestors', which are there
 * when it has ended; by the path in ours. All but the first count only when the inode is the one
 * asked for. A memfd is opened through the mapping or as the process's program, if it is an ELF
 * file. Returns a descriptor or a negative errno.
 */
int module_file_find(struct modules *modules, const struct module_request *request,
                     struct stat *ret_found);

/* A path as the process sees it; links on the way stay in its root. A descriptor of a regular file
 * or a negative errno. */
int module_file_in_root(uint32_t pid, const char *path);

struct module_stamp module_stamp_of(const struct stat *found);

/* Hands an open file over to the module; another one's may have to be closed. */
void module_file_keep(struct modules *modules, struct module *module, int fd);
void module_file_close(struct modules *modules, struct module *module);

/* The module's descriptor, opened again if need be, which stays the module's; -ESTALE when the file
 * has changed, or another errno. */
int module_file_open(struct modules *modules, struct module *module);
