/* SPDX-License-Identifier: Apache-2.0 */
/* Services that gRPC's own tools use with any server: reflection and health. */
#pragma once

#include "server/handler/handler.h"

server_handler grpc_health_check, grpc_health_watch, grpc_health_unknown; /* health.c */
server_handler grpc_reflection; /* grpc.reflection.v1 and v1alpha: see reflection.c */

/* The answer to one request of reflection; for tests. */
void grpc_reflection_answer(const void *request, size_t length, struct buffer *out);
