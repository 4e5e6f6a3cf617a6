/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Mini debug info": a small ELF file with the symbols that a stripped binary lost, compressed by
 * xz in its section .gnu_debugdata, as Fedora and its relatives ship their packages.
 */
#pragma once

#include "elf/file.h"

#define MINIDEBUG_PACKED_MAX (64u << 20)
#define MINIDEBUG_BYTES_MAX (256u << 20)  /* unpacked; real ones have up to a few MiB */
#define MINIDEBUG_MEMORY_MAX (128u << 20) /* of the decoder: xz -9 takes 65 MiB */

/*
 * 0, or a negative code with a sentence: -ENOENT when the file has none. `content` is empty at
 * first, holds the unpacked file and must outlive it; *ret_debug must stay where it is.
 */
int minidebug_open(struct elf_file *file, struct buffer *content, struct elf_file *ret_debug,
                   struct error *error);

/* Appends what an xz stream unpacks to. */
int minidebug_unpack(const void *bytes, size_t length, struct buffer *content, struct error *error);
