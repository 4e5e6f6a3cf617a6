// SPDX-License-Identifier: Apache-2.0
// The head of a request: copies everything that handlers can use, and decides whether the request
// is accepted.

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/hex.h"
#include "base/text.h"
#include "http/access/authorize.h"
#include "http/server/internal.h"
#include "http/tls.h"

/* ---- reading ---- */

/* In place. What isn't an escape is none and stays; so does that of a zero byte, which would end
 * the text early, and is refused in targets. */
size_t head_unescape(void *userdata, struct MHD_Connection *mhd, char *text)
{
    (void)userdata, (void)mhd;
    char *out = text;
    for (const char *at = text; *at;) {
        int high = at[0] == '%' ? hex_digit(at[1]) : -1;
        int low = high >= 0 ? hex_digit(at[2]) : -1;
        if (low >= 0 && (high || low)) {
            *out++ = (char)(high << 4 | low);
            at += 3;
        } else {
            *out++ = *at++;
        }
    }
    *out = 0;
    return (size_t)(out - text);
}

const char *head_keep(struct http_request *request, const char *text)
{
    return arena_strndup(&request->arena, text ? text : "", text ? strlen(text) : 0);
}

void head_add_field(struct http_request *request, const char *name, size_t name_length,
                    const char *value, size_t value_length)
{
    array_reserve(request->headers, request->header_room, request->header_count + 1);
    request->headers[request->header_count++] =
        (struct http_field){arena_strndup(&request->arena, name, name_length),
                            arena_strndup(&request->arena, value, value_length)};
}

static enum MHD_Result add_header(void *userdata, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    (void)kind;
    head_add_field(userdata, name, strlen(name), value ? value : "", value ? strlen(value) : 0);
    return MHD_YES;
}

/* Handlers see the message of a gRPC call as the body, and its type as the body's. */
static void read_protocol(struct http_request *request)
{
    struct rpc_state *rpc = &request->rpc;
    for (size_t i = 0; i < request->header_count; i++) {
        struct http_field *field = &request->headers[i];
        if (strcasecmp(field->name, "Content-Type"))
            continue;
        enum grpc_protocol protocol = grpc_protocol_of(field->value, &rpc->json);
        if (protocol == GRPC_WEB || (protocol == GRPC_HTTP2 && request->stream)) {
            rpc->protocol = protocol;
            rpc->content_type = field->value;
            field->value = rpc->json ? "application/json" : "application/proto";
        }
        return;
    }
}

void head_read_fields(struct http_request *request)
{
    request->rest = "";
    request->head_only = !strcmp(request->method, "HEAD");
    request->too_many_parameters = !raw_read_query(request);
    read_protocol(request);
    const char *length = http_request_header(request, "Content-Length");
    if (http_request_header(request, "Transfer-Encoding"))
        request->content_length = -1;
    else if (!length || !text_to_i64(length, strlen(length), &request->content_length))
        request->content_length = 0;
}

void head_read(struct http_request *request, const char *url, const char *method,
               const char *version)
{
    request->problem = raw_problem(request, method, url, version);
    request->method = head_keep(request, method);
    request->path = head_keep(request, url);
    MHD_get_connection_values(request->mhd, MHD_HEADER_KIND, add_header, request);
    head_read_fields(request);
}

/* ---- checking ---- */

bool head_match(const char *pattern, const char *path, const char **ret_rest, size_t *ret_length)
{
    const char *star = strchr(pattern, '*');
    size_t length = strlen(path);
    if (!star) {
        *ret_rest = "";
        *ret_length = 0;
        return !strcmp(pattern, path);
    }
    size_t before = (size_t)(star - pattern), after = strlen(star + 1);
    if (length <= before + after || strncmp(path, pattern, before) ||
        strcmp(path + length - after, star + 1))
        return false;
    *ret_rest = path + before;
    *ret_length = length - before - after;
    return true;
}

static bool is_method(const struct http_request *request, const struct http_route *route)
{
    return !strcmp(request->method, route->method) ||
           (request->head_only && !strcmp(route->method, "GET"));
}

static int refuse_method(struct http_request *request, const char *allowed)
{
    http_respond_header(request, "Allow", allowed);
    const char *origin = request->server->options.cors_origin;
    if (!strcmp(request->method, "OPTIONS") && origin) {
        http_respond_header(request, "Access-Control-Allow-Methods", allowed);
        http_respond_header(request, "Access-Control-Allow-Headers",
                            "Authorization, Content-Type, Connect-Protocol-Version, X-Scope-OrgID");
        http_respond_header(request, "Access-Control-Max-Age", "600");
        http_respond_text(request, 204, NULL, "");
    } else {
        http_respond_error(request, 405, "%s doesn't support the method %s: use %s.", request->path,
                           request->method, allowed);
    }
    return -1;
}

static int find_route(struct http_request *request)
{
    const struct http_server_options *options = &request->server->options;
    char allowed[64] = "";
    for (size_t i = 0; i < options->route_count; i++) {
        const struct http_route *route = &options->routes[i];
        const char *rest;
        size_t length;
        if (!head_match(route->pattern, request->path, &rest, &length))
            continue;
        if (request->rpc.protocol && !(route->flags & HTTP_ROUTE_RPC))
            continue;
        if (is_method(request, route)) {
            request->route = route;
            request->rest = arena_strndup(&request->arena, rest, length);
            return 0;
        }
        size_t used = strlen(allowed);
        if (!strstr(allowed, route->method) && used + strlen(route->method) + 3 < sizeof(allowed))
            sprintf(allowed + used, "%s%s", used ? ", " : "", route->method);
    }
    if (request->rpc.protocol) {
        http_respond_code(request, HTTP_UNIMPLEMENTED, "Unknown method %.200s.", request->path);
        return -1;
    }
    if (allowed[0])
        return refuse_method(request, allowed);
    if (options->missing && is_method(request, options->missing)) {
        request->route = options->missing;
        request->rest = "";
        return 0;
    }
    http_respond_error(request, 404, "Unknown route %s.", request->path);
    return -1;
}

static size_t count_headers(const struct http_request *request, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < request->header_count; i++)
        count += !strcasecmp(request->headers[i].name, name);
    return count;
}

/* What isn't a token may be a name to another reader: "Content-Length :". */
static bool odd_name(const struct http_request *request)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < request->header_count; i++) {
        const char *name = request->headers[i].name;
        if (!*name)
            return true;
        for (; *name; name++)
            if (!(*name >= '0' && *name <= '9') &&
                !((*name | 0x20) >= 'a' && (*name | 0x20) <= 'z') && !strchr(others, *name))
                return true;
    }
    return false;
}

/* Two readers of one stream (a proxy and we) must not disagree on where a request ends. */
static const char *framing_problem(const struct http_request *request)
{
    const char *coding = http_request_header(request, "Transfer-Encoding");
    size_t lengths = count_headers(request, "Content-Length");
    if (coding && lengths)
        return "has a Content-Length and a Transfer-Encoding";
    if (lengths > 1 || count_headers(request, "Transfer-Encoding") > 1)
        return "has more than one Content-Length";
    if (coding && strcasecmp(coding, "chunked"))
        return "has a Transfer-Encoding other than chunked";
    if (count_headers(request, "Host") > 1)
        return "has more than one Host";
    return odd_name(request) ? "has an invalid header name" : NULL;
}

static int check_framing(struct http_request *request)
{
    const char *problem = request->problem ? request->problem : framing_problem(request);
    if (!problem && !request->too_many_parameters)
        return 0;
    http_respond_header(request, "Connection", "close");
    if (problem)
        request_refuse(request, HTTP_REFUSED_MALFORMED, 400, "The request %s.", problem);
    else
        request_refuse(request, HTTP_REFUSED_MALFORMED, 414,
                       "The address has more than %zu parameters.", request->query_count);
    return -1;
}

static void put_wait(struct http_request *request, int64_t wait_ms)
{
    char seconds[24];
    snprintf(seconds, sizeof(seconds), "%lld", (long long)(wait_ms + 999) / 1000);
    http_respond_header(request, "Retry-After", seconds);
}

static gnutls_session_t tls_session(const struct http_request *request)
{
    if (request->connection->h2)
        return h2_tls_session(request->connection->h2);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info ? info->tls_session : NULL;
}

static int check_certificate(struct http_request *request)
{
    struct connection *connection = request->connection;
    const struct http_tls *tls = request->server->options.tls;
    if (!tls || !http_tls_client_ca(tls))
        return 0;
    if (!connection->certificate_checked) {
        gnutls_session_t session = tls_session(request);
        unsigned status = 0;
        gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                         .data = (void *)GNUTLS_KP_TLS_WWW_CLIENT};
        connection->certificate_good =
            session && gnutls_certificate_verify_peers(session, &purpose, 1, &status) == 0 &&
            !status;
        connection->certificate_checked = true;
    }
    if (connection->certificate_good)
        return 0;
    request_refuse(request, HTTP_REFUSED_UNAUTHENTICATED, 401,
                   "This server requires a client certificate signed by its authority.");
    return -1;
}

/* Without tokens, being able to reach us is all it takes, and any web page in a browser here can,
 * by a name that it resolves to 127.0.0.1. */
static int check_host(struct http_request *request)
{
    const struct http_server_options *options = &request->server->options;
    const char *host = http_request_header(request, "Host");
    if (!request->connection->local || request->connection->unix_socket || !host ||
        authorize_host(host, options->host_names, options->host_name_count))
        return 0;
    request_refuse(request, HTTP_REFUSED_FORBIDDEN, 403,
                   "This server has no tokens and serves this machine only, and %s is not a known "
                   "name of it: use its address, or configure the name.",
                   host);
    return -1;
}

static bool is_bearer(const char *authorization)
{
    return authorization && !strncasecmp(authorization, "Bearer ", 7);
}

/* A browser sends a form of any page to us, and adds by itself what lets it in: being on this
 * machine or in this network, a password for basic authentication that it was told once, a client's
 * certificate. Then what changes anything has to come from our own page, or from the one origin
 * that is set up. A bearer token is only sent by those who know it. */
static int check_origin(struct http_request *request)
{
    const struct http_server_options *options = &request->server->options;
    const char *origin = http_request_header(request, "Origin");
    const char *site = http_request_header(request, "Sec-Fetch-Site");
    const char *host = http_request_header(request, "Host");
    bool reads = !strcmp(request->method, "GET") || request->head_only;
    if (reads || (options->tokens && is_bearer(http_request_header(request, "Authorization"))))
        return 0;
    if (!origin && (!site || !strcasecmp(site, "same-origin") || !strcasecmp(site, "none")))
        return 0;
    const char *allowed = options->cors_origin;
    if (origin && allowed &&
        (!strcmp(allowed, origin) || (!strcmp(allowed, "*") && !options->tokens)))
        return 0;
    const char *at = origin ? strstr(origin, "://") : NULL;
    if (at && host && !strcasecmp(at + 3, host))
        return 0;
    request_refuse(request, HTTP_REFUSED_FORBIDDEN, 403,
                   "Pages of %s are not allowed to send requests to this server.",
                   origin ? origin : "another site");
    return -1;
}

/* Addresses that guess tokens get 429; a valid token from the same address still works. */
static int refuse_token(struct http_request *request, int code)
{
    int64_t wait_ms;
    if (code != -ENOENT && !rates_allow(request->server->failures, request->connection->network,
                                        http_now_ms(), &wait_ms)) {
        put_wait(request, wait_ms);
        request_refuse(request, HTTP_REFUSED_GUESSING, 429,
                       "Too many wrong tokens from %s. Wait before trying another.",
                       request->connection->network);
        return -1;
    }
    http_respond_header(request, "WWW-Authenticate", "Bearer realm=\"assay\"");
    http_respond_header(request, "WWW-Authenticate", "Basic realm=\"assay\"");
    request_refuse(
        request, HTTP_REFUSED_UNAUTHENTICATED, 401, "%s",
        code == -ENOENT
            ? "Token required: send it as bearer, or as the password of basic authentication."
        : code == -ETIME ? "The token has expired: request a new one."
                         : "Unknown token.");
    return -1;
}

static int authenticate(struct http_request *request)
{
    struct tokens *tokens = request->server->options.tokens;
    request->identity.tenant = TOKEN_DEFAULT_TENANT;
    if (!tokens) {
        request->identity.roles = HTTP_ROLE_INGEST | HTTP_ROLE_READ | HTTP_ROLE_ADMIN;
        return check_host(request) < 0 ? -1 : check_origin(request);
    }
    const char *header = http_request_header(request, "Authorization");
    if (request->route->roles == HTTP_ROLE_ANY ||
        (!header && request->route->flags & HTTP_ROUTE_TOKEN_OPTIONAL))
        return 0;
    if (check_origin(request) < 0)
        return -1;
    int r = header ? authorize_token(tokens, header, time(NULL), &request->token) : -ENOENT;
    if (r < 0)
        return refuse_token(request, r);
    request->identity = (struct http_identity){.tenant = request->token.tenant,
                                               .token_id = request->token.id,
                                               .token_name = request->token.name,
                                               .roles = request->token.roles};
    if (request->token.roles & (request->route->roles | HTTP_ROLE_ADMIN))
        return 0;
    char has[32], wants[32];
    request_refuse(request, HTTP_REFUSED_FORBIDDEN, 403,
                   "The token %s has the role %s, but this request requires %s.",
                   request->token.name, token_roles_text(request->token.roles, has),
                   token_roles_text(request->route->roles, wants));
    return -1;
}

static int check_limits(struct http_request *request)
{
    struct http_server *server = request->server;
    size_t limit = route_body_limit(request->route);
    int64_t wait_ms;
    if (server->rates && !rates_allow(server->rates,
                                      request->identity.token_id ? request->identity.token_id
                                                                 : request->connection->network,
                                      http_now_ms(), &wait_ms)) {
        put_wait(request, wait_ms);
        request_refuse(request, HTTP_REFUSED_RATE, 429,
                       "%s exceeded the limit of %g requests per second.",
                       request->identity.token_name ? request->identity.token_name : request->peer,
                       server->options.requests_per_second);
        return -1;
    }
    if (request->content_length > 0 && (uint64_t)request->content_length > limit) {
        request_refuse(request, HTTP_REFUSED_TOO_LARGE, 413,
                       limit ? "The body is %lld bytes; the limit of %s is %zu."
                             : "The body is %lld bytes, but %s accepts none.",
                       (long long)request->content_length, request->route->pattern, limit);
        return -1;
    }
    if (atomic_load(&server->active_count) > server->options.request_limit) {
        http_respond_header(request, "Retry-After", "1");
        request_refuse(request, HTTP_REFUSED_OVERLOAD, 503,
                       "The server is busy with %zu requests: try again.",
                       server->options.request_limit);
        return -1;
    }
    return 0;
}

int head_check(struct http_request *request)
{
    if (atomic_load(&request->server->stopping)) {
        http_respond_header(request, "Connection", "close");
        http_respond_header(request, "Retry-After", "1");
        request_refuse(request, HTTP_REFUSED_STOPPING, 503, "The server is shutting down.");
        return -1;
    }
    if (check_framing(request) < 0 || check_certificate(request) < 0 || find_route(request) < 0 ||
        authenticate(request) < 0)
        return -1;
    return check_limits(request);
}
