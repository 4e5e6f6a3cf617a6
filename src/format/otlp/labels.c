// SPDX-License-Identifier: Apache-2.0
// Labels from OTLP's attributes: those of the resource, the scope and the Profile are shared by
// all of a Profile's samples (its context); a sample's own come on top. Where a key is given on
// several levels, the most specific one counts.

#include <string.h>

#include "format/otlp/model.h"

struct context {
    uint32_t resource, scope, attributes; /* blobs */
    struct otlp_range labels;
};

struct set {
    uint32_t context, attributes, id;
};

struct otlp_labels {
    struct context *contexts;
    struct profile_label *labels; /* of all contexts */
    struct set *sets;
    struct profile_label *scratch;
    uint32_t *marks; /* by string: in which round the key was last taken */
    size_t context_count, context_capacity, label_count, label_capacity, set_count, set_capacity,
        scratch_count, scratch_capacity, mark_capacity;
    uint32_t round;
    struct id_table context_index, set_index;
    struct set last;
};

void otlp_labels_free(struct otlp_labels *labels)
{
    if (!labels)
        return;
    free(labels->contexts);
    free(labels->labels);
    free(labels->sets);
    free(labels->scratch);
    free(labels->marks);
    id_table_release(&labels->context_index);
    id_table_release(&labels->set_index);
    free(labels);
}

static struct otlp_labels *labels_of(struct otlp_model *model)
{
    if (!model->labels)
        model->labels = memory_zalloc(1, sizeof(*model->labels));
    return model->labels;
}

static enum otlp_role role_of(const char *key)
{
    static const struct {
        const char *key;
        enum otlp_role role;
    } roles[] = {
        {"profile.frame.type", OTLP_FRAME_TYPE},
        {"pprof.location.is_folded", OTLP_FOLDED},
        {"process.executable.build_id.gnu", OTLP_BUILD_ID_GNU},
        {"process.executable.build_id.go", OTLP_BUILD_ID_GO},
        {"process.executable.build_id.htlhash", OTLP_BUILD_ID_HTLHASH},
    };
    if (*key == 'p')
        for (size_t i = 0; i < ARRAY_LENGTH(roles); i++)
            if (!strcmp(key, roles[i].key))
                return roles[i].role;
    return OTLP_PLAIN;
}

int otlp_resolve_attribute(struct otlp_model *model, uint32_t index,
                           const struct otlp_label **ret_label, struct error *error)
{
    static const struct otlp_label unset = {.resolved = true, .empty = true};
    struct otlp_dictionary *dictionary = &model->dictionary;
    if (!index) {
        *ret_label = &unset;
        return 0;
    }
    if (index >= dictionary->attribute_count)
        return otlp_bad_index(error, "A list of attributes", "attribute", index,
                              dictionary->attribute_count);
    struct otlp_label *label = &dictionary->labels[index];
    if (!label->resolved) {
        const struct otlp_attribute *raw = &dictionary->attributes[index];
        const struct otlp_blob *value = &model->blobs.items[raw->value];
        int r = otlp_string_id(model, raw->key, "An attribute", &label->label.key, error);
        if (!r)
            r = otlp_string_id(model, raw->unit, "An attribute", &label->label.unit, error);
        if (!r)
            r = otlp_any_value(model, value->data, value->length, &label->label, error);
        if (r < 0)
            return r;
        if (label->label.text)
            label->label.unit = 0;
        label->empty = !r || !label->label.key;
        label->role = role_of(profile_text(model->profile, label->label.key));
        const char *text = profile_text(model->profile, label->label.text);
        label->means =
            label->role == OTLP_FRAME_TYPE ? otlp_kind_by_name(text) : !strcmp(text, "true");
        label->resolved = true;
    }
    *ret_label = label;
    return 0;
}

/* ---- attributes that are no labels: what pprof says of a profile as a whole ---- */

#define COMMENTS_MAX 256

static int add_comment(struct otlp_model *model, const void *any, size_t length,
                       struct error *error)
{
    struct profile_label label = {0};
    int r = otlp_any_value(model, any, length, &label, error);
    if (r > 0 && label.text && model->profile->comment_count < COMMENTS_MAX)
        profile_add_comment(model->profile, label.text);
    return MIN(r, 0);
}

/* One text or a list of them. */
static int add_comments(struct otlp_model *model, const struct otlp_blob *value,
                        struct error *error)
{
    struct wire any = wire_of(value->data, value->length), list = wire_of("", 0);
    struct wire_field field;
    bool is_list = false;
    int r;
    while ((r = wire_next(&any, &field)) > 0) {
        if (field.number == 5 && field.type == WIRE_BYTES) {
            list = wire_of_field(&field);
            is_list = true;
        }
    }
    if (!is_list)
        return add_comment(model, value->data, value->length, error);
    while (!r && (r = wire_next(&list, &field)) > 0) {
        r = 0;
        if (field.number == 1 && field.type == WIRE_BYTES)
            r = add_comment(model, field.data, field.length, error);
        if (r < 0)
            return r;
    }
    return r < 0 ? error_set(error, -EBADMSG, "An attribute's value is malformed.") : 0;
}

/* 1 when the attribute was one of these. */
static int take_pprof(struct otlp_model *model, const struct profile_label *label,
                      const struct otlp_blob *value, struct error *error)
{
    struct profile *profile = model->profile;
    const char *key = profile_text(profile, label->key);
    if (strncmp(key, "pprof.", 6))
        return 0;
    uint32_t *field = !strcmp(key, "pprof.profile.doc_url")             ? &profile->doc_url
                      : !strcmp(key, "pprof.profile.drop_frames")       ? &profile->drop_frames
                      : !strcmp(key, "pprof.profile.keep_frames")       ? &profile->keep_frames
                      : !strcmp(key, "pprof.scope.default_sample_type") ? &profile->default_type
                                                                        : NULL;
    if (field) {
        if (!*field)
            *field = label->text;
        return 1;
    }
    if (strcmp(key, "pprof.profile.comment"))
        return 0;
    int r = add_comments(model, value, error);
    return r < 0 ? r : 1;
}

/* ---- collecting into `scratch`, most specific level first ---- */

static int collect(struct otlp_model *model, const struct profile_label *label, struct error *error)
{
    struct otlp_labels *labels = model->labels;
    if (label->key < labels->mark_capacity && labels->marks[label->key] == labels->round)
        return 0;
    if (labels->scratch_count == PROFILE_LABELS_MAX)
        return error_set(error, -E2BIG, "A sample has more than %d labels.", PROFILE_LABELS_MAX);
    int r = otlp_spend(model, &model->label_budget, 1, "labels", error);
    if (r < 0)
        return r;
    array_reserve(labels->scratch, labels->scratch_capacity, labels->scratch_count + 1);
    labels->scratch[labels->scratch_count++] = *label;
    return 0;
}

static void start_collecting(struct otlp_labels *labels)
{
    labels->scratch_count = 0;
    labels->round++;
}

/* Attributes collected from `from` on hide the same keys on the levels that follow. */
static void end_level(struct otlp_labels *labels, size_t from)
{
    for (size_t i = from; i < labels->scratch_count; i++) {
        uint32_t key = labels->scratch[i].key;
        if (key >= labels->mark_capacity) {
            size_t old = labels->mark_capacity;
            array_reserve(labels->marks, labels->mark_capacity, (size_t)key + 1);
            memset(labels->marks + old, 0, (labels->mark_capacity - old) * sizeof(*labels->marks));
        }
        labels->marks[key] = labels->round;
    }
}

static int collect_indexes(struct otlp_model *model, uint32_t attributes, bool of_profile,
                           struct error *error)
{
    struct wire wire =
        wire_of(model->blobs.items[attributes].data, model->blobs.items[attributes].length);
    size_t from = model->labels->scratch_count;
    int r =
        otlp_spend(model, &model->byte_budget, (uint64_t)(wire.end - wire.at), "attributes", error);
    if (r < 0)
        return r;
    while (wire.at < wire.end) {
        uint64_t index;
        const struct otlp_label *label;
        if (!wire_varint(&wire, &index))
            return error_set(error, -EBADMSG, "A list of attributes is malformed.");
        if (index > OTLP_INDEX_MAX)
            return otlp_bad_index(error, "A list of attributes", "attribute", index,
                                  model->dictionary.attribute_count);
        r = otlp_attribute_label(model, (uint32_t)index, &label, error);
        if (!r && of_profile && index)
            r = take_pprof(model, &label->label,
                           &model->blobs.items[model->dictionary.attributes[index].value], error);
        if (!r && !label->empty)
            r = collect(model, &label->label, error);
        if (r < 0)
            return r;
    }
    end_level(model->labels, from);
    return 0;
}

/* A KeyValue: in resources and scopes, keys and values stand there themselves or by index. */
static int collect_key_value(struct otlp_model *model, struct wire wire, struct error *error)
{
    struct profile_label label = {0};
    struct otlp_blob value = {.data = (const uint8_t *)""};
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        r = 0;
        if (field.number == 1 && field.type == WIRE_BYTES && field.length)
            label.key = profile_string(model->profile, (const char *)field.data, field.length);
        else if (field.number == 2 && field.type == WIRE_BYTES)
            value = (struct otlp_blob){.data = field.data, .length = field.length};
        else if (field.number == 3 && field.type == WIRE_VARINT && field.value <= OTLP_INDEX_MAX)
            r = otlp_string_id(model, (uint32_t)field.value, "An attribute", &label.key, error);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return error_set(error, -EBADMSG, "A resource's or scope's attribute is malformed.");
    r = otlp_any_value(model, value.data, value.length, &label, error);
    if (r <= 0 || !label.key)
        return r < 0 ? r : 0;
    r = take_pprof(model, &label, &value, error);
    return r ? MIN(r, 0) : collect(model, &label, error);
}

static int collect_text(struct otlp_model *model, const char *key, const struct wire_field *field,
                        struct error *error)
{
    struct profile_label label = {
        .key = profile_cstring(model->profile, key),
        .text = profile_string(model->profile, (const char *)field->data, field->length)};
    return label.text ? collect(model, &label, error) : 0;
}

static int collect_scope(struct otlp_model *model, uint32_t scope, struct error *error)
{
    struct otlp_blob blob = model->blobs.items[scope];
    struct wire wire = wire_of(blob.data, blob.length);
    struct wire_field field, name = {0}, version = {0};
    size_t from = model->labels->scratch_count;
    int r;
    while ((r = wire_next(&wire, &field)) > 0) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == 1)
            name = field;
        else if (field.number == 2)
            version = field;
        else if (field.number == 3 &&
                 (r = collect_key_value(model, wire_of_field(&field), error)) < 0)
            return r;
    }
    if (r < 0)
        return error_set(error, -EBADMSG, "An instrumentation scope is malformed.");
    /* Our own writer's scope doesn't describe the profiled program. */
    if (name.length && !(name.length == 5 && !memcmp(name.data, "assay", 5))) {
        r = collect_text(model, "otel.scope.name", &name, error);
        if (!r && version.length)
            r = collect_text(model, "otel.scope.version", &version, error);
    }
    end_level(model->labels, from);
    return r;
}

static int collect_resource(struct otlp_model *model, uint32_t resource, struct error *error)
{
    struct otlp_blob blob = model->blobs.items[resource];
    struct wire wire = wire_of(blob.data, blob.length);
    struct wire_field field;
    int r;
    while ((r = wire_next(&wire, &field)) > 0)
        if (field.number == 1 && field.type == WIRE_BYTES &&
            (r = collect_key_value(model, wire_of_field(&field), error)) < 0)
            return r;
    return r < 0 ? error_set(error, -EBADMSG, "A resource is malformed.") : 0;
}

int otlp_label_context(struct otlp_model *model, const struct otlp_series *series,
                       uint32_t *ret_context, struct error *error)
{
    struct otlp_labels *labels = labels_of(model);
    uint64_t hash =
        hash_word(hash_word((uint64_t)series->resource << 32 | series->scope) + series->attributes);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&labels->context_index, &probe)) != ID_NONE) {
        const struct context *known = &labels->contexts[id];
        if (known->resource == series->resource && known->scope == series->scope &&
            known->attributes == series->attributes) {
            *ret_context = id;
            return 0;
        }
    }
    start_collecting(labels);
    uint64_t bytes =
        model->blobs.items[series->scope].length + model->blobs.items[series->resource].length;
    int r = otlp_spend(model, &model->byte_budget, bytes, "resources", error);
    if (!r)
        r = collect_indexes(model, series->attributes, true, error);
    if (!r)
        r = collect_scope(model, series->scope, error);
    if (!r)
        r = collect_resource(model, series->resource, error);
    if (r < 0)
        return r;
    array_reserve(labels->labels, labels->label_capacity,
                  labels->label_count + labels->scratch_count);
    if (labels->scratch_count)
        memcpy(labels->labels + labels->label_count, labels->scratch,
               labels->scratch_count * sizeof(*labels->scratch));
    array_reserve(labels->contexts, labels->context_capacity, labels->context_count + 1);
    id = (uint32_t)labels->context_count++;
    labels->contexts[id] = (struct context){
        .resource = series->resource,
        .scope = series->scope,
        .attributes = series->attributes,
        .labels = {(uint32_t)labels->label_count, (uint32_t)labels->scratch_count},
    };
    labels->label_count += labels->scratch_count;
    id_table_insert(&labels->context_index, hash, id);
    *ret_context = id;
    return 0;
}

static int make_set(struct otlp_model *model, uint32_t context, uint32_t attributes,
                    uint32_t *ret_set, struct error *error)
{
    struct otlp_labels *labels = model->labels;
    start_collecting(labels);
    int r = collect_indexes(model, attributes, false, error);
    struct otlp_range shared = labels->contexts[context].labels;
    if (!r)
        r = otlp_spend(model, &model->byte_budget, shared.count, "labels", error);
    for (uint32_t i = 0; !r && i < shared.count; i++)
        r = collect(model, &labels->labels[shared.first + i], error);
    if (!r)
        *ret_set = profile_label_set(model->profile, labels->scratch, labels->scratch_count);
    return r;
}

int otlp_label_set(struct otlp_model *model, uint32_t context, uint32_t attributes,
                   uint32_t *ret_set, struct error *error)
{
    struct otlp_labels *labels = model->labels;
    if (!(model->profile->detail & PROFILE_LABELS)) {
        *ret_set = 0;
        return 0;
    }
    if (labels->set_count && labels->last.context == context &&
        labels->last.attributes == attributes) {
        *ret_set = labels->last.id;
        return 0;
    }
    uint64_t hash = hash_word((uint64_t)context << 32 | attributes);
    struct id_probe probe = id_probe_start(hash);
    uint32_t found;
    while ((found = id_table_next(&labels->set_index, &probe)) != ID_NONE)
        if (labels->sets[found].context == context && labels->sets[found].attributes == attributes)
            break;
    if (found == ID_NONE) {
        struct set set = {.context = context, .attributes = attributes};
        int r = make_set(model, context, attributes, &set.id, error);
        if (r < 0)
            return r;
        array_reserve(labels->sets, labels->set_capacity, labels->set_count + 1);
        found = (uint32_t)labels->set_count++;
        labels->sets[found] = set;
        id_table_insert(&labels->set_index, hash, found);
    }
    labels->last = labels->sets[found];
    *ret_set = labels->last.id;
    return 0;
}
