/* SPDX-License-Identifier: Apache-2.0 */
/* What CPU time costs, and what a faster function would save: docs/cost.md. Private to
 * src/server. */
#pragma once

#include "server/handler/handler.h"

server_handler cost_list, cost_whatif;
