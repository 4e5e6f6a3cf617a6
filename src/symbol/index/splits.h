/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of making a symbol index: many .dwo files in one that a confined child can be given. First
 * a number of 8 bytes, how many; then a struct index_split for each; then the files. */
#pragma once

#include <stdint.h>

struct index_split {
    uint64_t id, offset, length;
};
