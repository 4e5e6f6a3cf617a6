/* SPDX-License-Identifier: Apache-2.0 */
/* Between the children that make symbol indexes (index_child.c) and who starts them: the request is
 * empty, or INDEX_CHILD_SPLITS when the last file is many (index_splits.h) and no package; the
 * answer is a letter, and then the result, or a 32-bit code and a sentence. */
#pragma once

enum { INDEX_CHILD_FILE, INDEX_CHILD_DEBUG, INDEX_CHILD_SHARED, INDEX_CHILD_SPLIT };

#define INDEX_CHILD_SPLITS 'S'
#define INDEX_CHILD_RESULT 'R'
#define INDEX_CHILD_ERROR 'E'
