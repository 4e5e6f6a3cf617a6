/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels that Pyroscope's Java agent sends beside a recording. An event has a number, its context
 * (the sample label `context_id`); what that stands for is in a message of its own:
 * map<context, map<name, value>>, where names and values are numbers of texts, and map<number,
 * text>. See docs/formats/jfr.md.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "profile/profile.h"

/* Replaces the label `context_id` of samples by the labels of that context, where it is known and
 * has any; they win over others of the same name. Rows may be alike after that. `profile` is
 * untouched on failure. -EBADMSG when the message can't be read, -E2BIG when a context has more
 * labels than it may. */
int jfr_labels_apply(const void *data, size_t length, struct profile *profile, struct error *error);
