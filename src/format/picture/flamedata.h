/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON document that the flame-graph page draws, described in docs/formats/flame-data.md, and
 * what all pictures say beside the graph itself.
 */
#pragma once

#include "base/buffer.h"
#include "profile/views/calltree.h"

/* How the base of a comparison was made comparable. */
enum flame_normalize {
    FLAME_NORMALIZE_NONE,
    FLAME_NORMALIZE_TOTAL,
    FLAME_NORMALIZE_DURATION,
    FLAME_NORMALIZE_REQUESTS,
};

/* How certain a change is. */
struct flame_finding {
    const char *verdict; /* grew, shrank, noise or undecided; NULL: unknown */
    const char *cause;   /* requests or cost per request; NULL: unknown */
    bool certain;        /* else it is drawn grey */
    double low, high;    /* new less scaled base, in the type's unit; not finite: unknown */
    double more_seconds; /* of each side that would settle an undecided one; 0: unknown */
};

struct flame_change {
    const char *name; /* the function's */
    size_t length;
    struct flame_finding total, self; /* of its values; that of the total is known */
};

struct flame_times;

struct flame_options {
    const char *title; /* may be NULL */
    const char *const *notes;
    size_t note_count;
    unsigned default_type;           /* of the tree */
    uint32_t max_nodes;              /* of a page; 0: FLAME_NODES_MAX */
    uint32_t dropped;                /* nodes that calltree_limit folded away */
    const struct flame_table *table; /* NULL, or of the tree as it was before that */
    const struct flame_times *times; /* NULL, or when each sample was taken: times.h */

    /* For trees with a base. */
    enum flame_normalize normalize;
    const double *scale; /* per type of the tree, what base values are multiplied by; NULL: 1 */
    const struct flame_change *changes; /* of the default type; names at most once */
    size_t change_count;
};

/* The values of all functions of a tree, for a picture that leaves some of it out. */
struct flame_table {
    uint32_t function_count; /* 0: none, the tree says it all */
    int64_t *flat[PROFILE_TYPES_MAX][CALLTREE_SIDES];
    int64_t *cumulative[PROFILE_TYPES_MAX][CALLTREE_SIDES];
};

/* Before the tree is limited. */
void flame_table_init(struct flame_table *table, const struct calltree *tree);
void flame_table_release(struct flame_table *table);
#define _cleanup_flame_table_ __attribute__((cleanup(flame_table_release)))

/* The most nodes of a document that is all a page has: it adds up tables of parts of it, which must
 * be exact. Some 100 MB; a browser adds that up in a tenth of a second. */
#define FLAME_NODES_MAX (1u << 22)

/* Appends the document. -EINVAL when the tree has no sample type. */
int flamedata_write(struct buffer *out, const struct calltree *tree,
                    const struct flame_options *options, struct error *error);

/* By function of the tree, what is known of its change, or NULL. The caller frees it. */
const struct flame_change **flame_changes(const struct calltree *tree,
                                          const struct flame_options *options);

/* The factor for a type's base values. */
double flame_scale(const struct flame_options *options, unsigned type);

#define FLAME_NOTES_MAX 4

/* Sentences on what a profile is worth: how many samples, over which time, how many unnamed. */
struct flame_notes {
    char *list[FLAME_NOTES_MAX];
    size_t count;
};

/* `type` is the tree's; the tree holds this profile. */
void flame_notes_init(struct flame_notes *notes, const struct profile *profile,
                      const struct calltree *tree, unsigned type);
void flame_notes_release(struct flame_notes *notes);
#define _cleanup_flame_notes_ __attribute__((cleanup(flame_notes_release)))
