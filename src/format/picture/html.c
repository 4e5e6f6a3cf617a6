// SPDX-License-Identifier: Apache-2.0
// The interactive flame graph: one HTML file that needs nothing else. The page comes from web/ as a
// template; here the title and the data are put into it.

#include <string.h>

#include "base/text.h"
#include "format/picture/flamedata.h"
#include "format/picture/page.h"
#include "format/picture/pictures.h"

#define TITLE_TOKEN "<!--ASSAY-TITLE-->"
#define DATA_TOKEN "<!--ASSAY-FLAME-DATA-->"

/* Appends the template up to the token and moves behind it. */
static bool copy_until(struct buffer *out, const char **at, const char *end, const char *token)
{
    const char *found = memmem(*at, (size_t)(end - *at), token, strlen(token));
    if (!found)
        return false;
    buffer_add(out, *at, (size_t)(found - *at));
    buffer_pass(out);
    *at = found + strlen(token);
    return true;
}

static int write_page(struct buffer *out, const struct calltree *tree,
                      const struct flame_options *options, struct error *error)
{
    const char *at = (const char *)flame_page, *end = at + flame_page_length;
    const char *title = options->title ? options->title : "Flame graph";
    if (!copy_until(out, &at, end, TITLE_TOKEN))
        return error_set(error, -ENOTSUP,
                         "The page template of this build has no placeholder for a title.");
    text_escape_xml(out, title, strlen(title));
    if (!copy_until(out, &at, end, DATA_TOKEN))
        return error_set(error, -ENOTSUP,
                         "The page template of this build has no placeholder for data.");
    /* No `<` is in the document, so nothing in it can end the element. */
    buffer_add_text(out, "<script type=\"application/json\" id=\"flame-data\">");
    int r = flamedata_write(out, tree, options, error);
    buffer_add_text(out, "</script>");
    buffer_add(out, at, (size_t)(end - at));
    return r;
}

int html_draw(struct buffer *out, struct calltree *tree, const struct flame_options *options,
              struct error *error)
{
    struct flame_options limited = *options;
    _cleanup_flame_table_ struct flame_table table = {0};
    uint32_t max_nodes = options->max_nodes ? options->max_nodes : FLAME_NODES_MAX;
    if (tree->node_count > max_nodes && !options->table) {
        flame_table_init(&table, tree);
        limited.table = &table;
    }
    limited.dropped += calltree_limit(tree, max_nodes);
    return write_page(out, tree, &limited, error);
}

static int html_write(struct buffer *out, const struct profile *profile,
                      const struct write_options *options, struct error *error)
{
    return picture_write(out, profile, options, html_draw, error);
}

const struct format format_html = {
    .name = "html",
    .summary = "interactive flame graph: one page that needs no network",
    .extensions = ".html .htm",
    .detail = PROFILE_LABELS | PROFILE_TIMES, /* in which thread and state, and when */
    .write = html_write,
};
