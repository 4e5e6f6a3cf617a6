/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings with the time and the thread of each sample, which the store doesn't keep: one file
 * per batch of an agent, in `recorded` of the server's directory, for heat maps and timelines. When
 * all take more than RECORDED_BYTES_MAX, or are too many, the oldest of the tenant that takes most
 * go, and any after RECORDED_DAYS.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "profile/profile.h"
#include "server/ingest/ingest.h"

#ifndef RECORDED_BYTES_MAX
#define RECORDED_BYTES_MAX (256ull << 20)
#endif
#define RECORDED_FILES_MAX 10000
#define RECORDED_DAYS 14
#define RECORDED_NAME_BYTES 160

/* Sample labels that tell threads apart and make no series of recordings; ended by NULL. */
extern const char *const recorded_labels[];

/* Whether an agent's batch is part of a recording: its id is TIME-RUN-RECORDING. */
bool recorded_is(const char *batch_id);

/* An OTLP body as it is kept: without labels but those of threads, with names redacted as those of
 * stored profiles. */
int recorded_make(struct ingest *ingest, const void *body, size_t length, uint64_t limit,
                  struct buffer *ret_kept, struct error *error);

/* Writes it, and removes what is too much or too old. Failures are logged: the profile is stored
 * all the same. */
void recorded_keep(const char *data, const char *tenant, const char *batch_id,
                   const struct buffer *kept, int64_t now_ns);

/* Adds all that is kept of a recording to the profile. -ENOENT: nothing. `limit`: what the files
 * may expand to. */
int recorded_read(const char *data, const char *tenant, const char *id, uint64_t limit,
                  struct profile *profile, struct error *error);

/* Removes what is kept of a tenant. Returns how many files. */
size_t recorded_forget(const char *data, const char *tenant);
