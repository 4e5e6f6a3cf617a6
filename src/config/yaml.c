// SPDX-License-Identifier: Apache-2.0
// YAML trees from libyaml's events. Open lists and maps are on a stack of fixed depth: nothing
// recurses.

#include "config/yaml.h"

#include <string.h>
#include <yaml.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/idtable.h"

#define ANCHORS_MAX 200 /* they are looked up one by one */

/* A list or map that is not complete. */
struct open_node {
    struct yaml_node *node;
    struct yaml_node *key; /* waiting for its value */
    size_t capacity;       /* of values */
    size_t key_capacity;
    struct yaml_node **values, **keys; /* heap; moved to the arena when complete */
    char *anchor;
};

struct anchor {
    char *name;
    struct yaml_node *node;
};

struct builder {
    const char *name;
    struct error *error;
    struct arena arena;
    struct open_node stack[YAML_DEPTH_MAX];
    size_t depth;
    struct anchor *anchors;
    size_t anchor_count, anchor_capacity;
    struct yaml_node *root;
    size_t total; /* weight of all nodes so far */
};

static int fail(struct builder *builder, int code, size_t line, const char *what)
{
    return error_set(builder->error, code, "%s:%zu: %s.", builder->name, line, what);
}

static struct yaml_node *new_node(struct builder *builder, enum yaml_kind kind, size_t line)
{
    struct yaml_node *node = arena_alloc(&builder->arena, sizeof(*node));
    *node = (struct yaml_node){.kind = kind, .line = (uint32_t)line, .text = "", .weight = 1};
    return node;
}

static bool is_null(const char *text)
{
    return !*text || !strcmp(text, "~") || !strcmp(text, "null") || !strcmp(text, "Null") ||
           !strcmp(text, "NULL");
}

/* May it be a key? Whether it is one twice is seen when the map is complete. */
static int check_key(struct builder *builder, const struct yaml_node *key)
{
    if (key->kind == YAML_LIST || key->kind == YAML_MAP)
        return fail(builder, -EBADMSG, key->line, "A list or map can't be a key");
    if (!strcmp(key->text, "<<") && !key->quoted)
        return fail(builder, -ENOTSUP, key->line,
                    "Merge keys (<<) are not supported: write the entries out");
    return 0;
}

/* Puts a complete node where it belongs. */
static int place(struct builder *builder, struct yaml_node *node, size_t line)
{
    builder->total += node->weight;
    if (builder->total > YAML_NODES_MAX)
        return fail(builder, -E2BIG, line, "The document has too many entries");
    if (!builder->depth) {
        builder->root = node;
        return 0;
    }
    struct open_node *open = &builder->stack[builder->depth - 1];
    struct yaml_node *parent = open->node;
    if (parent->kind == YAML_MAP && !open->key) {
        open->key = node;
        return check_key(builder, node);
    }
    array_reserve(open->values, open->capacity, parent->count + 1);
    open->values[parent->count] = node;
    if (parent->kind == YAML_MAP) {
        array_reserve(open->keys, open->key_capacity, parent->count + 1);
        open->keys[parent->count] = TAKE_PTR(open->key);
    }
    parent->count++;
    parent->weight += node->weight;
    return 0;
}

static int remember(struct builder *builder, const char *anchor, struct yaml_node *node)
{
    if (!anchor)
        return 0;
    for (size_t i = 0; i < builder->anchor_count; i++)
        if (!strcmp(builder->anchors[i].name, anchor)) {
            builder->anchors[i].node = node; /* YAML lets an anchor be used again */
            return 0;
        }
    if (builder->anchor_count == ANCHORS_MAX)
        return fail(builder, -E2BIG, node->line, "The document has too many anchors");
    array_reserve(builder->anchors, builder->anchor_capacity, builder->anchor_count + 1);
    builder->anchors[builder->anchor_count++] =
        (struct anchor){arena_strndup(&builder->arena, anchor, strlen(anchor)), node};
    return 0;
}

static int add_scalar(struct builder *builder, const yaml_event_t *event, size_t line)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(text, '\0', length))
        return fail(builder, -EBADMSG, line, "A value contains a NUL character");
    struct yaml_node *node = new_node(builder, YAML_SCALAR, line);
    node->text = arena_strndup(&builder->arena, text, length);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (!node->quoted && is_null(node->text))
        node->kind = YAML_NULL;
    int result = remember(builder, (const char *)event->data.scalar.anchor, node);
    return result < 0 ? result : place(builder, node, line);
}

static int add_alias(struct builder *builder, const yaml_event_t *event, size_t line)
{
    const char *name = (const char *)event->data.alias.anchor;
    for (size_t i = 0; i < builder->anchor_count; i++)
        if (!strcmp(builder->anchors[i].name, name))
            return place(builder, builder->anchors[i].node, line);
    return fail(builder, -EBADMSG, line, "An alias refers to an unknown anchor");
}

static int open_node(struct builder *builder, enum yaml_kind kind, const yaml_char_t *anchor,
                     size_t line)
{
    if (builder->depth == YAML_DEPTH_MAX)
        return fail(builder, -E2BIG, line, "The document is nested too deeply");
    struct open_node *open = &builder->stack[builder->depth++];
    *open = (struct open_node){.node = new_node(builder, kind, line)};
    if (anchor)
        open->anchor =
            arena_strndup(&builder->arena, (const char *)anchor, strlen((const char *)anchor));
    return 0;
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash_word(hash);
}

static int check_twice(struct builder *builder, const struct yaml_node *map)
{
    struct id_table seen = {0};
    int result = 0;
    for (size_t i = 0; i < map->count && result == 0; i++) {
        uint64_t hash = hash_text(map->keys[i]->text);
        struct id_probe probe = id_probe_start(hash);
        uint32_t other;
        while ((other = id_table_next(&seen, &probe)) != ID_NONE)
            if (!strcmp(map->keys[other]->text, map->keys[i]->text)) {
                result = error_set(builder->error, -EBADMSG,
                                   "%s:%u: duplicate key \"%.100s\", first used in line %u.",
                                   builder->name, map->keys[i]->line, map->keys[i]->text,
                                   map->keys[other]->line);
                break;
            }
        id_table_insert(&seen, hash, (uint32_t)i);
    }
    id_table_release(&seen);
    return result;
}

static struct yaml_node **keep(struct builder *builder, struct yaml_node **list, size_t count)
{
    if (!list)
        return NULL;
    struct yaml_node **copy = arena_alloc(&builder->arena, count * sizeof(struct yaml_node *));
    memcpy(copy, list, count * sizeof(struct yaml_node *));
    free(list);
    return copy;
}

static int close_node(struct builder *builder, size_t line)
{
    struct open_node open = builder->stack[--builder->depth];
    open.node->values = keep(builder, open.values, open.node->count);
    open.node->keys = keep(builder, open.keys, open.node->count);
    int result = open.node->kind == YAML_MAP ? check_twice(builder, open.node) : 0;
    if (result == 0)
        result = remember(builder, open.anchor, open.node);
    if (result < 0)
        return result;
    /* Its content has been counted already. */
    builder->total -= open.node->weight - 1;
    return place(builder, open.node, line);
}

static int handle(struct builder *builder, const yaml_event_t *event, bool *ret_end)
{
    size_t line = event->start_mark.line + 1;
    switch (event->type) {
    case YAML_STREAM_END_EVENT:
        *ret_end = true;
        return 0;
    case YAML_DOCUMENT_START_EVENT:
        if (builder->root)
            return fail(builder, -ENOTSUP, line, "The file contains more than one document");
        return 0;
    case YAML_ALIAS_EVENT:
        return add_alias(builder, event, line);
    case YAML_SCALAR_EVENT:
        if (event->data.scalar.tag)
            return fail(builder, -ENOTSUP, line, "Tags are not supported");
        return add_scalar(builder, event, line);
    case YAML_SEQUENCE_START_EVENT:
        if (event->data.sequence_start.tag)
            return fail(builder, -ENOTSUP, line, "Tags are not supported");
        return open_node(builder, YAML_LIST, event->data.sequence_start.anchor, line);
    case YAML_MAPPING_START_EVENT:
        if (event->data.mapping_start.tag)
            return fail(builder, -ENOTSUP, line, "Tags are not supported");
        return open_node(builder, YAML_MAP, event->data.mapping_start.anchor, line);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_node(builder, line);
    default:
        return 0;
    }
}

static int complain(struct builder *builder, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return fail(builder, -ENOMEM, 1, "Not enough memory to read this");
    size_t line = parser->problem_mark.line + 1;
    const char *problem = parser->problem ? parser->problem : "invalid YAML";
    if (parser->context)
        return error_set(builder->error, -EBADMSG, "%s:%zu: Invalid YAML: %s, %s.", builder->name,
                         line, parser->context, problem);
    return error_set(builder->error, -EBADMSG, "%s:%zu: Invalid YAML: %s.", builder->name, line,
                     problem);
}

static int build(struct builder *builder, yaml_parser_t *parser)
{
    for (bool end = false; !end;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return complain(builder, parser);
        int result = handle(builder, &event, &end);
        yaml_event_delete(&event);
        if (result < 0)
            return result;
    }
    if (!builder->root)
        builder->root = new_node(builder, YAML_NULL, 1);
    return 0;
}

int yaml_tree_read(const char *name, const char *text, size_t length, struct yaml_tree *ret_tree,
                   struct error *error)
{
    if (length > YAML_BYTES_MAX)
        return error_set(error, -E2BIG, "%s: the file is larger than %u bytes.", name,
                         YAML_BYTES_MAX);
    struct builder builder = {.name = name, .error = error};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return error_set(error, -ENOMEM, "%s: not enough memory to read this.", name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    int result = build(&builder, &parser);
    yaml_parser_delete(&parser);
    while (builder.depth) {
        struct open_node *open = &builder.stack[--builder.depth];
        free(open->values);
        free(open->keys);
    }
    free(builder.anchors);
    if (result < 0) {
        arena_release(&builder.arena);
        return result;
    }
    *ret_tree = (struct yaml_tree){.root = builder.root, .arena = builder.arena};
    return 0;
}

int yaml_tree_read_file(const char *path, struct yaml_tree *ret_tree, struct error *error)
{
    _cleanup_buffer_ struct buffer content = {0};
    int result = file_read(path, YAML_BYTES_MAX, &content, error);
    if (result < 0)
        return result;
    return yaml_tree_read(path, buffer_text(&content), content.length, ret_tree, error);
}

void yaml_tree_release(struct yaml_tree *tree)
{
    arena_release(&tree->arena);
    *tree = (struct yaml_tree){0};
}

const struct yaml_node *yaml_node_get(const struct yaml_node *map, const char *key)
{
    for (size_t i = 0; map->kind == YAML_MAP && i < map->count; i++)
        if (!strcmp(map->keys[i]->text, key))
            return map->values[i];
    return NULL;
}
