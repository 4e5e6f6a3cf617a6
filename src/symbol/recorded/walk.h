/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds the copied stacks of recordings by the unwind rows of the binaries that they name, as far
 * as this machine has the same: by build ID, or by inode where the recording has no build ID.
 * perf's own cache (~/.debug) is looked at, too. One walker per recording, one thread at a time.
 */
#pragma once

#include "format/perfdata/walker.h"

extern const struct perf_walker symbol_walker;
