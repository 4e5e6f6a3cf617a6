// SPDX-License-Identifier: Apache-2.0
// Containers, pods and services out of cgroup paths, as container runtimes and systemd name them.

#include <ctype.h>
#include <string.h>

#include "agent/identity/identity.h"
#include "base/memory.h"

struct span {
    const char *text;
    size_t length;
};

/* One component of a path, from the end. */
static bool last_component(struct span *path, struct span *ret_component)
{
    while (path->length && path->text[path->length - 1] == '/')
        path->length--;
    size_t end = path->length;
    while (path->length && path->text[path->length - 1] != '/')
        path->length--;
    *ret_component = (struct span){path->text + path->length, end - path->length};
    return end > path->length;
}

static bool strip_prefix(struct span *span, const char *prefix)
{
    size_t length = strlen(prefix);
    if (span->length < length || memcmp(span->text, prefix, length))
        return false;
    span->text += length;
    span->length -= length;
    return true;
}

static bool strip_suffix(struct span *span, const char *suffix)
{
    size_t length = strlen(suffix);
    if (span->length < length || memcmp(span->text + span->length - length, suffix, length))
        return false;
    span->length -= length;
    return true;
}

static bool is_hex(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isxdigit((unsigned char)text[i]))
            return false;
    return true;
}

/* The prefixes of a container's id by runtime; names of their own helpers have more between. */
static const struct {
    const char *prefix, *runtime;
} runtimes[] = {
    {"docker-", "docker"},
    {"cri-containerd-", "containerd"},
    {"containerd-", "containerd"},
    {"nerdctl-", "containerd"},
    {"crio-", "cri-o"},
    {"libpod-", "podman"},
};

static bool take_container(struct span component, struct cgroup_identity *identity)
{
    const char *runtime = "";
    strip_suffix(&component, ".scope");
    for (size_t i = 0; i < ARRAY_LENGTH(runtimes); i++)
        if (strip_prefix(&component, runtimes[i].prefix)) {
            runtime = runtimes[i].runtime;
            break;
        }
    if (component.length != CONTAINER_ID_BYTES - 1 || !is_hex(component.text, component.length))
        return false;
    memcpy(identity->container_id, component.text, component.length);
    identity->runtime = runtime;
    return true;
}

/* "pod<uid>" or "kubepods-burstable-pod<uid>.slice", where dashes are underscores; static pods have
 * a hash for a uid. */
static bool take_pod(struct span component, struct cgroup_identity *identity)
{
    char uid[POD_UID_BYTES] = "";
    if (strip_suffix(&component, ".slice")) {
        const char *at = memmem(component.text, component.length, "-pod", 4);
        if (!at)
            return false;
        component.length -= (size_t)(at + 4 - component.text);
        component.text = at + 4;
    } else if (!strip_prefix(&component, "pod")) {
        return false;
    }
    if (component.length != 36 && component.length != 32)
        return false;
    for (size_t i = 0; i < component.length; i++) {
        char c = component.text[i] == '_' ? '-' : component.text[i];
        bool dash = component.length == 36 && (i == 8 || i == 13 || i == 18 || i == 23);
        if (dash ? c != '-' : !isxdigit((unsigned char)c))
            return false;
        uid[i] = c;
    }
    memcpy(identity->pod_uid, uid, sizeof(uid));
    return true;
}

/* systemd writes what can't be in a file name as \xNN. */
static void unescape_unit(struct span name, char ret_unit[UNIT_BYTES])
{
    size_t used = 0;
    for (size_t i = 0; i < name.length && used < UNIT_BYTES - 1; i++) {
        char c = name.text[i];
        if (c == '\\' && i + 3 < name.length && name.text[i + 1] == 'x' &&
            is_hex(name.text + i + 2, 2)) {
            char digits[3] = {name.text[i + 2], name.text[i + 3], 0};
            c = (char)strtoul(digits, NULL, 16);
            i += 3;
        }
        ret_unit[used++] = c ? c : '?';
    }
    ret_unit[used] = '\0';
}

static bool take_unit(struct span component, struct cgroup_identity *identity)
{
    if (!strip_suffix(&component, ".service") || !component.length)
        return false;
    struct span manager = component;
    if (strip_prefix(&manager, "user@")) /* a user's session is no service */
        return false;
    unescape_unit(component, identity->unit);
    return true;
}

/* From the innermost component on, for one container may be in another. */
static void identify_path(struct span path, struct cgroup_identity *identity)
{
    struct span component;
    bool bare = false; /* the last container had no prefix */
    while (last_component(&path, &component)) {
        if (!identity->container_id[0]) {
            bare = take_container(component, identity) && !*identity->runtime;
            if (identity->container_id[0])
                continue;
        } else if (bare && component.length == 6 && !memcmp(component.text, "docker", 6)) {
            identity->runtime = "docker";
        }
        bare = false;
        if (!identity->pod_uid[0])
            take_pod(component, identity);
        if (!identity->unit[0])
            take_unit(component, identity);
    }
}

/* The next "number:controllers:path". */
static bool next_line(struct span *content, struct span *ret_controllers, struct span *ret_path)
{
    while (content->length) {
        const char *line = content->text, *end = memchr(line, '\n', content->length);
        size_t length = end ? (size_t)(end - line) : content->length;
        content->text += length + (end != NULL);
        content->length -= length + (end != NULL);
        const char *first = memchr(line, ':', length);
        if (!first)
            continue;
        size_t rest = length - (size_t)(first + 1 - line);
        const char *second = memchr(first + 1, ':', rest);
        if (!second)
            continue;
        *ret_controllers = (struct span){first + 1, (size_t)(second - first - 1)};
        *ret_path = (struct span){second + 1, length - (size_t)(second + 1 - line)};
        /* A path that leads out of our own cgroup namespace begins so. */
        while (strip_prefix(ret_path, "/.."))
            ;
        return true;
    }
    return false;
}

void cgroup_identify(const char *content, size_t length, struct cgroup_identity *ret_identity)
{
    struct span rest = {content, length}, controllers, path;
    *ret_identity = (struct cgroup_identity){.runtime = ""};
    while (next_line(&rest, &controllers, &path)) {
        struct cgroup_identity found = {.runtime = ""};
        identify_path(path, &found);
        if (!ret_identity->container_id[0] && found.container_id[0]) {
            ret_identity->runtime = found.runtime;
            memcpy(ret_identity->container_id, found.container_id, sizeof(found.container_id));
        }
        if (!ret_identity->pod_uid[0])
            memcpy(ret_identity->pod_uid, found.pod_uid, sizeof(found.pod_uid));
        if (!ret_identity->unit[0])
            memcpy(ret_identity->unit, found.unit, sizeof(found.unit));
    }
}

const char *cgroup_path(const char *content, size_t length, size_t *ret_length)
{
    struct span rest = {content, length}, controllers, path, longest = {content, 0};
    struct span systemd = {content, 0};
    while (next_line(&rest, &controllers, &path)) {
        if (!controllers.length && path.length > 1) {
            *ret_length = path.length;
            return path.text;
        }
        if (controllers.length == 12 && !memcmp(controllers.text, "name=systemd", 12))
            systemd = path;
        if (path.length > longest.length)
            longest = path;
    }
    if (systemd.length > 1)
        longest = systemd;
    *ret_length = longest.length;
    return longest.text;
}
