/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers of agents, control and recordings share. Private to src/server. */
#pragma once

#include "format/json.h"
#include "server/control.h"
#include "server/server.h"

/* The body as JSON: `read` takes its members. Answers and returns false when it is none. A page
 * elsewhere can make a browser post to us, but not with this type, so it has to be there. */
bool control_read_body(struct http_request *request, const char *pattern,
                       int (*read)(struct json *json, void *context), void *context);

/* A text that fits, for one of the fields of a body. */
int control_read_text(struct json *json, char *to, size_t room);

/* Answers a failure of control or recordings. */
void control_respond_failure(struct http_request *request, const struct error *error);

/* Who asks, as it is written into rules and recordings. */
const char *control_actor(struct http_request *request);
