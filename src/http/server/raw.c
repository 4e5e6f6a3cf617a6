// SPDX-License-Identifier: Apache-2.0
// What libmicrohttpd takes and we don't: lines that end in a bare LF, continued lines, NUL and
// other control characters, more parameters than its memory holds. Where two readers of one stream,
// a proxy and we, could disagree on what a request is, it is refused.
//
// Before 1.0 the library can't be told to be strict. It parses a head where it lies in its buffer:
// spaces, colons, CR and LF become NULs, and names and values point between them. So what is
// neither one of the pieces that it hands over nor one of those NULs is something that it skipped.

#include <stdio.h>
#include <string.h>

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
        has_control(target, length) || memchr(target, '\t', length) || strstr(target, "%00");
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

const char *raw_problem(const struct http_request *request, const char *method, const char *url,
                        const char *version)
{
    const struct connection *connection = request->connection;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (connection->target_bad)
        return "has a control character in its address";
    if (!info || !is_whole_line(connection, method, url, version))
        return "has a malformed first line";
    struct cursor cursor = {
        .at = version + strlen(version) + 2, .end = method + info->header_size, .whole = true};
    MHD_get_connection_values_n(request->mhd, MHD_HEADER_KIND, pass_header, &cursor);
    if (cursor.control)
        return "has a control character in a header";
#if MHD_VERSION < 0x01000000
    /* What is left is the empty line. */
    if (!cursor.whole || cursor.at + 2 != cursor.end || cursor.at[0] || cursor.at[1])
        return "has a header that is continued, has a NUL in it or doesn't end in CR and LF";
#endif
    return NULL;
}

/* ---- bodies ---- */

#if MHD_VERSION < 0x01000000

#include <dlfcn.h>

/* A chunk whose first line doesn't fit the buffer is the sender's fault, and the library answers
 * 500, that it is ours. Its own answers pass here, too: this definition comes before the library's,
 * unless that was linked to prefer its own. */
__attribute__((visibility("default"))) enum MHD_Result
MHD_queue_response(struct MHD_Connection *mhd, unsigned status, struct MHD_Response *response)
{
    static enum MHD_Result (*_Atomic next)(struct MHD_Connection *, unsigned,
                                           struct MHD_Response *);
    static const char message[] = "{\"code\":\"resource_exhausted\",\"message\":\"A chunk of the "
                                  "body has a first line that is too long.\"}\n";
    if (!next)
        next = (enum MHD_Result(*)(struct MHD_Connection *, unsigned, struct MHD_Response *))dlsym(
            RTLD_NEXT, "MHD_queue_response");
    if (status != MHD_HTTP_INTERNAL_SERVER_ERROR || raw_own_answer)
        return next(mhd, status, response);
    struct MHD_Response *answer = MHD_create_response_from_buffer(
        sizeof(message) - 1, (void *)message, MHD_RESPMEM_PERSISTENT);
    if (!answer)
        return next(mhd, MHD_HTTP_CONTENT_TOO_LARGE, response);
    MHD_add_response_header(answer, "Content-Type", "application/json");
    enum MHD_Result r = next(mhd, MHD_HTTP_CONTENT_TOO_LARGE, answer);
    MHD_destroy_response(answer);
    return r;
}

#endif
