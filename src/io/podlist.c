// SPDX-License-Identifier: Apache-2.0
// Reads Kubernetes's lists of pods: see podlist.h.

#include "io/podlist.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "io/json.h"

struct reader {
    struct json json;
    struct arena arena; /* of the pod at hand */
    struct podlist_pod pod;
};

/* `*ret_text` stays what it is where there is no string. */
static void read_text(struct reader *reader, const char **ret_text)
{
    struct json_string text;
    if (json_kind(&reader->json) != JSON_STRING || json_string(&reader->json, &text) < 0)
        return;
    size_t length = MIN(text.length, (size_t)PODLIST_TEXT_BYTES_MAX);
    *ret_text = arena_strndup(&reader->arena, text.data, strnlen(text.data, length));
}

/* Whether the next value is of that kind, and was entered. */
static bool enter(struct json *json, enum json_kind kind)
{
    if (json_kind(json) != (int)kind)
        return false;
    return (kind == JSON_OBJECT ? json_object(json) : json_array(json)) >= 0;
}

/* Labels or annotations. Those with values that are no strings are left out. */
static void read_pairs(struct reader *reader, struct podlist_pair **pairs, size_t *count)
{
    struct json_string key;
    if (!enter(&reader->json, JSON_OBJECT))
        return;
    if (!*pairs)
        *pairs = arena_alloc(&reader->arena, PODLIST_PAIRS_MAX * sizeof(**pairs));
    while (json_next_key(&reader->json, &key) > 0) {
        size_t length = MIN(key.length, (size_t)PODLIST_TEXT_BYTES_MAX);
        if (*count == PODLIST_PAIRS_MAX)
            continue;
        struct podlist_pair pair = {arena_strndup(&reader->arena, key.data, length), NULL};
        read_text(reader, &pair.value);
        if (pair.value)
            (*pairs)[(*count)++] = pair;
    }
}

static void read_owners(struct reader *reader)
{
    struct json *json = &reader->json;
    struct podlist_pod *pod = &reader->pod;
    struct json_string key;
    int r;
    if (!enter(json, JSON_ARRAY))
        return;
    while (json_next_element(json) > 0) {
        const char *kind = "", *name = "";
        bool controls = false;
        json_object(json);
        while ((r = json_next_key(json, &key)) > 0)
            if (json_is(&key, "kind"))
                read_text(reader, &kind);
            else if (json_is(&key, "name"))
                read_text(reader, &name);
            else if (json_is(&key, "controller") && json_kind(json) == JSON_BOOL)
                json_bool(json, &controls);
        if (r == 0 && *name && (!*pod->owner.name || (controls && !pod->owner.controls))) {
            pod->owner.kind = kind;
            pod->owner.name = name;
            pod->owner.controls = controls;
        }
    }
}

static void read_metadata(struct reader *reader)
{
    struct podlist_pod *pod = &reader->pod;
    struct json_string key;
    json_object(&reader->json);
    while (json_next_key(&reader->json, &key) > 0)
        if (json_is(&key, "name"))
            read_text(reader, &pod->name);
        else if (json_is(&key, "namespace"))
            read_text(reader, &pod->namespace);
        else if (json_is(&key, "uid"))
            read_text(reader, &pod->uid);
        else if (json_is(&key, "labels"))
            read_pairs(reader, &pod->labels, &pod->label_count);
        else if (json_is(&key, "annotations"))
            read_pairs(reader, &pod->annotations, &pod->annotation_count);
        else if (json_is(&key, "ownerReferences"))
            read_owners(reader);
}

/* A number that isn't a port is left out. */
static void read_port(struct reader *reader)
{
    struct podlist_pod *pod = &reader->pod;
    struct podlist_port port = {.container = "", .name = "", .protocol = "TCP"};
    struct json_string key;
    int64_t number = 0;
    int r;
    json_object(&reader->json);
    while ((r = json_next_key(&reader->json, &key)) > 0)
        if (json_is(&key, "name"))
            read_text(reader, &port.name);
        else if (json_is(&key, "protocol"))
            read_text(reader, &port.protocol);
        else if (json_is(&key, "containerPort") && json_kind(&reader->json) == JSON_NUMBER)
            json_i64(&reader->json, &number);
    if (r == 0 && number > 0 && number <= UINT16_MAX && pod->port_count < PODLIST_PORTS_MAX) {
        port.number = (uint16_t)number;
        pod->ports[pod->port_count++] = port;
    }
}

/* Containers of the spec: they declare ports. */
static void read_declared(struct reader *reader)
{
    struct podlist_pod *pod = &reader->pod;
    struct json_string key;
    if (!enter(&reader->json, JSON_ARRAY))
        return;
    if (!pod->ports)
        pod->ports = arena_alloc(&reader->arena, PODLIST_PORTS_MAX * sizeof(*pod->ports));
    while (json_next_element(&reader->json) > 0) {
        size_t first = pod->port_count;
        const char *name = "";
        json_object(&reader->json);
        while (json_next_key(&reader->json, &key) > 0)
            if (json_is(&key, "name"))
                read_text(reader, &name);
            else if (json_is(&key, "ports") && enter(&reader->json, JSON_ARRAY))
                while (json_next_element(&reader->json) > 0)
                    read_port(reader);
        if (first == pod->port_count && first < PODLIST_PORTS_MAX)
            pod->ports[pod->port_count++] = (struct podlist_port){.name = "", .protocol = ""};
        for (size_t i = first; i < pod->port_count; i++)
            pod->ports[i].container = name;
    }
}

static void read_spec(struct reader *reader)
{
    struct json_string key;
    json_object(&reader->json);
    while (json_next_key(&reader->json, &key) > 0)
        if (json_is(&key, "nodeName"))
            read_text(reader, &reader->pod.node);
        else if (json_is(&key, "containers"))
            read_declared(reader);
}

/* Containers of the status: they have ids. */
static void read_running(struct reader *reader)
{
    struct podlist_pod *pod = &reader->pod;
    struct json_string key;
    int r;
    if (!enter(&reader->json, JSON_ARRAY))
        return;
    if (!pod->containers)
        pod->containers =
            arena_alloc(&reader->arena, PODLIST_CONTAINERS_MAX * sizeof(*pod->containers));
    while (json_next_element(&reader->json) > 0) {
        struct podlist_container found = {.name = "", .id = ""};
        json_object(&reader->json);
        while ((r = json_next_key(&reader->json, &key)) > 0)
            if (json_is(&key, "name"))
                read_text(reader, &found.name);
            else if (json_is(&key, "containerID"))
                read_text(reader, &found.id);
        if (r == 0 && pod->container_count < PODLIST_CONTAINERS_MAX)
            pod->containers[pod->container_count++] = found;
    }
}

static void read_status(struct reader *reader)
{
    struct podlist_pod *pod = &reader->pod;
    struct json_string key;
    json_object(&reader->json);
    while (json_next_key(&reader->json, &key) > 0)
        if (json_is(&key, "podIP"))
            read_text(reader, &pod->ip);
        else if (json_is(&key, "hostIP"))
            read_text(reader, &pod->host_ip);
        else if (json_is(&key, "phase"))
            read_text(reader, &pod->phase);
        else if (json_is(&key, "containerStatuses") || json_is(&key, "initContainerStatuses"))
            read_running(reader);
}

static void read_pod(struct reader *reader, podlist_take_fn *take, void *context)
{
    struct json_string key;
    int r;
    arena_release(&reader->arena);
    reader->pod = (struct podlist_pod){.name = "",
                                       .namespace = "",
                                       .uid = "",
                                       .node = "",
                                       .ip = "",
                                       .host_ip = "",
                                       .phase = "",
                                       .owner = {.kind = "", .name = ""}};
    json_object(&reader->json);
    while ((r = json_next_key(&reader->json, &key)) > 0)
        if (json_is(&key, "metadata"))
            read_metadata(reader);
        else if (json_is(&key, "spec"))
            read_spec(reader);
        else if (json_is(&key, "status"))
            read_status(reader);
    if (r == 0)
        take(context, &reader->pod);
}

int podlist_read(const char *text, size_t length, podlist_take_fn *take, void *context,
                 char **ret_continue, struct error *error)
{
    struct source source;
    struct json_string key;
    char *next = NULL;
    int r = source_open_memory(&source, "the list of pods", text, length, length + 1, error);
    if (r < 0)
        return r;
    struct reader reader = {0};
    json_init(&reader.json, &source, error);
    json_object(&reader.json);
    while ((r = json_next_key(&reader.json, &key)) > 0)
        if (json_is(&key, "metadata")) {
            json_object(&reader.json);
            while (json_next_key(&reader.json, &key) > 0)
                if (json_is(&key, "continue") && json_kind(&reader.json) == JSON_STRING &&
                    json_string(&reader.json, &key) == 0) {
                    free(next);
                    next = memory_strndup(key.data, key.length);
                }
        } else if (json_is(&key, "items") && enter(&reader.json, JSON_ARRAY)) {
            while (json_next_element(&reader.json) > 0)
                read_pod(&reader, take, context);
        }
    if (r >= 0)
        r = json_end(&reader.json);
    json_release(&reader.json);
    source_release(&source);
    arena_release(&reader.arena);
    if (r >= 0 && ret_continue)
        *ret_continue = next ? next : memory_strdup("");
    else
        free(next);
    return MIN(r, 0);
}

void podlist_label_name(char *name, size_t room, const char *key)
{
    size_t used = strlen(name);
    for (; *key && used + 1 < room; key++)
        name[used++] = (char)(isalnum((unsigned char)*key) ? *key : '_');
    name[used] = '\0';
}
