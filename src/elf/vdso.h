/* SPDX-License-Identifier: Apache-2.0 */
/* The vDSO: code of the kernel that every process has mapped, and that is in no file. */
#pragma once

#include "elf/file.h"

#define VDSO_NAME "[vdso]" /* what its mapping is called */

/* This process's image stands for all: one kernel maps one image. The struct must stay where it is.
 * -ENOENT when there is none. */
int vdso_open(struct elf_file *ret_file, struct error *error);
