// SPDX-License-Identifier: Apache-2.0
// From a profile to what pictures draw: its call tree, the chosen type and the notes.

#include "format/picture/pictures.h"

#include "format/picture/times.h"

static unsigned chosen_type(const struct profile *profile, const struct write_options *options)
{
    return options->type < 0 ? profile_default_type(profile) : (unsigned)options->type;
}

int picture_tree(struct calltree *tree, const struct profile *profile,
                 const struct write_options *options, unsigned *ret_type, struct error *error)
{
    int r = calltree_add(tree, profile, CALLTREE_NEW, error);
    if (r < 0)
        return r;
    *ret_type = calltree_type_of(tree, profile, chosen_type(profile, options));
    if (*ret_type == PROFILE_TYPES_MAX)
        return error_set(error, -EINVAL, "The profile has no such sample type.");
    return 0;
}

int picture_write(struct buffer *out, const struct profile *profile,
                  const struct write_options *options, picture_draw *draw, struct error *error)
{
    _cleanup_calltree_ struct calltree tree;
    unsigned type;
    calltree_init(&tree);
    int r = picture_tree(&tree, profile, options, &type, error);
    if (r < 0)
        return r;
    _cleanup_flame_notes_ struct flame_notes notes;
    flame_notes_init(&notes, profile, &tree, type);
    calltree_add_states(&tree, profile, chosen_type(profile, options));
    _cleanup_flame_times_ struct flame_times times;
    flame_times_init(&times, &tree, profile, chosen_type(profile, options));
    struct flame_options flame = {
        .title = options->title,
        .notes = (const char *const *)notes.list,
        .note_count = notes.count,
        .default_type = type,
        .times = &times,
    };
    return draw(out, &tree, &flame, error);
}
