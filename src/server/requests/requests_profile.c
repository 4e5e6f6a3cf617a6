// SPDX-License-Identifier: Apache-2.0
// Profiles of requests, and what they rest on.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "server/requests/requests_samples.h"
#include "server/symbols/symbols.h"

#define RUNNING "running" /* the state that a CPU profile is of: not worth a frame */

bool requests_sample_in_band(const struct requests_samples *samples,
                             const struct requests_band *band, const struct request_sample *sample)
{
    const struct sampled_request *request = &samples->requests[sample->request];
    return requests_band_has(band, request->duration_ns, request->error);
}

static uint32_t named_frame(struct profile *profile, const char *name)
{
    uint32_t text = profile_cstring(profile, name);
    return profile_frame(
        profile, &(struct profile_frame){
                     .function = profile_function(
                         profile, &(struct profile_function){.name = text, .system_name = text})});
}

struct building {
    struct requests_samples *samples;
    struct profile *profile;
    struct graft graft;
    uint32_t *services, *states; /* frames, by series; states may be 0 */
    uint32_t *path;
    size_t path_room;
};

static void name_series(struct building *building)
{
    const struct requests_samples *samples = building->samples;
    building->services = memory_zalloc(samples->series_count + 1, sizeof(uint32_t));
    building->states = memory_zalloc(samples->series_count + 1, sizeof(uint32_t));
    for (size_t i = 0; i < samples->series_count; i++) {
        const struct sample_series *series = &samples->series[i];
        char text[80];
        building->services[i] = named_frame(building->profile, series->service);
        snprintf(text, sizeof(text), "[%.70s]", series->state);
        if (*series->state && strcmp(series->state, RUNNING))
            building->states[i] = named_frame(building->profile, text);
    }
}

static uint32_t add_stack(struct building *building, const struct request_sample *sample)
{
    const struct profile *stacks = &building->samples->stacks;
    size_t depth = 0, room = 2;
    for (uint32_t node = sample->node; node; node = stacks->nodes[node].parent)
        room++;
    array_reserve(building->path, building->path_room, room);
    building->path[depth++] = building->services[sample->series];
    size_t end = room - 1;
    for (uint32_t node = sample->node; node; node = stacks->nodes[node].parent)
        building->path[--end] = graft_frame(&building->graft, stacks->nodes[node].frame);
    depth = room - 1;
    if (building->states[sample->series])
        building->path[depth++] = building->states[sample->series];
    return profile_stack(building->profile, building->path, depth);
}

int requests_profile(struct requests_samples *samples, const struct requests_query *query,
                     const char *type, bool inside, double requests, struct profile *profile,
                     struct error *error)
{
    struct building building = {.samples = samples, .profile = profile, .graft.to = profile};
    size_t type_length, unit_length;
    const char *type_name = query_type_part(type, 1, &type_length);
    const char *unit = query_type_part(type, 2, &unit_length);
    profile_type(profile, profile_string(profile, type_name, type_length),
                 profile_string(profile, unit, unit_length));
    name_series(&building);
    graft_from(&building.graft, &samples->stacks);
    for (size_t i = 0; i < samples->count; i++) {
        const struct request_sample *sample = &samples->list[i];
        if (sample->request == NO_REQUEST ||
            requests_sample_in_band(samples, &query->band, sample) != inside)
            continue;
        size_t row = profile_sample(profile, add_stack(&building, sample), 0, 0, 0);
        profile_add_value(profile, row, 0, sample->value);
    }
    for (size_t row = 0; requests > 0 && row < profile->samples.count; row++) {
        int64_t *value = &profile->samples.values[0][row];
        *value = (int64_t)llround((double)*value / requests);
    }
    graft_release(&building.graft);
    free(building.services);
    free(building.states);
    free(building.path);
    return symbols_name(query->server->symbols, query->spans.tenant, profile, error);
}

void requests_evidence_count(const struct requests_samples *samples,
                             const struct requests_band *band, bool inside,
                             struct requests_evidence *ret_evidence)
{
    struct requests_evidence evidence = {.requests = inside ? samples->in_band
                                                            : samples->all - samples->in_band};
    for (size_t i = 0; i < samples->request_count; i++) {
        const struct sampled_request *request = &samples->requests[i];
        if (requests_band_has(band, request->duration_ns, request->error) == inside)
            evidence.with_samples += request->samples > 0;
    }
    for (size_t i = 0; i < samples->count; i++) {
        const struct request_sample *sample = &samples->list[i];
        if (sample->request == NO_REQUEST ||
            requests_sample_in_band(samples, band, sample) != inside)
            continue;
        evidence.samples++;
        evidence.value += sample->value;
    }
    *ret_evidence = evidence;
}

static void put_side(const struct requests_samples *samples, const struct requests_band *band,
                     bool inside, const char *key, struct json_writer *json)
{
    struct requests_evidence evidence;
    requests_evidence_count(samples, band, inside, &evidence);
    json_write_key(json, key);
    json_write_object(json);
    json_member_unsigned(json, "requests", evidence.requests);
    json_member_unsigned(json, "with_samples", evidence.with_samples);
    json_member_unsigned(json, "samples", evidence.samples);
    json_member_signed(json, "value", evidence.value);
    json_write_object_end(json);
}

void requests_evidence_write(const struct requests_samples *samples,
                             const struct requests_query *query, struct json_writer *json)
{
    const struct requests_band *band = &query->band;
    json_write_key(json, "evidence");
    json_write_object(json);
    json_member_unsigned(json, "requests", samples->all);
    json_member_unsigned(json, "errors", samples->errors);
    json_write_key(json, "band");
    json_write_object(json);
    json_member_signed(json, "from", band->from_ns);
    if (band->to_ns == INT64_MAX)
        json_member_null(json, "to");
    else
        json_member_signed(json, "to", band->to_ns);
    json_member_bool(json, "errors", band->errors);
    json_write_object_end(json);
    put_side(samples, band, true, "selected", json);
    put_side(samples, band, false, "rest", json);
    json_member_unsigned(json, "samples_by_trace", samples->by_trace);
    json_member_unsigned(json, "samples_ambiguous", samples->ambiguous);
    json_member_unsigned(json, "samples_without_spans", samples->unlinked);
    json_member_unsigned(json, "damaged_blocks", samples->read.damaged);
    json_member_text(json, "note",
                     "Samples show what requests did at some moments. That a request has no sample "
                     "of a function is weak evidence that it didn't run it.");
    json_write_object_end(json);
}
