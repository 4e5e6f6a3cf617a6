// SPDX-License-Identifier: Apache-2.0
// AutoFDO's sample profile as text, for `clang -fprofile-sample-use=FILE`. See
// docs/formats/autofdo.md.

#include "format/autofdo/tree.h"

#define DEPTH_MAX 64 /* of inlining, by how the tree is built */

static void write_lines(struct buffer *out, const struct fdo_tree *tree, uint32_t function,
                        unsigned depth)
{
    for (uint32_t at = tree->functions[function].first_line; at; at = tree->lines[at - 1].next) {
        buffer_printf(out, "%*s%u: %llu", (int)depth, "", tree->lines[at - 1].offset,
                      (unsigned long long)tree->lines[at - 1].count);
        for (uint32_t to = tree->lines[at - 1].first_target; to; to = tree->targets[to - 1].next)
            buffer_printf(out, " %s:%llu", tree->functions[tree->targets[to - 1].function].name,
                          (unsigned long long)tree->targets[to - 1].count);
        buffer_add_char(out, '\n');
    }
}

/* A function and all that is inlined into it, depth first. */
static void write_function(struct buffer *out, const struct fdo_tree *tree, uint32_t root)
{
    struct {
        uint32_t next;
    } path[DEPTH_MAX + 1];
    const struct fdo_function *function = &tree->functions[root];
    buffer_printf(out, "%s:%llu:%llu\n", function->name, (unsigned long long)function->total,
                  (unsigned long long)fdo_head_count(tree, root));
    write_lines(out, tree, root, 1);
    size_t depth = 1;
    path[1].next = function->first_child;
    while (depth) {
        uint32_t child = path[depth].next;
        if (!child) {
            depth--;
            continue;
        }
        const struct fdo_function *inlined = &tree->functions[child - 1];
        path[depth].next = inlined->next;
        buffer_printf(out, "%*s%u: %s:%llu\n", (int)depth, "", inlined->offset, inlined->name,
                      (unsigned long long)inlined->total);
        write_lines(out, tree, child - 1, (unsigned)depth + 1);
        if (depth < DEPTH_MAX)
            path[++depth].next = inlined->first_child;
    }
}

static int clang_write(struct buffer *out, const struct profile *profile,
                       const struct write_options *options, struct error *error)
{
    struct fdo_tree tree = {0};
    int r = fdo_tree_build(&tree, profile, options->type, error);
    for (size_t i = 0; r == 0 && i < tree.order_count && buffer_pass(out); i++)
        write_function(out, &tree, tree.order[i]);
    fdo_tree_release(&tree);
    return r;
}

const struct format format_autofdo = {
    .name = "autofdo",
    .summary = "AutoFDO's sample profile for clang",
    .extensions = ".afdo.txt",
    .detail = PROFILE_LINES | PROFILE_ADDRESSES,
    .write = clang_write,
};
