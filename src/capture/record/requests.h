/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that programs count with libassay: a table in the program's memory, which its process
 * context tells of, with the name of each route and how many requests it had, failed ones, and the
 * time that they took. It is read once a second; what was counted since the last look becomes rows
 * of requests/count, failed_requests/count and request_duration/nanoseconds, with the labels
 * http.route and http.request.method. What was counted before a process was met doesn't count.
 */
#pragma once

#include "runtime/memory.h"

struct recorder;

#define REQUESTS_LOOK_NS 1000000000ll

/* Of all processes that publish such a table. */
void requests_look(struct recorder *recorder, struct runtime_reader *reader, int64_t now_ns);
