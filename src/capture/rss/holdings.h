/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process holds, by the kernel's own accounts: /proc/PID/status, which is cheap, and
 * /proc/PID/smaps_rollup, which takes time for each page that is mapped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum holding {
    HOLDING_ANON, /* resident, as status divides it */
    HOLDING_FILE,
    HOLDING_SHARED,
    HOLDING_PSS_ANON, /* likewise, pages of several processes divided by their number */
    HOLDING_PSS_FILE,
    HOLDING_PSS_SHARED,
    HOLDING_SWAP,
    HOLDING_PAGE_TABLES,
    HOLDING_HUGE, /* of hugetlbfs, which isn't resident memory to the kernel */
    HOLDING_KINDS
};
#define HOLDINGS_OF_STATUS                                                                         \
    (1u << HOLDING_ANON | 1u << HOLDING_FILE | 1u << HOLDING_SHARED | 1u << HOLDING_SWAP |         \
     1u << HOLDING_PAGE_TABLES | 1u << HOLDING_HUGE)

struct holdings {
    uint64_t bytes[HOLDING_KINDS];
    uint32_t known; /* bits of enum holding */
};

/* Lines of either file, into `holdings`, which has what was known before. What isn't a number of kB
 * is left out. */
void holdings_parse(struct holdings *holdings, const char *text, size_t length);

/* Adds what the file says. False: the process is gone, has no memory of its own (a thread of the
 * kernel), or may not be read. */
bool holdings_read_status(struct holdings *holdings, const char *proc, uint32_t pid);
bool holdings_read_rollup(struct holdings *holdings, const char *proc, uint32_t pid);

/* Resident bytes. */
uint64_t holdings_resident(const struct holdings *holdings);
