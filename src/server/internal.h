/* SPDX-License-Identifier: Apache-2.0 */
/* A whole running server, for the files directly in src/server only. */
#pragma once

#include <pthread.h>

#include "http/server/server.h"
#include "http/tls.h"
#include "server/admission/admission.h"
#include "server/control/control.h"
#include "server/server.h"

#define SERVER_ROUTES_MAX 192

struct server_process {
    struct server parts; /* first: handlers get its address */
    struct server_options options;
    struct ingest ingest;
    struct admissions admissions;
    struct http_route routes[SERVER_ROUTES_MAX]; /* with the limits that are set */
    struct http_tls *tls;
    int lock_fd; /* of the data directory, where the store is elsewhere; -1: none */
    pthread_t maintainer;
    bool maintains;
    char *problems; /* of the store, those that were logged already */
};

/* ---- routes.c ---- */

/* Fills in the routes, with the limits of the process's options. */
void routes_init(struct server_process *process, struct http_server_options *http);

/* Other limits for the bodies of pushes. */
void routes_set_limits(struct server_process *process, const struct server_options *options);
bool routes_is_push(const struct server_process *process, const struct http_request *request);

/* ---- observe.c ---- */

void observe_access(void *userdata, const struct http_access *access);
void observe_refusal(void *userdata, enum http_refusal reason, const char *peer,
                     const struct http_identity *identity, const struct http_request *request);

/* ---- handlers that look at the whole server ---- */

server_handler api_health, api_ready;                                                /* health.c */
server_handler api_metrics;                                                          /* metrics.c */
server_handler admin_delete, admin_audit, admin_acknowledge, admin_resume_retention; /* admin.c */
