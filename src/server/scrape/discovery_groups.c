// SPDX-License-Identifier: Apache-2.0
// Groups of targets out of YAML and JSON: see discovery.h.

#include <string.h>

#include "base/file.h"
#include "io/json.h"
#include "server/scrape/discovery.h"

static void group_release(struct target_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        free(group->addresses[i]);
    free(group->addresses);
    labels_release(&group->labels);
}

void target_groups_release(struct target_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        group_release(&groups->list[i]);
    free(groups->list);
    *groups = (struct target_groups){0};
}

static struct target_group *add_group(struct target_groups *groups)
{
    array_reserve(groups->list, groups->capacity, groups->count + 1);
    struct target_group *group = &groups->list[groups->count++];
    *group = (struct target_group){0};
    return group;
}

static void add_address(struct target_group *group, const char *text, size_t length)
{
    struct buffer copy = {0};
    buffer_add(&copy, text, length);
    buffer_text(&copy);
    array_reserve(group->addresses, group->capacity, group->count + 1);
    group->addresses[group->count++] = copy.data;
}

/* ---- YAML ---- */

static int bad_group(const struct yaml_node *node, struct error *error)
{
    return error_set(
        error, -EBADMSG,
        "Line %u: a group of targets must be {targets: [address, ...], labels: {name: value}}.",
        node->line);
}

static int yaml_group(const struct yaml_node *node, struct target_group *group, struct error *error)
{
    if (node->kind != YAML_MAP)
        return bad_group(node, error);
    for (size_t i = 0; i < node->count; i++) {
        const char *key = node->keys[i]->text;
        const struct yaml_node *value = node->values[i];
        if (!strcmp(key, "targets") && value->kind == YAML_LIST) {
            for (size_t k = 0; k < value->count; k++) {
                if (value->values[k]->kind != YAML_SCALAR)
                    return bad_group(value->values[k], error);
                add_address(group, value->values[k]->text, strlen(value->values[k]->text));
            }
        } else if (!strcmp(key, "labels") && value->kind == YAML_MAP) {
            for (size_t k = 0; k < value->count; k++) {
                if (value->values[k]->kind != YAML_SCALAR)
                    return bad_group(value->values[k], error);
                labels_set(&group->labels, value->keys[k]->text, value->values[k]->text);
            }
        } else if (value->kind != YAML_NULL || (strcmp(key, "labels") && strcmp(key, "targets"))) {
            return bad_group(value, error);
        }
    }
    return 0;
}

int target_groups_read_yaml(const struct yaml_node *list, struct target_groups *ret_groups,
                            struct error *error)
{
    struct target_groups groups = {0};
    int r = list->kind == YAML_LIST || list->kind == YAML_NULL ? 0 : bad_group(list, error);
    for (size_t i = 0; !r && i < list->count; i++)
        r = yaml_group(list->values[i], add_group(&groups), error);
    if (r < 0)
        target_groups_release(&groups);
    else
        *ret_groups = groups;
    return r;
}

/* ---- JSON ---- */

static int json_addresses(struct json *json, struct target_group *group)
{
    struct json_string text;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0)
        if ((r = json_string(json, &text)) >= 0)
            add_address(group, text.data, text.length);
    return r;
}

static int json_group_labels(struct json *json, struct target_group *group)
{
    struct json_string key, text;
    struct buffer name = {0};
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        name.length = 0;
        buffer_add(&name, key.data, key.length); /* a key lives until the next call only */
        if ((r = json_string(json, &text)) >= 0)
            labels_set_n(&group->labels, name.data ? name.data : "", name.length, text.data,
                         text.length);
    }
    buffer_release(&name);
    return r;
}

static int read_json(struct source *source, struct target_groups *groups, struct error *error)
{
    _cleanup_json_ struct json json;
    struct json_string key;
    json_init(&json, source, error);
    int r = json_array(&json);
    while (r >= 0 && (r = json_next_element(&json)) > 0) {
        struct target_group *group = add_group(groups);
        r = json_object(&json);
        while (r >= 0 && (r = json_next_key(&json, &key)) > 0)
            if (json_is(&key, "targets"))
                r = json_addresses(&json, group);
            else if (json_is(&key, "labels"))
                r = json_group_labels(&json, group);
            else
                r = json_fail(&json, "A group of targets can have only targets and labels");
    }
    return r < 0 ? r : json_end(&json);
}

/* ---- files ---- */

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), tail = strlen(end);
    return length > tail && !strcmp(path + length - tail, end);
}

int target_groups_read(const char *path, const char *text, size_t length,
                       struct target_groups *ret_groups, struct error *error)
{
    struct target_groups groups = {0};
    struct error cause = {0};
    int r;
    if (ends_in(path, ".json")) {
        struct source source;
        r = source_open_memory(&source, path, text, length, DISCOVERY_FILE_BYTES_MAX, &cause);
        if (!r) {
            r = read_json(&source, &groups, &cause);
            source_release(&source);
        }
    } else if (ends_in(path, ".yml") || ends_in(path, ".yaml")) {
        _cleanup_yaml_tree_ struct yaml_tree tree = {0};
        r = yaml_tree_read(path, text, length, &tree, &cause);
        if (!r)
            r = target_groups_read_yaml(tree.root, &groups, &cause);
    } else {
        return error_set(error, -EINVAL,
                         "%s: the name of a target file must end in .json, .yml or .yaml.", path);
    }
    if (r < 0) {
        target_groups_release(&groups);
        return error_set(error, r, "%s contains no valid groups of targets: %s", path, cause.text);
    }
    *ret_groups = groups;
    return 0;
}

int target_groups_read_file(const char *path, struct target_groups *ret_groups, struct error *error)
{
    _cleanup_buffer_ struct buffer content = {0};
    int r = file_read(path, DISCOVERY_FILE_BYTES_MAX, &content, error);
    return r < 0
               ? r
               : target_groups_read(path, buffer_text(&content), content.length, ret_groups, error);
}
