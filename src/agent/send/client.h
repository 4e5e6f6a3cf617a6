/* SPDX-License-Identifier: Apache-2.0 */
/* A client for the agent's server, with all that the settings say of how to reach it. */
#pragma once

#include "agent/settings/settings.h"
#include "base/buffer.h"
#include "http/client/client.h"

/* The token is read now. */
int agent_client_new(const struct agent_settings *settings, unsigned timeout_ms,
                     size_t answer_limit_bytes, struct http_client **ret_client,
                     struct error *error);

/* The server's address with a path behind it. */
void agent_url(const struct agent_settings *settings, const char *path, struct buffer *ret_url);
