/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting that http_client_cancel() ends. */
#pragma once

struct http_client;

/* 0, or -ECANCELED. */
int client_wait(struct http_client *client, unsigned wait_ms);
