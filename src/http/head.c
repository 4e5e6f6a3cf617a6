// SPDX-License-Identifier: Apache-2.0
// The head of a request: everything that handlers may ask of it is copied here, and it is decided
// whether the request may go on.

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/text.h"
#include "http/authorize.h"
#include "http/internal.h"
#include "http/tls.h"

/* ---- reading ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place. A zero byte would end the text early, and what isn't an escape is none: both stay. */
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

static const char *keep(struct http_request *request, const char *text)
{
    return arena_strndup(&request->arena, text ? text : "", text ? strlen(text) : 0);
}

static enum MHD_Result add_header(void *userdata, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct http_request *request = userdata;
    (void)kind;
    array_reserve(request->headers, request->header_room, request->header_count + 1);
    request->headers[request->header_count++] =
        (struct http_field){keep(request, name), keep(request, value)};
    return MHD_YES;
}

static enum MHD_Result add_query(void *userdata, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct http_request *request = userdata;
    (void)kind;
    array_reserve(request->query, request->query_room, request->query_count + 1);
    request->query[request->query_count++] =
        (struct http_field){keep(request, name), keep(request, value)};
    return MHD_YES;
}

void head_read(struct http_request *request, const char *url, const char *method)
{
    request->method = keep(request, method);
    request->path = keep(request, url);
    request->rest = "";
    request->head_only = !strcmp(method, "HEAD");
    MHD_get_connection_values(request->mhd, MHD_HEADER_KIND, add_header, request);
    MHD_get_connection_values(request->mhd, MHD_GET_ARGUMENT_KIND, add_query, request);
    const char *length = http_request_header(request, "Content-Length");
    if (http_request_header(request, "Transfer-Encoding"))
        request->content_length = -1;
    else if (!length || !text_to_i64(length, strlen(length), &request->content_length))
        request->content_length = 0;
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
        http_respond_error(request, 405, "%s is not for the method %s: use %s.", request->path,
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
        if (is_method(request, route)) {
            request->route = route;
            request->rest = arena_strndup(&request->arena, rest, length);
            return 0;
        }
        size_t used = strlen(allowed);
        if (!strstr(allowed, route->method) && used + strlen(route->method) + 3 < sizeof(allowed))
            sprintf(allowed + used, "%s%s", used ? ", " : "", route->method);
    }
    if (allowed[0])
        return refuse_method(request, allowed);
    if (options->missing && is_method(request, options->missing)) {
        request->route = options->missing;
        request->rest = "";
        return 0;
    }
    http_respond_error(request, 404, "There is nothing at %s.", request->path);
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
static int check_framing(struct http_request *request)
{
    const char *coding = http_request_header(request, "Transfer-Encoding");
    size_t lengths = count_headers(request, "Content-Length");
    const char *problem = NULL;
    if (coding && lengths)
        problem = "has a Content-Length and a Transfer-Encoding";
    else if (lengths > 1 || count_headers(request, "Transfer-Encoding") > 1)
        problem = "says its length more than once";
    else if (coding && strcasecmp(coding, "chunked"))
        problem = "has a Transfer-Encoding other than chunked";
    else if (count_headers(request, "Host") > 1)
        problem = "has more than one Host";
    else if (odd_name(request))
        problem = "has a header whose name isn't one";
    if (!problem)
        return 0;
    http_respond_header(request, "Connection", "close");
    request_refuse(request, HTTP_REFUSED_MALFORMED, 400, "The request %s.", problem);
    return -1;
}

static int check_certificate(struct http_request *request)
{
    struct connection *connection = request->connection;
    const struct http_tls *tls = request->server->options.tls;
    if (!tls || !http_tls_client_ca(tls))
        return 0;
    if (!connection->certificate_checked) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        unsigned status = 0;
        gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                         .data = (void *)GNUTLS_KP_TLS_WWW_CLIENT};
        connection->certificate_good =
            info && info->tls_session &&
            gnutls_certificate_verify_peers(info->tls_session, &purpose, 1, &status) == 0 &&
            !status;
        connection->certificate_checked = true;
    }
    if (connection->certificate_good)
        return 0;
    request_refuse(request, HTTP_REFUSED_UNAUTHENTICATED, 401,
                   "This server wants a client certificate that its authority signed.");
    return -1;
}

/* Without tokens, being able to reach us is all it takes, and any web page in a browser here can:
 * by a name that it resolves to 127.0.0.1, or by sending a form. Both show. */
static int check_browser(struct http_request *request)
{
    const struct http_server_options *options = &request->server->options;
    const char *host = http_request_header(request, "Host");
    const char *origin = http_request_header(request, "Origin");
    if (request->connection->local && !request->connection->unix_socket && host &&
        !authorize_host(host, options->host_names, options->host_name_count)) {
        request_refuse(request, HTTP_REFUSED_FORBIDDEN, 403,
                       "This server has no tokens and is for this machine only, and %s is not "
                       "known as a name of it: use its address, or set the name up.",
                       host);
        return -1;
    }
    bool reads = !strcmp(request->method, "GET") || request->head_only;
    if (!origin || reads ||
        (options->cors_origin &&
         (!strcmp(options->cors_origin, "*") || !strcmp(options->cors_origin, origin))))
        return 0;
    const char *at = strstr(origin, "://");
    if (at && host && !strcasecmp(at + 3, host))
        return 0;
    request_refuse(request, HTTP_REFUSED_FORBIDDEN, 403,
                   "A page of %s may not send anything to this server.", origin);
    return -1;
}

static int authenticate(struct http_request *request)
{
    struct tokens *tokens = request->server->options.tokens;
    request->identity.tenant = TOKEN_DEFAULT_TENANT;
    if (!tokens) {
        request->identity.roles = HTTP_ROLE_INGEST | HTTP_ROLE_READ | HTTP_ROLE_ADMIN;
        return check_browser(request);
    }
    if (request->route->roles == HTTP_ROLE_ANY)
        return 0;
    const char *header = http_request_header(request, "Authorization");
    int r = header ? authorize_token(tokens, header, time(NULL), &request->token) : -ENOENT;
    if (r < 0) {
        http_respond_header(request, "WWW-Authenticate", "Bearer realm=\"assay\"");
        http_respond_header(request, "WWW-Authenticate", "Basic realm=\"assay\"");
        request_refuse(request, HTTP_REFUSED_UNAUTHENTICATED, 401, "%s",
                       r == -ENOENT  ? "This needs a token: send it as bearer, or as the password "
                                       "of basic authentication."
                       : r == -ETIME ? "The token has expired: ask for another."
                                     : "The token is not known here.");
        return -1;
    }
    request->identity = (struct http_identity){.tenant = request->token.tenant,
                                               .token_id = request->token.id,
                                               .token_name = request->token.name,
                                               .roles = request->token.roles};
    if (request->token.roles & (request->route->roles | HTTP_ROLE_ADMIN))
        return 0;
    char has[32], wants[32];
    request_refuse(request, HTTP_REFUSED_FORBIDDEN, 403,
                   "The token %s is for %s, and this needs one for %s.", request->token.name,
                   token_roles_text(request->token.roles, has),
                   token_roles_text(request->route->roles, wants));
    return -1;
}

static int check_limits(struct http_request *request)
{
    struct http_server *server = request->server;
    size_t limit = route_body_limit(request->route);
    int64_t wait_ms;
    if (server->rates &&
        !rates_allow(server->rates,
                     request->identity.token_id ? request->identity.token_id : request->peer,
                     http_now_ms(), &wait_ms)) {
        char seconds[24];
        snprintf(seconds, sizeof(seconds), "%lld", (long long)(wait_ms + 999) / 1000);
        http_respond_header(request, "Retry-After", seconds);
        request_refuse(request, HTTP_REFUSED_RATE, 429,
                       "%s may ask %g times per second, and has asked more often.",
                       request->identity.token_name ? request->identity.token_name : request->peer,
                       server->options.requests_per_second);
        return -1;
    }
    if (request->content_length > 0 && (uint64_t)request->content_length > limit) {
        request_refuse(request, HTTP_REFUSED_TOO_LARGE, 413,
                       limit ? "The body has %lld bytes, and %s takes %zu at most."
                             : "The body has %lld bytes, and %s takes none.",
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
        request_refuse(request, HTTP_REFUSED_STOPPING, 503, "The server is stopping.");
        return -1;
    }
    if (check_framing(request) < 0 || check_certificate(request) < 0 || find_route(request) < 0 ||
        authenticate(request) < 0)
        return -1;
    return check_limits(request);
}
