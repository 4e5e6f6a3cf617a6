/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as tracers print them, one on a line: for the readers of their output. */
#pragma once

#include "format/format.h"

/* "symbol+12", "module`symbol+0x1c", "7f12ab symbol+0x1c (/usr/lib/libc.so.6)", "0x7f12ab". Blanks
 * around it are left out. */
uint32_t stack_line_frame(struct profile *profile, const char *text, size_t length);

/* A stack that is collected line by line, innermost frame first. */
struct line_stack {
    uint32_t *frames;
    size_t count, capacity;
};

void line_stack_add(struct line_stack *stack, uint32_t frame);
/* Its node; the stack is empty then. */
uint32_t line_stack_take(struct line_stack *stack, struct profile *profile);
