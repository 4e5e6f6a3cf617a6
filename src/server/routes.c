// SPDX-License-Identifier: Apache-2.0
// The table of routes: who may ask what, what it may take, and who answers.

#include "server/internal.h"

#include <string.h>

#include "base/memory.h"
#include "http/server/server.h"
#include "server/api/api.h"
#include "server/compare/compare_api.h"
#include "server/control/agents.h"
#include "server/control/control_api.h"
#include "server/cost/cost.h"
#include "server/explain/explain.h"
#include "server/grpc/services.h"
#include "server/ingest/receive.h"
#include "server/parca/parca.h"
#include "server/pyroscope/pyroscope.h"
#include "server/requests/requests.h"
#include "server/rules/live.h"
#include "server/saved/saved.h"
#include "server/scrape/scrape.h"
#include "server/symbols/api/symbols_api.h"
#include "server/watch/watch.h"
#include "server/web/web.h"

#define SYMBOLS_BODY_DEFAULT (2ull << 30)

/* The limit of a body; where the configuration has one, that. */
enum body_class {
    BODY_NONE,
    BODY_PUSH,
    BODY_RPC,
    BODY_ADHOC,
    BODY_ORDER,
    BODY_REPORT,
    BODY_SYMBOLS,
    BODY_SOURCE,
    BODY_SOURCE_LIST,
    BODY_MAP,
};

static const struct server_route {
    const char *method, *pattern;
    unsigned roles;
    enum admission_class admission;
    enum body_class body;
    server_handler *handle;
} routes[] = {
    /* clang-format off: a row is a line */
    {"POST", "/api/v1/push", HTTP_ROLE_INGEST, ADMIT_PUSH, BODY_PUSH, receive_push},
    {"POST", "/v1development/profiles", HTTP_ROLE_INGEST, ADMIT_PUSH, BODY_PUSH, receive_otlp},
    {"POST", "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
     HTTP_ROLE_INGEST, ADMIT_PUSH, BODY_PUSH, receive_otlp},
    {"POST", "/ingest", HTTP_ROLE_INGEST, ADMIT_PUSH, BODY_PUSH, receive_ingest},
    {"POST", "/pyroscope/ingest", HTTP_ROLE_INGEST, ADMIT_PUSH, BODY_PUSH, receive_ingest},
    {"POST", "/push.v1.PusherService/Push", HTTP_ROLE_INGEST, ADMIT_PUSH, BODY_PUSH,
     receive_connect_push},
    {"POST", "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", HTTP_ROLE_INGEST,
     ADMIT_PUSH, BODY_PUSH, receive_parca},
    {"POST", "/parca.profilestore.v1alpha1.ProfileStoreService/WriteArrow", HTTP_ROLE_INGEST,
     ADMIT_PUSH, BODY_PUSH, receive_arrow},
    {"POST", "/parca.profilestore.v1alpha1.ProfileStoreService/Write", HTTP_ROLE_INGEST, ADMIT_PUSH,
     BODY_PUSH, receive_arrow_stream},
    {"POST", "/parca.profilestore.v1alpha1.ProfileStoreService/*", HTTP_ROLE_INGEST, ADMIT_FREELY,
     BODY_RPC, parca_unknown},
    {"POST", "/api/profiles/writeraw", HTTP_ROLE_INGEST, ADMIT_PUSH, BODY_PUSH, receive_parca},
    {"POST", "/v1/profiles", HTTP_ROLE_INGEST, ADMIT_PUSH, BODY_PUSH, receive_coroot},
    {"POST", "/v1/traces", HTTP_ROLE_INGEST, ADMIT_PUSH, BODY_PUSH, receive_traces},
    {"POST", "/opentelemetry.proto.collector.trace.v1.TraceService/Export", HTTP_ROLE_INGEST,
     ADMIT_PUSH, BODY_PUSH, receive_traces},
    {"GET", "/api/v1/requests", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, requests_list},
    {"GET", "/api/v1/requests/flame", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, requests_flame},
    {"GET", "/api/v1/types", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, api_types},
    {"GET", "/api/v1/labels", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, api_labels},
    {"GET", "/api/v1/label/*/values", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, api_label_values},
    {"GET", "/api/v1/series", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, api_series},
    {"GET", "/api/v1/flame", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, api_flame},
    {"GET", "/api/v1/profile", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, api_profile},
    {"GET", "/api/v1/top", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, api_top},
    {"GET", "/api/v1/triage", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, api_triage},
    {"GET", "/api/v1/callers", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, api_callers},
    {"GET", "/api/v1/lines", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, api_lines},
    {"GET", "/api/v1/diff", HTTP_ROLE_READ, ADMIT_COMPARISON, BODY_NONE, api_diff},
    {"GET", "/api/v1/compare", HTTP_ROLE_READ, ADMIT_COMPARISON, BODY_NONE, compare_verdicts},
    {"GET", "/api/v1/replicates", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, compare_replicates},
    {"GET", "/api/v1/baselines", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, baselines_list},
    {"POST", "/api/v1/baselines", HTTP_ROLE_INGEST, ADMIT_QUERY_WHOLE, BODY_PUSH,
     baselines_save_one},
    {"GET", "/api/v1/baselines/*", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, baselines_get},
    {"DELETE", "/api/v1/baselines/*", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_NONE,
     baselines_delete_one},
    {"GET", "/api/v1/marks", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, marks_list},
    {"POST", "/api/v1/marks", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_ORDER, marks_post},
    {"GET", "/api/v1/views", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, views_list},
    {"POST", "/api/v1/views", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_ORDER, views_post},
    {"DELETE", "/api/v1/views/*", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_NONE, views_delete},
    {"GET", "/api/v1/notes", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, notes_list},
    {"POST", "/api/v1/notes", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_ORDER, notes_post},
    {"DELETE", "/api/v1/notes/*", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_NONE, notes_delete},
    {"GET", "/api/v1/pins", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, pins_list},
    {"POST", "/api/v1/pins", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_ORDER, pins_post},
    {"DELETE", "/api/v1/pins/*", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_NONE, pins_delete},
    {"GET", "/api/v1/alerts", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, alerts_list},
    {"GET", "/api/v1/slis", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, slis_list},
    {"GET", "/api/v1/findings", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, findings_list},
    {"POST", "/api/v1/files/flame", HTTP_ROLE_READ, ADMIT_QUERY_WHOLE, BODY_PUSH, api_files_flame},
    {"POST", "/api/v1/files/diff", HTTP_ROLE_READ, ADMIT_COMPARISON_WHOLE, BODY_PUSH,
     api_files_diff},
    {"GET", "/api/v1/cost", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, cost_list},
    {"GET", "/api/v1/whatif", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, cost_whatif},
    {"GET", "/api/v1/explain", HTTP_ROLE_READ, ADMIT_COMPARISON, BODY_NONE, explain_get},
    {"GET", "/api/v1/timeseries", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, api_timeseries},
    {"GET", "/api/v1/exemplars", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, api_exemplars},
    {"GET", "/api/v1/senders", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, api_senders},
    {"GET", "/api/v1/targets", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, api_targets},
    {"GET", "/api/v1/health", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, api_health},
    {"GET", "/api/v1/status/buildinfo", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, api_build},
    {"GET", "/api/v1/openapi.json", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, api_document},
    {"GET", "/api", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, api_page},
    {"POST", "/querier.v1.QuerierService/Diff", HTTP_ROLE_READ, ADMIT_COMPARISON, BODY_RPC,
     querier_call},
    {"POST", "/querier.v1.QuerierService/*", HTTP_ROLE_READ, ADMIT_QUERY, BODY_RPC, querier_call},
    {"POST", "/settings.v1.SettingsService/Get", HTTP_ROLE_READ, ADMIT_FREELY, BODY_RPC,
     querier_no_settings},
    {"POST", "/settings.v1.*", HTTP_ROLE_READ, ADMIT_FREELY, BODY_RPC, querier_unknown},
    {"POST", "/vcs.v1.*", HTTP_ROLE_READ, ADMIT_FREELY, BODY_RPC, querier_unknown},
    {"POST", "/adhocprofiles.v1.AdHocProfileService/*", HTTP_ROLE_READ, ADMIT_QUERY, BODY_ADHOC,
     adhoc_call},
    {"POST", "/capabilities.v1.FeatureFlagsService/GetFeatureFlags", HTTP_ROLE_READ, ADMIT_FREELY,
     BODY_RPC, querier_no_features},
    {"POST", "/capabilities.v1.*", HTTP_ROLE_READ, ADMIT_FREELY, BODY_RPC, querier_unknown},
    {"POST", "/version.v1.Version/Version", HTTP_ROLE_READ, ADMIT_FREELY, BODY_RPC,
     querier_version},
    {"POST", "/version.v1.*", HTTP_ROLE_READ, ADMIT_FREELY, BODY_RPC, querier_unknown},
    {"GET", "/pyroscope/render", HTTP_ROLE_READ, ADMIT_QUERY, BODY_NONE, render},
    {"GET", "/pyroscope/render-diff", HTTP_ROLE_READ, ADMIT_COMPARISON, BODY_NONE, render_diff},
    {"GET", "/pyroscope/label-values", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE,
     render_label_values},
    {"GET", "/metrics", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, api_metrics},
    {"GET", "/ready", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, api_ready},
    {"GET", "/", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/explore", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/compare", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/function", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/functions", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/files", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/alerts", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/findings", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/explain", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/saved", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/requests", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/triage", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/recordings", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/agents", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/symbols", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_page},
    {"GET", "/assets/*", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_NONE, web_asset},
    {"POST", "/api/v1/debuginfo", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_SYMBOLS, symbols_upload},
    {"GET", "/api/v1/debuginfo/*", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_NONE, symbols_known},
    {"POST", "/debuginfo.v1alpha1.DebuginfoService/*", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_SYMBOLS,
     symbols_call},
    {"POST", "/parca.debuginfo.v1alpha1.DebuginfoService/Upload", HTTP_ROLE_INGEST, ADMIT_FREELY,
     BODY_SYMBOLS, parca_debuginfo_upload},
    {"POST", "/parca.debuginfo.v1alpha1.DebuginfoService/*", HTTP_ROLE_INGEST, ADMIT_FREELY,
     BODY_RPC, parca_debuginfo},
    {"POST", "/grpc.health.v1.Health/Check", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_RPC,
     grpc_health_check},
    {"POST", "/grpc.health.v1.Health/Watch", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_RPC,
     grpc_health_watch},
    {"POST", "/grpc.health.v1.Health/*", HTTP_ROLE_ANY, ADMIT_FREELY, BODY_RPC,
     grpc_health_unknown},
    {"POST", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", HTTP_ROLE_ANY,
     ADMIT_FREELY, BODY_RPC, grpc_reflection},
    {"POST", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", HTTP_ROLE_ANY,
     ADMIT_FREELY, BODY_RPC, grpc_reflection},
    {"POST", "/api/v1/sources", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_SOURCE_LIST, sources_put_list},
    {"POST", "/api/v1/sources/*", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_SOURCE, sources_put},
    {"GET", "/api/v1/source", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, sources_get},
    {"GET", "/api/v1/source_links", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, source_links_get},
    {"GET", "/api/v1/symbols", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, symbols_list},
    {"GET", "/api/v1/symbols/missing", HTTP_ROLE_READ, ADMIT_QUERY_WHOLE, BODY_NONE,
     symbols_missing},
    {"DELETE", "/api/v1/symbols/*", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_NONE, symbols_delete},
    {"POST", "/api/v1/maps", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_MAP, maps_upload},
    {"GET", "/api/v1/maps", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, maps_list},
    {"DELETE", "/api/v1/maps/*", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_NONE, maps_delete},
    {"GET", "/buildid/*", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, debuginfod_get},
    {"POST", "/api/v1/admin/delete", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_NONE, admin_delete},
    {"POST", "/api/v1/admin/acknowledge", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_NONE,
     admin_acknowledge},
    {"POST", "/api/v1/admin/retention/resume", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_NONE,
     admin_resume_retention},
    {"GET", "/api/v1/audit", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_NONE, admin_audit},
    {"POST", "/api/v1/agents/report", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_REPORT, agents_report},
    {"GET", "/api/v1/agents/orders", HTTP_ROLE_INGEST, ADMIT_FREELY, BODY_NONE, agents_orders},
    {"GET", "/api/v1/agents", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, agents_list},
    {"GET", "/api/v1/control", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_NONE, control_get},
    {"POST", "/api/v1/control", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_ORDER, control_post},
    {"POST", "/api/v1/recordings", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_ORDER, recordings_start},
    {"GET", "/api/v1/recordings", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, recordings_list},
    {"GET", "/api/v1/recordings/*/flame", HTTP_ROLE_READ, ADMIT_QUERY_WHOLE, BODY_NONE,
     api_recorded},
    {"GET", "/api/v1/recordings/*", HTTP_ROLE_READ, ADMIT_FREELY, BODY_NONE, recordings_one},
    {"DELETE", "/api/v1/recordings/*", HTTP_ROLE_ADMIN, ADMIT_FREELY, BODY_NONE, recordings_stop},
    /* clang-format on */
};

_Static_assert(ARRAY_LENGTH(routes) <= SERVER_ROUTES_MAX, "the server has room for all routes");

static const struct http_route missing = {"GET", "(none)", HTTP_ROLE_ANY, web_missing, 0, 0};

static uint64_t body_limit(enum body_class body, const struct server_options *options)
{
    const struct symbols_options *symbols = &options->symbols;
    switch (body) {
    case BODY_NONE:
        return 0;
    case BODY_PUSH:
        return options->limits.body_bytes;
    case BODY_RPC:
        return 1u << 20;
    case BODY_ADHOC:
        return ADHOC_BODY_MAX;
    case BODY_ORDER:
        return HANDLER_JSON_BYTES;
    case BODY_REPORT:
        return AGENT_REPORT_BYTES;
    case BODY_SYMBOLS:
        return symbols->file_bytes ? symbols->file_bytes : SYMBOLS_BODY_DEFAULT;
    case BODY_SOURCE:
        return symbols->source_file_bytes ? symbols->source_file_bytes : SOURCE_FILE_BYTES_DEFAULT;
    case BODY_SOURCE_LIST:
        return SOURCE_LIST_BYTES_MAX;
    case BODY_MAP:
        return 256ull << 20;
    }
    return 0;
}

/* Every request comes here, since a route is known by its place in the server's list. */
static void dispatch(struct http_request *request, void *userdata)
{
    struct server_process *process = userdata;
    struct server *server = &process->parts;
    const struct server_route *route = &routes[http_request_route(request) - process->routes];
    uint64_t push_limit =
        route->admission == ADMIT_PUSH ? ingest_limits(server->ingest).body_bytes : 0;
    if (admissions_run(server->admissions, route->admission, push_limit, request, route->handle,
                       server))
        return;
    if (route->admission == ADMIT_PUSH) {
        receive_refuse_memory(request, server);
        return;
    }
    http_respond_header(request, "Retry-After", "1");
    http_respond_error(request, 503,
                       "Other queries and pushes have used up the server's memory limit; try again "
                       "later.");
}

/* Of a service: "/package.Service/Method". */
static bool is_method(const struct server_route *route)
{
    size_t first = 1 + strcspn(route->pattern + 1, "/");
    return memchr(route->pattern, '.', first);
}

void routes_init(struct server_process *process, struct http_server_options *http)
{
    const struct server_options *options = &process->options;
    for (size_t i = 0; i < ARRAY_LENGTH(routes); i++) {
        bool open = routes[i].handle == debuginfod_get && options->symbols.open;
        bool messages =
            routes[i].handle == grpc_reflection || routes[i].handle == grpc_health_watch ||
            routes[i].handle == parca_debuginfo_upload || routes[i].handle == receive_arrow_stream;
        process->routes[i] = (struct http_route){
            .method = routes[i].method,
            .pattern = routes[i].pattern,
            .roles = routes[i].roles,
            .handle = dispatch,
            .body_limit_bytes = body_limit(routes[i].body, options),
            .flags = (routes[i].admission == ADMIT_PUSH ? HTTP_ROUTE_COMPUTES : 0) |
                     (is_method(&routes[i]) ? HTTP_ROUTE_RPC : 0) |
                     (messages ? HTTP_ROUTE_MESSAGES : 0) | (open ? HTTP_ROUTE_TOKEN_OPTIONAL : 0),
        };
    }
    http->routes = process->routes;
    http->route_count = ARRAY_LENGTH(routes);
    http->missing = &missing;
    http->userdata = process;
}

void routes_set_limits(struct server_process *process, const struct server_options *options)
{
    for (size_t i = 0; i < ARRAY_LENGTH(routes); i++)
        if (routes[i].body == BODY_PUSH)
            http_route_set_body_limit(&process->routes[i], body_limit(BODY_PUSH, options));
}

bool routes_is_push(const struct server_process *process, const struct http_request *request)
{
    const struct http_route *route = http_request_route(request);
    return route && route != &missing && routes[route - process->routes].admission == ADMIT_PUSH;
}

size_t server_route_count(void)
{
    return ARRAY_LENGTH(routes);
}

struct http_route server_route_at(size_t index)
{
    return (struct http_route){.method = routes[index].method,
                               .pattern = routes[index].pattern,
                               .roles = routes[index].roles};
}
