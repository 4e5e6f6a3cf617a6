/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Witnesses: series that a selection by labels of samples leaves out, of processes that it selects
 * other series of. A process is covered while any of its series has a window
 * (docs/covered-time.md), so `endpoint="x"` is divided by all of the process's time, and not by the
 * windows that had such samples.
 */
#pragma once

#include "base/idtable.h"
#include "label/selector.h"

struct witnesses {
    const struct selector *selector; /* of the selection; may be NULL */
    uint64_t *processes;             /* hashes; see cover_process() */
    size_t count, capacity;
    struct id_table index;
};

void witnesses_release(struct witnesses *witnesses);
#define _cleanup_witnesses_ _cleanup_(witnesses_release)

/* A series that is selected. */
void witnesses_note(struct witnesses *witnesses, const struct labels *labels);

/* Whether a series that is not selected is one of a noted process. */
bool witnesses_has(const struct witnesses *witnesses, const struct labels *labels);
