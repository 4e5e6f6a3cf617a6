/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of agents, control and recordings. Private to src/server. */
#pragma once

#include "server/handler/handler.h"

server_handler agents_report, agents_orders, agents_list; /* agents_api.c */
server_handler control_get, control_post;                 /* control_api.c */
server_handler recordings_start, recordings_list, recordings_one,
    recordings_stop; /* recordings_api.c */
