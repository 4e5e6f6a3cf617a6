// SPDX-License-Identifier: Apache-2.0
// gRPC's health service, as load balancers and grpc_health_probe ask it: the same as /ready. Watch
// is not there, which clients of gRPC take for healthy.

#include <string.h>

#include "base/memory.h"
#include "io/wire.h"
#include "server/grpc/descriptors.h"
#include "server/grpc/services.h"
#include "store/store.h"

#define REQUEST_BYTES_MAX (4u << 10)
#define SERVING 1
#define NOT_SERVING 2

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

void grpc_health(struct http_request *request, void *userdata)
{
    struct server *server = userdata;
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    struct wire_field field, name = {0};
    if (strcmp(http_request_rest(request), "Check")) {
        http_respond_code(request, HTTP_UNIMPLEMENTED, "Unknown method %.60s.",
                          http_request_rest(request));
        return;
    }
    if (!http_request_is_type(request, "application/proto")) {
        http_respond_error(request, 415, "Health checks must be application/proto or gRPC.");
        return;
    }
    struct http_source *source = NULL;
    int r = http_source_open(request, REQUEST_BYTES_MAX, &source, &error);
    if (!r)
        r = source_need_all(http_source(source), REQUEST_BYTES_MAX, &error);
    if (!r) {
        struct wire wire =
            wire_of(source_data(http_source(source)), source_available(http_source(source)));
        while ((r = wire_next(&wire, &field)) > 0)
            if (field.number == 1 && field.type == WIRE_BYTES)
                name = field;
        if (r < 0)
            error_set(&error, -EBADMSG, "The request is not a valid protobuf message.");
    }
    if (r < 0) {
        http_respond_failure(request, &error);
    } else if (!is_service(&name)) {
        http_respond_error(request, 404, "Unknown service %.*s.",
                           (int)MIN(name.length, (size_t)120), (const char *)name.data);
    } else {
        bool serves = !atomic_load(&server->stopping) && !store_writable(server->store, &error);
        wire_put_u64(&out, 1, serves ? SERVING : NOT_SERVING);
        http_respond(request, 200, "application/proto", &out);
    }
    http_source_close(source);
}
