/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns profiles that were read into windows of series in the store: named types, a split by sample
 * labels, label rules, plausible times. One batch is one push: it is stored whole or not at all.
 */
#pragma once

#include <pthread.h>

#include "base/error.h"
#include "label/labels.h"
#include "label/rules/rules.h"
#include "profile/profile.h"
#include "server/ingest/delta.h"
#include "server/ingest/refusals.h"
#include "server/ingest/senders.h"
#include "store/store.h"

/* Limits of one push; the rest is refused. */
struct ingest_limits {
    uint64_t body_bytes;      /* as sent */
    uint64_t expansion_bytes; /* decompressed */
    uint64_t samples;         /* rows of one profile */
    uint64_t series;          /* of one push */
    uint64_t depth;           /* frames of a stack; its outermost beyond that are cut off */
    int64_t clock_skew_ns;    /* beyond, a sender's times are corrected */
    int64_t age_ns;           /* older is refused; 0: the store's retention decides */
};

struct ingest {
    struct store *store;
    struct senders *senders;
    struct deltas *deltas; /* NULL: values are stored as they come */
    struct quotas *quotas;
    struct refusals refusals;
    /* Read while they are applied, and replaced when the configuration is read again. */
    pthread_rwlock_t rules_lock;
    struct label_rules rules;
    struct ingest_limits limits; /* see ingest_limits() */
};

/* The current settings. */
struct ingest_limits ingest_limits(struct ingest *ingest);

/* The name of a sample type in the name of its profile. */
struct ingest_display {
    const char *type, *name; /* a NULL type ends a list */
};
#define INGEST_CONFIG_TYPES 64

/* Facts about a profile that are not in its content. */
struct ingest_source {
    const struct labels *labels; /* of all its series; service_name may be missing */
    const char *name;            /* first part of its types' ids; NULL: by the sample types */
    const char *type;            /* NULL, or the id of its only type, whose values are ... */
    int64_t factor;              /* ... multiplied by this, if they are numbers of samples */
    bool underscores;            /* sample types are written with '_' for '-' */
    bool in_units;               /* its values may be times or sizes already: only those that fit
                                    the type are called so */
    int64_t from_ns, to_ns;      /* 0: unknown */
    bool times_given;            /* they count even where the profile says otherwise */
    int64_t sent_ns;             /* the sender's clock when it sent this; 0: unknown */
    int64_t received_ns;
    bool attributes;      /* sample labels are OTLP's: numbers count as labels, too */
    const char *observer; /* "scrape"; NULL: "agent" for OTLP, else "push" */
    bool recording; /* of Java's flight recorder: of many kinds of types, with generated names */
    const char *const *unkept; /* NULL, or sample labels that make no series, ended by NULL */
    /* Types whose values count from the start of their process, and are stored as differences:
     * those of Go that delta_is_known_type() knows, and these, ended by NULL. */
    bool known_cumulative;
    const char *const *cumulative;
    const struct ingest_display *displays; /* or NULL */
};

struct ingest_part;
struct ingest_batch {
    struct ingest *ingest;
    const char *tenant;
    struct sender *seen; /* stats of this push */
    struct ingest_part *parts;
    struct store_profile *windows;
    struct delta_step *steps; /* taken back unless the batch is stored */
    /* NULL, or called before the store is waited for. */
    void (*waits)(void *context);
    void *waits_context;
    size_t count, capacity;
};

void ingest_batch_release(struct ingest_batch *batch);
#define _cleanup_ingest_batch_ _cleanup_(ingest_batch_release)

/* Takes the profile's content over, and leaves it empty but for release. */
int ingest_batch_add(struct ingest_batch *batch, const struct ingest_source *source,
                     struct profile *profile, struct error *error);

/* Returns when all of it is durable; -EALREADY when a batch of that id is there already. */
int ingest_batch_write(struct ingest_batch *batch, const char *batch_id, struct error *error);

/* The options for reading profiles of pushes. */
#define INGEST_DETAIL ((enum profile_detail)(PROFILE_ALL & ~PROFILE_TIMES))

/* ---- ingest_adjust.c ---- */

/* Names of functions, files and binaries, as the rules for labels have it. */
void ingest_redact_names(struct redactor *redactor, struct profile *profile);

/* The same, where the rules want it: most programs have no secrets there, and checking every name
 * costs time. */
void ingest_redact(struct ingest *ingest, struct profile *profile);

/* A recording that samples threads by the wall clock only says which of them ran: that is CPU
 * time. Does nothing where that was sampled itself. */
void ingest_cpu_of_wall(struct profile *profile);

/* Old clients for Python and Ruby mean functions to be shown with their file, "app.py main": names
 * such as __init__ say nothing without it. `absolute`: also where the path is whole. */
void ingest_name_scripts(struct profile *profile, bool absolute);

/* Stacks of more frames (0: no limit) lose the outermost, for which one "[truncated]" stands.
 * Returns how many samples did; their nodes may be the same then, and more of them may be than
 * `limit` asks. */
uint64_t ingest_cut_stacks(struct profile *profile, uint64_t limit);

/* ---- ingest_type.c ---- */

struct ingest_type {
    char *id; /* NULL: not stored */
    int64_t factor;
    int64_t since_ns; /* of a difference: from the profile before until this one's time */
};

/* The store's name of each type of the profile. The caller frees the ids. */
void ingest_types(const struct profile *profile, const struct ingest_source *source,
                  struct ingest_type *ret_types);

/* ---- ingest_adjust.c: cumulative values ---- */

/* Makes differences of what the source says is cumulative. Types for which there is nothing to
 * compare with lose their id. */
void ingest_deltas(struct ingest_batch *batch, const struct ingest_source *source,
                   struct profile *profile, struct ingest_type *types);

/* Keeps what was learnt of this batch's profiles, or forgets it. */
void ingest_deltas_end(struct ingest_batch *batch, bool stored);

/* ---- names ---- */

/* Labels that a name as Pyroscope's /ingest takes it stands for: app{k=v,k2=v2}. The application is
 * service_name. */
int ingest_parse_name(const char *text, struct labels *labels, struct error *error);

/* For profiles with one unnamed type: the end of an application's name, as in "app.cpu", names it.
 * Cuts the end off and gives the id (a constant) and the factor for the number of samples per
 * second. */
const char *ingest_suffix_type(char *application, uint64_t sample_rate, int64_t *ret_factor);
