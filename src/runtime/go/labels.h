/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Go program whose goroutines have labels (pprof.Do): where its runtime has those of the
 * goroutine that a thread runs. Symbols are not needed.
 */
#pragma once

#include "bpf/shared.h"
#include "elf/file.h"

#define GO_LABELS_VERSIONS "1.17 to 1.26"

/* False when it is not a Go program, when its version is another, or when its thread-local
 * variable can't be found, as in programs with thread-local variables of C and no symbols. */
bool go_labels_find(struct elf_file *file, struct bpf_go *ret_go);
