// SPDX-License-Identifier: Apache-2.0
// Profiles that a server has as inputs of comparisons: see inputs.h.

#include "cli/remote/inputs.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"

static const char baseline_prefix[] = "baseline:", query_prefix[] = "query:";

static bool has_prefix(const char *path, const char *prefix)
{
    return !strncmp(path, prefix, strlen(prefix));
}

bool remote_input_is(const char *path)
{
    return has_prefix(path, baseline_prefix) || has_prefix(path, query_prefix);
}

static int open_link(struct remote_inputs *remote, struct error *error)
{
    if (!remote->link.url)
        remote->link.url = SERVER_LINK_URL;
    return remote->link.client ? 0 : server_link_open(&remote->link, error);
}

void remote_inputs_close(struct remote_inputs *remote)
{
    if (remote->link.client)
        server_link_close(&remote->link);
}

struct wanted {
    const char *name;
    unsigned parts;
};

static int read_baselines(struct json *json, void *context)
{
    struct wanted *wanted = context;
    struct json_string key;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        char name[256] = "";
        double parts = 0;
        r = json_object(json);
        while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
            if (json_is(&key, "name"))
                r = answer_text(json, name, sizeof(name));
            else if (json_is(&key, "parts"))
                r = answer_number(json, &parts);
            else
                r = json_skip(json);
        }
        if (!strcmp(name, wanted->name) && parts > 0 && parts < 1e6)
            wanted->parts = (unsigned)parts;
    }
    return r;
}

int remote_input_count(struct remote_inputs *remote, const char *path, unsigned *ret_count)
{
    struct error error = {0};
    *ret_count = 1;
    if (!has_prefix(path, baseline_prefix))
        return 0;
    struct wanted wanted = {.name = path + strlen(baseline_prefix)};
    _cleanup_buffer_ struct buffer url = {0}, answer = {0};
    int r = open_link(remote, &error);
    if (!r) {
        address_begin(&url, &remote->link, "/api/v1/baselines");
        r = address_call(&remote->link, &(struct http_call){.url = buffer_text(&url)}, &answer,
                         &error);
    }
    if (!r)
        r = server_link_read(&answer, read_baselines, &wanted, &error);
    if (!r && !wanted.parts)
        r = error_set(&error, -ENOENT, "The server has no baseline \"%s\".", wanted.name);
    *ret_count = wanted.parts;
    return r < 0 ? fail(&error) : 0;
}

int remote_input_read(struct remote_inputs *remote, const char *path, unsigned part,
                      enum compare_side side, uint64_t expansion_limit, struct profile *profile)
{
    _cleanup_buffer_ struct buffer url = {0}, content = {0};
    struct error error = {0};
    char number[16];
    int r = open_link(remote, &error);
    if (!r && has_prefix(path, baseline_prefix)) {
        address_begin(&url, &remote->link, "/api/v1/baselines/");
        address_add_escaped(&url, path + strlen(baseline_prefix));
        snprintf(number, sizeof(number), "%u", part);
        address_add_parameter(&url, "part", number);
    } else if (!r) {
        address_begin(&url, &remote->link, "/api/v1/replicates");
        address_add_parameter(&url, "query", path + strlen(query_prefix));
        address_add_parameter(&url, "from", remote->from[side]);
        address_add_parameter(&url, "to", remote->to[side]);
        if (profile->detail & PROFILE_ORIGINAL_NAMES)
            address_add_parameter(&url, "names", "original");
    }
    if (!r)
        r = address_call(&remote->link, &(struct http_call){.url = buffer_text(&url)}, &content,
                         &error);
    struct read_options options = {.expansion_limit = expansion_limit};
    if (!r)
        r = format_read_memory(path, content.data, content.length, &options, profile, NULL, &error);
    return r < 0 ? fail(&error) : 0;
}
