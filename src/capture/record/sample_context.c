// SPDX-License-Identifier: Apache-2.0
// From the context of a thread to links and labels: see sample_context.h.

#include "capture/record/sample_context.h"

#include <string.h>

#include "base/clock.h"
#include "capture/record/recorder.h"

static bool is_none(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i])
            return false;
    return true;
}

static size_t read_attributes(struct recorder *recorder, struct process *process, uint64_t hash,
                              char text[CONTEXT_TEXT_BYTES],
                              struct context_attribute attributes[CONTEXT_ATTRIBUTES_MAX])
{
    struct contexts *contexts = &recorder->contexts;
    bool unnamed;
    size_t count = contexts_attributes(contexts, process, hash, text, attributes, &unnamed);
    if (!unnamed || !contexts_look_published(contexts, &recorder->processes, process,
                                             &recorder->interpreters.reader, true, monotonic_ns()))
        return count;
    return contexts_attributes(contexts, process, hash, text, attributes, &unnamed);
}

void sample_context_of(struct recorder *recorder, struct process *process,
                       const struct bpf_sample_context *read, struct sample_context *ret_context)
{
    struct profile *profile = recorder->profile;
    struct sample_context *context = ret_context;
    context->link = 0;
    context->label_count = 0;
    if (!is_none(read->trace_id, sizeof(read->trace_id)) ||
        !is_none(read->span_id, sizeof(read->span_id))) {
        struct profile_link link;
        memcpy(link.trace_id, read->trace_id, sizeof(link.trace_id));
        memcpy(link.span_id, read->span_id, sizeof(link.span_id));
        context->link = profile_link(profile, &link);
    }
    if (read->attributes) {
        char text[CONTEXT_TEXT_BYTES];
        struct context_attribute attributes[CONTEXT_ATTRIBUTES_MAX];
        size_t count = read_attributes(recorder, process, read->attributes, text, attributes);
        for (size_t i = 0; i < count; i++)
            context->labels[context->label_count++] =
                (struct profile_label){.key = profile_cstring(profile, attributes[i].name),
                                       .text = profile_cstring(profile, attributes[i].value)};
    }
}

uint32_t sample_context_set(struct profile *profile, const struct sample_context *context)
{
    struct profile_label list[ARRAY_LENGTH(context->labels)];
    if (!context || !context->label_count)
        return 0;
    memcpy(list, context->labels, context->label_count * sizeof(*list));
    return profile_label_set(profile, list, context->label_count);
}

uint32_t sample_context_add(struct profile *profile, uint32_t labels, uint32_t more)
{
    enum { ROOM = 512 };
    struct profile_label list[ROOM];
    size_t count = 0, more_count = 0;
    if (!more)
        return labels;
    const struct profile_label *added = profile_labels(profile, more, &more_count);
    const struct profile_label *base = profile_labels(profile, labels, &count);
    more_count = MIN(more_count, (size_t)ROOM);
    count = MIN(count, ROOM - more_count);
    if (count)
        memcpy(list, base, count * sizeof(*list));
    memcpy(list + count, added, more_count * sizeof(*list));
    return profile_label_set(profile, list, count + more_count);
}
