/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a profile of addresses to one of functions. Of each file all addresses are looked up at
 * once, so that its debug information is read once and only where it is needed.
 */
#pragma once

#include "profile/profile.h"
#include "symbol/naming/symbolizer.h"

/* The function of `to` that a frame names. */
uint32_t symbol_function(struct profile *to, const struct symbol_frame *frame);

/* Turns renamed[0], an address, into the frames at it, which are given innermost first; in a stack
 * the innermost comes last. Frames without a name keep the address. Returns their number. */
size_t symbol_put_frames(struct profile *to, const struct symbol_frame *frames, size_t count,
                         struct profile_frame *renamed);

/* Where the file of a mapping can be opened now, such as /proc/PID/root/usr/bin/x; NULL for the
 * mapping's own file name, "" when it can't be. The text has to live until the next call. */
typedef const char *(*symbol_locate_fn)(void *context, const struct profile *from,
                                        uint32_t mapping_id);

/*
 * Adds all of `from` to `to`, which is empty at first. A frame that is an address becomes its
 * function and everything that is inlined there, with file and line where they are known; so
 * does a frame with the name of a symbol and without lines, where its file has the build ID. A
 * function without a name becomes the address of its start. `locate` may be NULL.
 */
int symbol_name_profile(struct symbolizer *symbolizer, const struct profile *from,
                        struct profile *to, symbol_locate_fn locate, void *context,
                        struct error *error);
