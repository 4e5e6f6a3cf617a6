/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of Pyroscope's APIs. */
#pragma once

#include "server/handler/handler.h"

server_handler querier_call, querier_unknown, querier_no_settings, querier_version,
    querier_no_features;                                 /* querier.c */
server_handler adhoc_call;                               /* adhoc_api.c */
server_handler render, render_diff, render_label_values; /* render.c */
server_handler symbols_call;                             /* symbols_pyroscope.c */

#define ADHOC_BODY_MAX (16u << 20)
