/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of call trees: html.c and svg.c draw them, pictures.c makes them from profiles. */
#pragma once

#include "format/format.h"
#include "format/picture/flamedata.h"

typedef int picture_draw(struct buffer *out, struct calltree *tree,
                         const struct flame_options *options, struct error *error);

/* The interactive page. A tree that is too large for one is limited in place. */
picture_draw html_draw;

/* The static picture, of the default type only. */
picture_draw svg_draw;

/* The call tree of one profile, and the tree's index of the sample type that the options choose.
 * -EINVAL when the profile doesn't have it. The caller has initialised the tree and releases it. */
int picture_tree(struct calltree *tree, const struct profile *profile,
                 const struct write_options *options, unsigned *ret_type, struct error *error);

/* Draws one profile. */
int picture_write(struct buffer *out, const struct profile *profile,
                  const struct write_options *options, picture_draw *draw, struct error *error);
