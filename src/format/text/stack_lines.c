// SPDX-License-Identifier: Apache-2.0
// Frames of tracers' output: see stack_lines.h.

#include "format/text/stack_lines.h"

#include <ctype.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"

static bool take_hex(const char **at, const char *end, uint64_t *ret_value)
{
    const char *start = *at;
    uint64_t value = 0;
    if (end - start > 2 && start[0] == '0' && start[1] == 'x')
        start += 2;
    const char *digit = start;
    while (digit < end && hex_digit(*digit) >= 0)
        value = value << 4 | (unsigned)hex_digit(*digit++);
    if (digit == start || digit - start > 16)
        return false;
    *at = digit;
    *ret_value = value;
    return true;
}

/* Length without "+0x1c" or "+28". */
static size_t without_offset(const char *text, size_t length)
{
    size_t at = length;
    while (at && (hex_digit(text[at - 1]) >= 0 || text[at - 1] == 'x'))
        at--;
    return at > 1 && at < length && text[at - 1] == '+' ? at - 1 : length;
}

uint32_t stack_line_frame(struct profile *profile, const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    struct profile_frame frame = {0};
    while (at < end && isspace((unsigned char)*at))
        at++;
    while (end > at && isspace((unsigned char)end[-1]))
        end--;
    const char *word = at;
    uint64_t address;
    /* An address, and perhaps a name behind it. */
    if (take_hex(&word, end, &address) && (word == end || (*word == ' ' && word - at >= 4))) {
        frame.address = address;
        while (word < end && *word == ' ')
            word++;
        at = word;
        if (at == end)
            return profile_frame(profile, &frame);
    }
    const char *open = end > at && end[-1] == ')' ? memrchr(at, '(', (size_t)(end - at)) : NULL;
    if (open && open > at && open[-1] == ' ') {
        frame.mapping = profile_mapping(
            profile, &(struct profile_mapping){
                         .file = profile_string(profile, open + 1, (size_t)(end - open) - 2)});
        end = open - 1;
    }
    const char *tick = end > at ? memchr(at, '`', (size_t)(end - at)) : NULL;
    if (tick && tick > at && !frame.mapping) {
        frame.mapping = profile_mapping(
            profile,
            &(struct profile_mapping){.file = profile_string(profile, at, (size_t)(tick - at))});
        at = tick + 1;
    }
    struct profile_function function = {
        .name = profile_string(profile, at, without_offset(at, (size_t)(end - at)))};
    frame.function = profile_function(profile, &function);
    return profile_frame(profile, &frame);
}

void line_stack_add(struct line_stack *stack, uint32_t frame)
{
    array_reserve(stack->frames, stack->capacity, stack->count + 1);
    stack->frames[stack->count++] = frame;
}

uint32_t line_stack_take(struct line_stack *stack, struct profile *profile)
{
    for (size_t i = 0; i < stack->count / 2; i++) {
        uint32_t other = stack->frames[stack->count - 1 - i];
        stack->frames[stack->count - 1 - i] = stack->frames[i];
        stack->frames[i] = other;
    }
    uint32_t node = profile_stack(profile, stack->frames, stack->count);
    stack->count = 0;
    return node;
}
