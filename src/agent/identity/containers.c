// SPDX-License-Identifier: Apache-2.0
// State files of container runtimes: see containers.h.

#include "agent/identity/containers.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "io/json.h"

#define STATE_BYTES_MAX (8u << 20)

/* Names in a state file; "" for a missing one. */
struct found {
    char container[256], pod[256], namespace[256];
};

static const struct {
    const char *key;
    size_t offset; /* of the text in struct found */
} annotations[] = {
    {"io.kubernetes.cri.container-name", offsetof(struct found, container)},
    {"io.kubernetes.cri.sandbox-name", offsetof(struct found, pod)},
    {"io.kubernetes.cri.sandbox-namespace", offsetof(struct found, namespace)},
    {"io.kubernetes.container.name", offsetof(struct found, container)},
    {"io.kubernetes.pod.name", offsetof(struct found, pod)},
    {"io.kubernetes.pod.namespace", offsetof(struct found, namespace)},
    {"nerdctl/name", offsetof(struct found, container)},
};

static int read_text(struct json *json, char text[256])
{
    struct json_string value;
    int r = json_kind(json);
    if (r != JSON_STRING)
        return MIN(r, 0);
    if ((r = json_string(json, &value)) == 0 && value.length < 256 &&
        !memchr(value.data, 0, value.length)) {
        memcpy(text, value.data, value.length);
        text[value.length] = '\0';
    }
    return r;
}

/* Of a bundle: its annotations. */
static int read_annotations(struct json *json, struct found *found)
{
    struct json_string key;
    int r = json_kind(json);
    if (r != JSON_OBJECT)
        return MIN(r, 0);
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0)
        for (size_t i = 0; i < ARRAY_LENGTH(annotations); i++)
            if (json_is(&key, annotations[i].key)) {
                read_text(json, (char *)found + annotations[i].offset);
                break;
            }
    return r;
}

/* Of Podman's and CRI-O's list: [{"id": ..., "names": [...]}, ...]. */
static int read_list(struct json *json, const char *id, struct found *found)
{
    struct json_string key;
    int r;
    json_array(json);
    while ((r = json_next_element(json)) > 0) {
        char own[256] = "", name[256] = "";
        if (json_kind(json) != JSON_OBJECT)
            continue;
        json_object(json);
        while ((r = json_next_key(json, &key)) > 0) {
            if (json_is(&key, "id")) {
                read_text(json, own);
            } else if (json_is(&key, "names") && json_kind(json) == JSON_ARRAY) {
                json_array(json);
                while ((r = json_next_element(json)) > 0)
                    if (!name[0])
                        read_text(json, name);
            }
        }
        if (r == 0 && !strcmp(own, id))
            memcpy(found->container, name, sizeof(name));
    }
    return r;
}

static int read_state(struct json *json, const char *id, struct found *found)
{
    struct json_string key;
    int r = json_kind(json);
    if (r == JSON_ARRAY)
        return read_list(json, id, found);
    if (r != JSON_OBJECT)
        return MIN(r, 0);
    json_object(json);
    while ((r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "annotations"))
            read_annotations(json, found);
        else if (json_is(&key, "Name") && !found->container[0]) /* Docker's */
            read_text(json, found->container);
    }
    return r;
}

static bool read_file(const char *path, const char *id, struct found *found)
{
    _cleanup_buffer_ struct buffer content = {0};
    struct error error = {0};
    struct source source;
    struct json json;
    *found = (struct found){0};
    if (file_read(path, STATE_BYTES_MAX, &content, NULL) < 0 ||
        source_open_memory(&source, path, content.data, content.length, STATE_BYTES_MAX, &error) <
            0)
        return false;
    json_init(&json, &source, &error);
    bool whole = read_state(&json, id, found) >= 0;
    json_release(&json);
    source_release(&source);
    return whole && found->container[0];
}

static void set_default(struct labels *labels, const char *name, const char *value)
{
    if (*value && !labels_get(labels, name))
        labels_set(labels, name, value);
}

bool container_label(const char *root, const char *container_id, struct labels *labels)
{
    static const struct {
        const char *directory, *file;
    } paths[] = {
        {"/run/containerd/io.containerd.runtime.v2.task/k8s.io", "config.json"},
        {"/run/containers/storage/overlay-containers", "userdata/config.json"},
        {"/var/lib/docker/containers", "config.v2.json"},
        {"/run/containerd/io.containerd.runtime.v2.task/default", "config.json"},
    };
    static const char list[] = "/var/lib/containers/storage/overlay-containers/containers.json";
    char path[PATH_MAX];
    struct found found;
    bool known = false;
    for (size_t i = 0; i < ARRAY_LENGTH(paths) && !known; i++) {
        snprintf(path, sizeof(path), "%s%s/%s/%s", root, paths[i].directory, container_id,
                 paths[i].file);
        known = read_file(path, container_id, &found);
    }
    if (!known) {
        snprintf(path, sizeof(path), "%s%s", root, list);
        known = read_file(path, container_id, &found);
    }
    if (!known)
        return false;
    set_default(labels, "container", found.container + (found.container[0] == '/'));
    set_default(labels, "pod", found.pod);
    set_default(labels, "namespace", found.namespace);
    return true;
}
