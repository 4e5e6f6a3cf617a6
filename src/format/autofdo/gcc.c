// SPDX-License-Identifier: Apache-2.0
// AutoFDO's profile in gcc's binary form, for `gcc -fauto-profile=FILE`: words of 32 bits, counters
// of two words, a table of names, and functions that contain those inlined into them. See
// docs/formats/autofdo.md.

#include <string.h>

#include "base/memory.h"
#include "format/autofdo/tree.h"

enum {
    MAGIC = 0x67636461,
    VERSION = 2,
    TAG_NAMES = (int)0xaa000000,
    TAG_FUNCTIONS = (int)0xac000000,
    TAG_MODULES = (int)0xae000000,
};

#define DEPTH_MAX 64

static void add_word(struct buffer *out, uint32_t word)
{
    buffer_add(out, &word, sizeof(word));
}

static void add_counter(struct buffer *out, uint64_t value)
{
    add_word(out, (uint32_t)value);
    add_word(out, (uint32_t)(value >> 32));
}

/* A name's length with its zero byte, and its bytes. gcc takes the first for none, so that one is
 * empty. */
static void add_names(struct buffer *out, const struct fdo_tree *tree)
{
    add_word(out, (uint32_t)TAG_NAMES);
    add_word(out, 0); /* the length, which nobody reads */
    add_word(out, (uint32_t)tree->function_count + 1);
    add_word(out, 1);
    buffer_add_char(out, '\0');
    for (size_t i = 0; i < tree->function_count; i++) {
        size_t length = strlen(tree->functions[i].name) + 1;
        add_word(out, (uint32_t)length);
        buffer_add(out, tree->functions[i].name, length);
    }
}

/* Its head: name, numbers of lines and of inlined functions, and the lines. Offsets have the line
 * in their upper half, and a discriminator, which samples don't have, in the lower. */
static void add_head(struct buffer *out, const struct fdo_tree *tree, uint32_t function)
{
    uint32_t lines = 0, children = 0;
    const struct fdo_function *self = &tree->functions[function];
    for (uint32_t at = self->first_line; at; at = tree->lines[at - 1].next)
        lines++;
    for (uint32_t at = self->first_child; at; at = tree->functions[at - 1].next)
        children++;
    add_word(out, function + 1);
    add_word(out, lines);
    add_word(out, children);
    for (uint32_t at = self->first_line; at; at = tree->lines[at - 1].next) {
        add_word(out, tree->lines[at - 1].offset << 16);
        uint32_t targets = 0, first = tree->lines[at - 1].first_target;
        for (uint32_t to = first; to; to = tree->targets[to - 1].next)
            targets++;
        add_word(out, targets);
        add_counter(out, tree->lines[at - 1].count);
        for (uint32_t to = first; to; to = tree->targets[to - 1].next) {
            add_word(out, 0); /* the kind of histogram, which nobody reads */
            add_counter(out, tree->targets[to - 1].function + 1ull);
            add_counter(out, tree->targets[to - 1].count);
        }
    }
}

static void add_function(struct buffer *out, const struct fdo_tree *tree, uint32_t root)
{
    uint32_t next[DEPTH_MAX + 1];
    size_t depth = 1;
    add_counter(out, fdo_head_count(tree, root));
    add_head(out, tree, root);
    next[1] = tree->functions[root].first_child;
    while (depth) {
        uint32_t child = next[depth];
        if (!child) {
            depth--;
            continue;
        }
        next[depth] = tree->functions[child - 1].next;
        add_word(out, tree->functions[child - 1].offset << 16);
        add_head(out, tree, child - 1);
        if (depth < DEPTH_MAX)
            next[++depth] = tree->functions[child - 1].first_child;
    }
}

static int gcc_write(struct buffer *out, const struct profile *profile,
                     const struct write_options *options, struct error *error)
{
    struct fdo_tree tree = {0};
    int r = fdo_tree_build(&tree, profile, options->type, error);
    if (r == 0) {
        add_word(out, MAGIC);
        add_word(out, VERSION);
        add_word(out, 0);
        add_names(out, &tree);
        add_word(out, (uint32_t)TAG_FUNCTIONS);
        add_word(out, 0);
        add_word(out, (uint32_t)tree.order_count);
        for (size_t i = 0; i < tree.order_count && buffer_pass(out); i++)
            add_function(out, &tree, tree.order[i]);
        add_word(out, (uint32_t)TAG_MODULES);
        add_word(out, 0);
        add_word(out, 0);
    }
    fdo_tree_release(&tree);
    return r;
}

const struct format format_autofdo_gcc = {
    .name = "autofdo-gcc",
    .summary = "AutoFDO's profile for gcc",
    .extensions = ".afdo",
    .detail = PROFILE_LINES | PROFILE_ADDRESSES,
    .write = gcc_write,
};
