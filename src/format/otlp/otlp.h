/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry profiles (opentelemetry.proto.profiles.v1development), protobuf and JSON. The
 * formats `otlp` and `otlp-json` wrap these readers; servers call them to learn what was
 * understood as well. docs/formats/otlp.md has the mapping onto the model.
 */
#pragma once

#include "base/buffer.h"
#include "base/digests.h"
#include "base/error.h"
#include "io/source.h"
#include "profile/profile.h"

/* The package's name never changed while its fields did: wire shape distinguishes the layouts. */
enum otlp_layout {
    OTLP_1_8,  /* values are field 2 of Sample; Profile has comments */
    OTLP_1_9,  /* values are field 2 of Sample; without comments 1.8 and 1.9 look the same */
    OTLP_1_10, /* values are field 4 of Sample; 1.11 is the same */
    OTLP_LAYOUTS,
};

struct otlp_summary {
    uint64_t resources;               /* ResourceProfiles messages */
    uint64_t profiles;                /* Profile messages */
    uint64_t samples;                 /* Sample messages */
    uint64_t by_layout[OTLP_LAYOUTS]; /* Profiles with samples, by the layout they were read in */
    uint64_t identified;              /* Profiles with an id, without those that were repeated */
    uint64_t repeated;                /* Profiles left out: one of the same id was there already */
    struct digest ids;                /* of the identified ones, in any order */
    uint64_t guessed; /* of these: nothing told the layouts apart, so the newest was taken */
};

/* Both add a whole request (or file) to `profile`; `ret_summary` may be NULL. */
int otlp_read(struct source *source, struct profile *profile, struct otlp_summary *ret_summary,
              struct error *error);
int otlp_read_json(struct source *source, struct profile *profile, struct otlp_summary *ret_summary,
                   struct error *error);

/* The same for a profile that is empty, whose stacks stay unresolved (profile/unresolved.h), with
 * digests of that seed. */
int otlp_read_unresolved(struct source *source, uint64_t seed, struct profile *profile,
                         struct otlp_summary *ret_summary, struct error *error);
int otlp_read_json_unresolved(struct source *source, uint64_t seed, struct profile *profile,
                              struct otlp_summary *ret_summary, struct error *error);

/* The kind that profile.frame.type names; FRAME_UNKNOWN: none that the model has. */
enum frame_kind otlp_kind_by_name(const char *name);

/* "OTLP 1.9 layout, 3 profiles, 120 samples": for answers and logs. */
void otlp_summary_text(const struct otlp_summary *summary, struct buffer *out);

/* "1.8", "1.9" or "1.10/1.11". */
const char *otlp_layout_name(enum otlp_layout layout);

/* Appends a ProfilesData message in the layout of 1.10 and 1.11. */
void otlp_write(struct buffer *out, const struct profile *profile);
/* The same with a ResourceProfiles for each label set, whose attributes the labels are. */
void otlp_write_by_labels(struct buffer *out, const struct profile *profile);
