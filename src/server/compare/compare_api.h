/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of comparisons: verdicts, replicates for gates elsewhere, baselines. */
#pragma once

#include "server/handler/handler.h"

server_handler compare_verdicts, compare_replicates; /* compare_api.c */
/* baselines_api.c */
server_handler baselines_list, baselines_save_one, baselines_get, baselines_delete_one;
