/* SPDX-License-Identifier: Apache-2.0 */
/* Between the children that make symbol indexes (index_child.c) and who starts them: the request is
 * a struct index_child_request; the answer is a letter, and then the result, or a 32-bit code and a
 * sentence. */
#pragma once

#include <stdint.h>

enum { INDEX_CHILD_FILE, INDEX_CHILD_DEBUG, INDEX_CHILD_SHARED, INDEX_CHILD_SPLIT };

struct index_child_request {
    uint64_t has_splits; /* the last file is many (index_splits.h), and no package */
    uint64_t wanted[];   /* restricts the result to these addresses, sorted; empty for all */
};

#define INDEX_CHILD_RESULT 'R'
#define INDEX_CHILD_ERROR 'E'
