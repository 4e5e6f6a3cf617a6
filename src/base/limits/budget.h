/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One account for the memory of several kinds of work: pushes, queries, maintenance. Work reserves
 * its maximum before it begins, and returns it at the end; so concurrent work stays within the
 * limit, and work that doesn't fit waits or is rejected.
 *
 * An account can look at what the process really has, too: memory that no account knows of, such as
 * what malloc keeps for itself, then leaves less for work.
 *
 * Any thread may call any of this.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t limit_bytes;
    size_t used_bytes, peak_bytes;
    size_t process_limit_bytes; /* 0: the process isn't looked at */
    unsigned waiting;
    uint64_t refused; /* takes that didn't fit, or not in time */
};

void budget_init(struct budget *budget, size_t limit_bytes);
void budget_release(struct budget *budget);

/* From now on nothing is taken while the resident memory of the process would exceed so much with
 * it, and with what others have taken, who may not have touched it yet. Work that is alone and
 * needs at most a third of the account is never held up by this. Before anybody takes anything. */
void budget_watch_process(struct budget *budget, size_t process_limit_bytes);

/* `bytes`, or the limit if that is less: work that needs more runs alone. The other calls apply
 * this themselves. */
size_t budget_fit(const struct budget *budget, size_t bytes);

/* True: it is yours until budget_give. */
bool budget_take(struct budget *budget, size_t bytes);

/* As budget_take, waiting at most so long; stops when *cancelled (may be NULL) becomes true. */
bool budget_wait(struct budget *budget, size_t bytes, unsigned timeout_ms,
                 const atomic_bool *cancelled);

/* As budget_wait, for work that has touched what it has taken before. */
bool budget_wait_more(struct budget *budget, size_t bytes, unsigned timeout_ms,
                      const atomic_bool *cancelled);

void budget_give(struct budget *budget, size_t bytes);

struct budget_stats {
    size_t limit_bytes, used_bytes, peak_bytes;
    uint64_t refused;
};
struct budget_stats budget_stats(struct budget *budget);
