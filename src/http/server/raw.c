// SPDX-License-Identifier: Apache-2.0
// Rejects input that libmicrohttpd accepts: lines that end in a bare LF, continued lines, NUL and
// other control characters, more parameters than its memory holds. Where two readers of one stream,
// a proxy and we, could disagree on what a request is, it is refused. framing.c follows all bytes
// before the library has them; what is checked here besides gives better reasons.
//
// Before 1.0 the library can't be told to be strict. It parses a head where it lies in its buffer:
// spaces, colons, CR and LF become NULs, and names and values point between them. So what is
// neither one of the pieces that it hands over nor one of those NULs is something that it skipped.

#include <dlfcn.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "http/server/internal.h"

#define PARAMETERS_MAX 128

_Thread_local bool raw_own_answer;

static struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

static bool has_control(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (is_control(text[i]))
            return true;
    return false;
}

/* ---- the target ---- */

/* The library keeps a record for each parameter in the memory that the head is in, and when that is
 * used up, it forgets that it has answered and waits. So the query is taken from it here, before it
 * looks at it: it has found the query mark, and behind that it finds nothing now. */
void *raw_target(void *userdata, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection = connection_of(mhd);
    (void)userdata;
    if (!connection || !target)
        return NULL;
    size_t length = strlen(target);
    const char *query = memchr(target, '?', length);
    free(connection->query);
    connection->query = query ? memory_strdup(query + 1) : NULL;
    connection->target_end = target + length;
    connection->target_bad =
        has_control(target, length) || strpbrk(target, " \t") || strstr(target, "%00");
    if (query)
        ((char *)query)[1] = '\0';
    return NULL;
}

static const char *unescaped(struct http_request *request, const char *text, size_t length)
{
    char *copy = arena_strndup(&request->arena, text, length);
    for (char *at = copy; (at = strchr(at, '+'));)
        *at = ' ';
    head_unescape(NULL, NULL, copy);
    return copy;
}

/* False: there are too many. */
bool raw_read_query(struct http_request *request)
{
    _cleanup_free_ char *query = TAKE_PTR(request->connection->query);
    for (const char *at = query ? query : ""; *at;) {
        const char *end = strchrnul(at, '&');
        const char *equals = memchr(at, '=', (size_t)(end - at));
        const char *name_end = equals ? equals : end;
        if (request->query_count == PARAMETERS_MAX)
            return false;
        array_reserve(request->query, request->query_room, request->query_count + 1);
        request->query[request->query_count++] = (struct http_field){
            unescaped(request, at, (size_t)(name_end - at)),
            equals ? unescaped(request, equals + 1, (size_t)(end - equals - 1)) : ""};
        at = end + (*end == '&');
    }
    return true;
}

/* ---- the head ---- */

/* Where the next piece of the head begins, if all is well. */
struct cursor {
    const char *at, *end;
    bool whole, control;
};

static enum MHD_Result pass_header(void *userdata, enum MHD_ValueKind kind, const char *name,
                                   size_t name_length, const char *value, size_t value_length)
{
    struct cursor *cursor = userdata;
    (void)kind;
    cursor->control |= has_control(value, value_length);
#if MHD_VERSION < 0x01000000
    const char *at = cursor->at;
    cursor->whole = name == at && value > name + name_length &&
                    value + value_length + 2 <= cursor->end && !name[name_length] &&
                    !value[value_length] && !value[value_length + 1];
    for (at += name_length + 1; cursor->whole && at < value; at++)
        cursor->whole = *at == ' ' || *at == '\t';
    cursor->at = value + value_length + 2;
#else
    (void)name, (void)name_length;
#endif
    return cursor->whole ? MHD_YES : MHD_NO;
}

/* The line of the request: one blank between its parts, and CR and LF behind them. */
static bool is_whole_line(const struct connection *connection, const char *method, const char *url,
                          const char *version)
{
#if MHD_VERSION < 0x01000000
    size_t length = strlen(version);
    return url == method + strlen(method) + 1 && version == connection->target_end + 1 &&
           !version[length] && !version[length + 1];
#else
    (void)method, (void)url, (void)version;
    return connection->target_end;
#endif
}

const char *raw_problem(struct http_request *request, const char *method, const char *url,
                        const char *version)
{
    struct connection *connection = request->connection;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (connection->target_bad)
        return "has a blank or a control character in its address";
    if (!info || !is_whole_line(connection, method, url, version))
        return "has a malformed first line";
    if (strcmp(version, "HTTP/1.0") &&
        !MHD_lookup_connection_value(request->mhd, MHD_HEADER_KIND, "Host"))
        return "has no Host";
    struct cursor cursor = {
        .at = version + strlen(version) + 2, .end = method + info->header_size, .whole = true};
    MHD_get_connection_values_n(request->mhd, MHD_HEADER_KIND, pass_header, &cursor);
    if (cursor.control)
        return "has a control character in a header";
#if MHD_VERSION < 0x01000000
    /* Only the empty line remains. */
    if (!cursor.whole || cursor.at + 2 != cursor.end || cursor.at[0] || cursor.at[1])
        return "has a header that is continued, has a NUL in it or doesn't end in CR and LF";
#endif
    if (++connection->heads > connection->framing.heads && connection->followed)
        return "is malformed, or follows bytes that are not a request";
    return NULL;
}

/* ---- the library's own answers ---- */

#if MHD_VERSION < 0x01000000

static const char *explain(unsigned status, const char **ret_code)
{
    *ret_code = "invalid_argument";
    switch (status) {
    case MHD_HTTP_CONTENT_TOO_LARGE:
        *ret_code = "resource_exhausted";
        return "A chunk of the body has a first line that is too long, or the body is too large.";
    case MHD_HTTP_URI_TOO_LONG:
        return "The address is too long.";
    case MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE:
        *ret_code = "resource_exhausted";
        return "The headers or trailers are too large.";
    default:
        return "The request is malformed.";
    }
}

static struct MHD_Response *make_answer(unsigned status)
{
    char text[256];
    const char *code, *message = explain(status, &code);
    int length =
        snprintf(text, sizeof(text), "{\"code\":\"%s\",\"message\":\"%s\"}\n", code, message);
    struct MHD_Response *answer =
        MHD_create_response_from_buffer((size_t)length, text, MHD_RESPMEM_MUST_COPY);
    if (answer)
        MHD_add_response_header(answer, "Content-Type", "application/json");
    return answer;
}

/* The library answers by itself what it can't parse, as a page of HTML, and answers 500 where a
 * chunk's first line doesn't fit its buffer, which is the sender's fault. Its own answers pass
 * here, too: this definition comes before the library's, unless that was linked to prefer its own.
 */
__attribute__((visibility("default"))) enum MHD_Result
MHD_queue_response(struct MHD_Connection *mhd, unsigned status, struct MHD_Response *response)
{
    static enum MHD_Result (*_Atomic next)(struct MHD_Connection *, unsigned,
                                           struct MHD_Response *);
    if (!next)
        next = (enum MHD_Result(*)(struct MHD_Connection *, unsigned, struct MHD_Response *))dlsym(
            RTLD_NEXT, "MHD_queue_response");
    if (status < MHD_HTTP_BAD_REQUEST || raw_own_answer)
        return next(mhd, status, response);
    /* It would send the heads of these answers twice: the connection ends without one. */
    const struct connection *connection = connection_of(mhd);
    if (status == MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED ||
        (connection && connection->framing.empty_length))
        return MHD_NO;
    if (status == MHD_HTTP_INTERNAL_SERVER_ERROR)
        status = MHD_HTTP_CONTENT_TOO_LARGE;
    struct MHD_Response *answer = make_answer(status);
    enum MHD_Result r = next(mhd, status, answer ? answer : response);
    if (answer)
        MHD_destroy_response(answer);
    return r;
}

#endif

/* ---- bytes as they come ---- */

/* Connections by descriptor. One beyond the table isn't followed; its heads are checked above. */
#define FOLLOWED_MAX (1 << 20)
static _Atomic(struct connection *) followed[FOLLOWED_MAX];

void raw_attach(struct connection *connection)
{
    connection->followed = connection->fd >= 0 && connection->fd < FOLLOWED_MAX;
    if (connection->followed)
        followed[connection->fd] = connection;
}

void raw_detach(struct connection *connection)
{
    if (connection->followed)
        followed[connection->fd] = NULL;
}

static struct connection *follow(int fd, bool tls)
{
    struct connection *connection = fd >= 0 && fd < FOLLOWED_MAX ? followed[fd] : NULL;
    return connection && connection->tls == tls ? connection : NULL;
}

/* libmicrohttpd has no place to look at bytes before they are parsed, but it receives them by these
 * two functions, of which the program's own come before those of libraries. Everybody else's
 * descriptors and sessions are not in the table. */
__attribute__((visibility("default"))) ssize_t recv(int fd, void *data, size_t room, int flags)
{
    for (;;) {
        ssize_t got = recvfrom(fd, data, room, flags, NULL, NULL);
        struct connection *connection = got > 0 && !(flags & MSG_PEEK) ? follow(fd, false) : NULL;
        if (connection)
            got = (ssize_t)framing_pass(&connection->framing, data, (size_t)got, room);
        if (got || !connection) /* 0 would be the connection's end */
            return got;
    }
}

__attribute__((visibility("default"))) ssize_t gnutls_record_recv(gnutls_session_t session,
                                                                  void *data, size_t room)
{
    static ssize_t (*_Atomic next)(gnutls_session_t, void *, size_t);
    if (!next)
        next = (ssize_t(*)(gnutls_session_t, void *, size_t))dlsym(RTLD_NEXT, "gnutls_record_recv");
    for (;;) {
        ssize_t got = next(session, data, room);
        struct connection *connection =
            got > 0 ? follow(gnutls_transport_get_int(session), true) : NULL;
        if (connection)
            got = (ssize_t)framing_pass(&connection->framing, data, (size_t)got, room);
        if (got || !connection)
            return got;
    }
}
