/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of two profiles compared; those of one go through format_html and format_svg. */
#pragma once

#include "format/flamedata.h"

/* The interactive page. A tree that is too large for one is limited in place. */
int html_write_diff(struct buffer *out, struct calltree *tree, const struct flame_options *options,
                    struct error *error);

/* The static picture, of the default type only. */
int svg_write_diff(struct buffer *out, const struct calltree *tree,
                   const struct flame_options *options, struct error *error);
