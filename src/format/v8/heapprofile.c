// SPDX-License-Identifier: Apache-2.0
// Reads V8's .heapprofile (node --heap-prof, Chrome's allocation sampling): a call tree of nested
// nodes, each with the bytes that are live and were allocated there. See
// docs/formats/heapprofile.md.

#include "base/memory.h"
#include "format/v8/cpuprofile.h"

static int add_live_bytes(struct cpuprofile *file)
{
    struct profile *profile = file->profile;
    unsigned type = profile_type(profile, profile_cstring(profile, "inuse_space"),
                                 profile_cstring(profile, "bytes"));
    if (type >= PROFILE_TYPES_MAX)
        return error_set(file->json.error, -E2BIG,
                         "Together the profiles have more than %d sample types.",
                         PROFILE_TYPES_MAX);
    for (size_t i = 0; i < file->node_count; i++) {
        const struct cpuprofile_node *node = &file->nodes[i];
        if (!node->hits)
            continue;
        size_t row = profile_sample(profile, node->stack, 0, 0, 0);
        profile_add_value(profile, row, type, (int64_t)MIN(node->hits, (uint64_t)INT64_MAX));
        if (profile_full(profile))
            return error_set(file->json.error, -E2BIG,
                             "The file has more samples than a profile can hold.");
    }
    profile_note_source(profile, 0, 0);
    return 0;
}

static int heapprofile_read(struct source *source, struct profile *profile, struct error *error)
{
    _cleanup_(cpuprofile_release) struct cpuprofile file;
    cpuprofile_init(&file, source, profile, error);
    struct json *json = &file.json;
    struct json_string key;
    bool has_head = false;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (!json_is(&key, "head"))
            continue;
        r = has_head ? json_fail(json, "The file has a second tree of nodes")
                     : cpuprofile_read_head(&file);
        has_head = true;
    }
    if (r >= 0)
        r = json_end(json);
    if (r >= 0 && !has_head)
        r = json_fail(json, "The file has no \"head\" before its end");
    if (r >= 0)
        r = cpuprofile_resolve_stacks(&file);
    return r < 0 ? r : add_live_bytes(&file);
}

static int heapprofile_detect(const uint8_t *bytes, size_t length)
{
    if (!json_sniff_object(bytes, length) || !json_sniff_key(bytes, length, "head") ||
        !json_sniff_key(bytes, length, "callFrame"))
        return 0;
    return json_sniff_key(bytes, length, "selfSize") ? 3 : 1;
}

const struct format format_heapprofile = {
    .name = "heapprofile",
    .text = true,
    .summary = "V8's .heapprofile, of node --heap-prof and Chrome DevTools",
    .extensions = "",
    .detect = heapprofile_detect,
    .read = heapprofile_read,
};
