// SPDX-License-Identifier: Apache-2.0
// A pod's labels as the kubelet writes them into a volume: see pod_file.h.

#include "agent/identity/pod_file.h"

#include <string.h>

#include "agent/identity/identity.h"
#include "agent/identity/pods.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#define FILE_BYTES_MAX (256u << 10)
#define LOOK_AGAIN_NS (30 * 1000000000ll)

/* ---- the format ---- */

static char unescaped(char letter)
{
    return letter == 'n' ? '\n' : letter == 't' ? '\t' : letter == 'r' ? '\r' : letter;
}

/* From behind the first quote to the last one of the line; false without it. Values of labels have
 * letters, digits, dashes, underscores and dots only, so hardly anything is ever escaped. */
static bool read_value(const char *at, const char *end, struct buffer *value)
{
    value->length = 0;
    for (; at < end && *at != '"'; at++) {
        bool escaped = *at == '\\';
        at += escaped;
        if (at == end)
            return false;
        buffer_add_char(value, escaped ? unescaped(*at) : *at);
    }
    return at < end;
}

static void take_label(const char *key, size_t key_length, const char *value, size_t *rank,
                       struct labels *labels)
{
    size_t found = pod_service_rank(key, key_length);
    if (found < *rank) {
        *rank = found;
        labels_set(labels, LABEL_SERVICE_NAME, value);
    }
    if (pod_is_version(key, key_length))
        labels_set(labels, "version", value);
}

void pod_labels_read(const char *text, size_t length, struct labels *ret_labels)
{
    _cleanup_buffer_ struct buffer value = {0};
    const char *end = text + length;
    size_t rank = SIZE_MAX;
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        const char *stop = line_end ? line_end : end;
        const char *equals = memchr(text, '=', (size_t)(stop - text));
        if (equals && equals + 1 < stop && equals[1] == '"' &&
            read_value(equals + 2, stop, &value) && value.length &&
            value.length < ENVIRONMENT_VALUE_BYTES)
            take_label(text, (size_t)(equals - text), buffer_text(&value), &rank, ret_labels);
        text = line_end ? line_end + 1 : end;
    }
}

/* ---- the file ---- */

void pod_file_init(struct pod_file *file, const char *path, const char *proc)
{
    _cleanup_buffer_ struct buffer name = {0}, content = {0};
    struct cgroup_identity identity = {0};
    struct error error = {0};
    *file = (struct pod_file){.path = path};
    if (!path)
        return;
    buffer_printf(&name, "%s/self/cgroup", proc);
    if (file_read(buffer_text(&name), FILE_BYTES_MAX, &content, &error) == 0)
        cgroup_identify(content.data, content.length, &identity);
    _Static_assert(sizeof(file->own_pod) == sizeof(identity.pod_uid), "the same uid");
    memcpy(file->own_pod, identity.pod_uid, sizeof(file->own_pod));
}

void pod_file_release(struct pod_file *file)
{
    labels_release(&file->labels);
}

static void look(struct pod_file *file, int64_t now_ns)
{
    _cleanup_buffer_ struct buffer content = {0};
    struct labels fresh = {0};
    struct error error = {0};
    file->looked_ns = now_ns;
    if (file_read(file->path, FILE_BYTES_MAX, &content, &error) < 0) {
        if (!file->complained)
            log_warning("Keeping the previous pod labels: %s", error.text);
        file->complained = true;
        return;
    }
    file->complained = false;
    pod_labels_read(content.data, content.length, &fresh);
    labels_release(&file->labels);
    file->labels = fresh;
}

void pod_file_label(struct pod_file *file, const char *pod_uid, int64_t now_ns,
                    struct labels *labels)
{
    /* Where cgroups have no names, as seen from inside of a container, all that the agent sees is
     * in its own pod. */
    if (!file->path || (*file->own_pod && strcmp(file->own_pod, pod_uid) != 0))
        return;
    if (!file->looked_ns || now_ns - file->looked_ns >= LOOK_AGAIN_NS)
        look(file, now_ns);
    for (size_t i = 0; i < file->labels.count; i++)
        if (!labels_get(labels, file->labels.list[i].name))
            labels_set(labels, file->labels.list[i].name, file->labels.list[i].value);
}
