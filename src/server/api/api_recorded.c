// SPDX-License-Identifier: Apache-2.0
// A recording with the time of each sample, drawn or in another format.

#include "format/picture/pictures.h"
#include "server/admission/admission.h"
#include "server/api/api.h"
#include "server/api/api_files.h"
#include "server/handler/answer.h"
#include "server/ingest/recorded.h"
#include "server/symbols/symbols.h"

void api_recorded(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    const char *tenant = http_request_identity(request)->tenant;
    const struct format *written = NULL;
    _cleanup_tree_part_ struct tree_part part = {0};
    struct error error = {0};
    enum profile_detail names = 0;
    const char *id = http_request_rest(request);
    if (!parameters_known(request, "/api/v1/recordings/*/flame"))
        return;
    _cleanup_answer_ struct answer answer = {0};
    answer_init(&answer, request, "application/json");
    _cleanup_profile_ struct profile profile;
    int r = api_asked_format(request, "json", &written, &error);
    if (!r)
        r = parameter_names(request, &names, &error);
    if (!r)
        r = tree_part_read(&part, request, FILES_NODES, FILES_NODES_MAX, &error);
    profile_init(&profile, (written ? written->detail : format_html.detail) | PROFILE_ADDRESSES |
                               PROFILE_LINES | names);
    if (!r)
        r = recorded_read(server->data, tenant, id, files_expansion_limit(server), &profile,
                          &error);
    if (!r && server->symbols)
        r = symbols_name(server->symbols, tenant, &profile, &error);
    struct file_profile file = {id, NULL, &profile};
    if (!r && written)
        r = api_write_format(request, &profile, written, id, &error);
    else if (!r)
        r = answer_end(&answer, files_put_flame(&answer.out, &file, &part, &error), &error);
    if (r < 0)
        http_respond_failure(request, &error);
}
