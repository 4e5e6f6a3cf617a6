// SPDX-License-Identifier: Apache-2.0
// gRPC's health service, as load balancers and grpc_health_probe ask it: the same as /ready.

#include <string.h>

#include "base/memory.h"
#include "io/wire.h"
#include "server/grpc/descriptors.h"
#include "server/grpc/services.h"
#include "store/store.h"

#define REQUEST_BYTES_MAX (4u << 10)

/* Each call of Watch has a thread, and looks that often. */
#define WATCHERS_MAX 16
#define WATCH_MS 500

enum serving_status { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

static _Atomic unsigned watchers;

static bool is_service(const struct wire_field *name)
{
    if (!name->length)
        return true; /* the server as a whole */
    for (unsigned long i = 0; i < descriptor_file_count; i++)
        for (const char *const *at = descriptor_files[i].services; *at; at++)
            if (name->length == strlen(*at) && !memcmp(name->data, *at, name->length))
                return true;
    return false;
}

static int find_service(const void *message, size_t length, struct wire_field *ret_name,
                        struct error *error)
{
    return wire_find_bytes(message, length, 1, ret_name) < 0
               ? error_set(error, -EBADMSG, "The request is not a valid protobuf message.")
               : 0;
}

static enum serving_status status_now(struct server *server)
{
    struct error error = {0};
    bool serves = !atomic_load(&server->stopping) && !store_writable(server->store, &error);
    return serves ? SERVING : NOT_SERVING;
}

void grpc_health_check(struct http_request *request, void *server)
{
    _cleanup_buffer_ struct buffer out = {0};
    struct http_source *source = NULL;
    struct error error = {0};
    struct wire_field name = {0};
    if (!http_request_is_type(request, "application/proto")) {
        http_respond_error(request, 415, "Health checks must be application/proto or gRPC.");
        return;
    }
    int r = http_source_open(request, REQUEST_BYTES_MAX, &source, &error);
    if (!r)
        r = source_need_all(http_source(source), REQUEST_BYTES_MAX, &error);
    if (!r)
        r = find_service(source_data(http_source(source)), source_available(http_source(source)),
                         &name, &error);
    if (r < 0) {
        http_respond_failure(request, &error);
    } else if (!is_service(&name)) {
        http_respond_error(request, 404, "Unknown service %.*s.",
                           (int)MIN(name.length, (size_t)120), (const char *)name.data);
    } else {
        wire_put_u64(&out, 1, status_now(server));
        http_respond(request, 200, "application/proto", &out);
    }
    http_source_close(source);
}

/* The status now, and again whenever it is another. */
static void watch(struct http_request *request, struct server *server, bool known)
{
    enum serving_status last = 0;
    do {
        _cleanup_buffer_ struct buffer out = {0};
        enum serving_status now = known ? status_now(server) : SERVICE_UNKNOWN;
        wire_put_u64(&out, 1, now);
        int r = now == last ? 0 : http_message_write(request, out.data, out.length);
        if (r == -EAGAIN)
            http_respond_error(request, 503, "Too many streamed answers are in progress.");
        if (r < 0)
            return;
        last = now;
    } while (!atomic_load(&server->stopping) && http_message_wait(request, WATCH_MS));
    if (atomic_load(&server->stopping))
        http_respond_code(request, HTTP_UNAVAILABLE, "The server is stopping.");
}

void grpc_health_watch(struct http_request *request, void *server)
{
    _cleanup_buffer_ struct buffer message = {0}, rest = {0};
    struct error error = {0};
    struct wire_field name = {0};
    if (!http_request_is_grpc(request)) {
        http_respond_code(request, HTTP_UNIMPLEMENTED, "Watch requires gRPC.");
        return;
    }
    int r = http_message_read(request, REQUEST_BYTES_MAX, &message, &error);
    if (!r)
        r = error_set(&error, -EBADMSG, "The body has no message.");
    if (r > 0)
        r = find_service(message.data, message.length, &name, &error);
    if (!r && (r = http_message_read(request, REQUEST_BYTES_MAX, &rest, &error)) > 0)
        r = error_set(&error, -EBADMSG, "The call takes one message; the body has more.");
    if (r < 0) {
        http_respond_failure(request, &error);
    } else if (atomic_fetch_add(&watchers, 1) >= WATCHERS_MAX) {
        atomic_fetch_sub(&watchers, 1);
        http_respond_code(request, HTTP_RESOURCE_EXHAUSTED,
                          "Too many clients watch the server's health; call Check instead.");
    } else {
        watch(request, server, is_service(&name));
        atomic_fetch_sub(&watchers, 1);
    }
}

void grpc_health_unknown(struct http_request *request, void *server)
{
    (void)server;
    http_respond_code(request, HTTP_UNIMPLEMENTED, "Unknown method %.60s.",
                      http_request_rest(request));
}
