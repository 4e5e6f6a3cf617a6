/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where `assay top` gets its samples: a capture whose profile is named at each refresh. In a thread
 * of its own, so that neither waiting for samples nor reading a huge symbol table keeps a key from
 * being answered.
 */
#pragma once

#include "capture/capture.h"
#include "cli/live/top_window.h"
#include "profile/group.h"

struct top_sampler;

/* Samples are taken from here on. With keys of `group`, which must outlive it, the groups take the
 * place of functions. */
int top_sampler_new(const struct capture_options *options, int64_t refresh_ns,
                    const struct profile_group_keys *group, struct top_sampler **ret_sampler,
                    struct error *error);
void top_sampler_free(struct top_sampler *sampler);

/* Without a thread: waits for one refresh and gives what was sampled; the caller frees it. Returns
 * 0, 1 when all that was looked at has ended, or a negative code. */
int top_sampler_take(struct top_sampler *sampler, struct top_slice **ret_slice,
                     struct error *error);

/* Goes on in a thread, which inherits the signals that are blocked. */
int top_sampler_start(struct top_sampler *sampler, struct error *error);

/* Readable when top_sampler_next has something to say. */
int top_sampler_fd(const struct top_sampler *sampler);

/* The next slice, the caller's to free, or NULL. *ret_state is what top_sampler_take said: no more
 * slices come after one that isn't 0, and `error` is set when it is negative. */
struct top_slice *top_sampler_next(struct top_sampler *sampler, int *ret_state,
                                   struct error *error);

/* As the capture says it. */
const char *top_sampler_backend(const struct top_sampler *sampler);
const char *top_sampler_shortcoming(const struct top_sampler *sampler);
