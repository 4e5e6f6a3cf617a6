/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that a reader has taken apart and checked, but not added to its profile: each is known by
 * a digest of what its frames are. A profile with unresolved stacks has samples that name these
 * instead of nodes, so that a store which knows nearly all of them by their digests has only the
 * others put together. Digests are by content: a stack has the same one in every profile and
 * format.
 *
 * The profile owns them, and profile_release ends them. One thread at a time, as the profile.
 */
#pragma once

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include "base/digests.h"
#include "profile/names/readable.h"
#include "profile/profile.h"

/* A frame by what it is made of; its own ids of both are 0. */
struct unresolved_parts {
    struct profile_frame frame;
    uint64_t function, mapping; /* hashes; 0: none */
};

struct unresolved_stacks {
    struct profile *profile; /* to which things are added; set anew when it is moved */
    uint64_t seed;           /* that the digests were made with */
    struct digest *digests;  /* by stack; `high` is 0 for those without frames */
    uint32_t count;          /* of stacks; 0 is always there and has no frames */
    uint32_t deepest;        /* frames of the deepest */
    struct digest *frames;   /* digests of the frames that stacks are made of */
    uint32_t frame_count;

    /* The stack's frames, outermost first, into room for `deepest`; returns how many. */
    uint32_t (*stack)(struct unresolved_stacks *unresolved, uint32_t stack, uint32_t *ret_frames);
    /* Describes a frame without adding anything. */
    void (*parts)(struct unresolved_stacks *unresolved, uint32_t frame,
                  struct unresolved_parts *ret_parts);
    /* The frame as one of the profile, added with all that it needs when it is new. */
    uint32_t (*frame)(struct unresolved_stacks *unresolved, uint32_t frame);
    void (*free)(struct unresolved_stacks *unresolved);
};

/* The stack as a node of the profile; `scratch` has room for `deepest`. */
uint32_t unresolved_node(struct unresolved_stacks *unresolved, uint32_t stack, uint32_t *scratch);

/* Adds all stacks that samples name, which name nodes then. Does nothing without unresolved stacks.
 */
void profile_settle(struct profile *profile);

/* Room for `count` rows in all, once the types are there. */
void profile_reserve_rows(struct profile *profile, size_t count);

/* Appends a row without looking for an equal one. Only for samples of unresolved stacks, which are
 * added up when they settle or by who takes them. */
size_t profile_append_sample(struct profile *profile, uint32_t stack, uint32_t labels,
                             uint32_t link);

/* ---- what makes things of two profiles the same: names, not ids ---- */

static inline uint64_t unresolved_string_hash(const char *text, size_t length, uint64_t seed)
{
    return XXH3_64bits_withSeed(text, length, seed) | 1; /* never 0 */
}

struct unresolved_function {
    uint64_t name, system_name, file; /* hashes of strings */
    uint64_t start_line;
};

/* Makes the hashes those of the names that the function has in a profile. */
void unresolved_choose_name(struct unresolved_function *function, struct name_text own,
                            struct name_text system, uint64_t seed);

static inline uint64_t unresolved_function_hash(struct unresolved_function function, uint64_t seed)
{
    return XXH3_64bits_withSeed(&function, sizeof(function), seed) | 1;
}

/* By what profile_mapping goes by: `name` is the hash of the build ID, or else of the file. */
static inline uint64_t unresolved_mapping_hash(const struct profile_mapping *mapping, uint64_t name,
                                               uint64_t seed)
{
    uint64_t key[3] = {
        mapping->offset,
        name,
        mapping->build_id || mapping->file ? mapping->build_id != 0 : mapping->start,
    };
    return XXH3_64bits_withSeed(key, sizeof(key), seed) | 1;
}

/* All of a frame but its address, hashed to one word: of all its lines, and of one. */
static inline uint64_t unresolved_common(unsigned kind, bool folded)
{
    return kind << 2 | folded;
}
static inline uint64_t unresolved_details(uint64_t common, uint32_t line, uint32_t column,
                                          bool inlined)
{
    return common | (uint64_t)line << 32 | (uint64_t)column << 8 | (unsigned)inlined << 1;
}

static inline struct digest unresolved_digest(uint64_t address, uint64_t details, uint64_t function,
                                              uint64_t mapping, uint64_t seed)
{
    uint64_t key[4] = {address, details, function, mapping};
    XXH128_hash_t hash = XXH3_128bits_withSeed(key, sizeof(key), seed);
    return (struct digest){.low = hash.low64, .high = hash.high64 | 1}; /* never both 0 */
}

/* Of the frame only what is not said by the two hashes. */
static inline struct digest unresolved_frame_digest(const struct profile_frame *frame,
                                                    uint64_t function, uint64_t mapping,
                                                    uint64_t seed)
{
    uint64_t details = unresolved_details(unresolved_common(frame->kind, frame->folded),
                                          frame->line, frame->column, frame->inlined);
    return unresolved_digest(frame->address, details, function, mapping, seed);
}

/* The digest of a stack from its caller's and its last frame's. Both are seeded hashes already, so
 * that little has to be done to mix them; and little is done, because this is for every frame of
 * every stack of a push. */
static inline struct digest unresolved_digest_below(struct digest parent, struct digest frame)
{
    unsigned __int128 product =
        (unsigned __int128)(parent.low ^ frame.high) * (parent.high ^ frame.low);
    return (struct digest){.low = (uint64_t)(product >> 64), .high = (uint64_t)product};
}
