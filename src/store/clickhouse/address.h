/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clickhouse://[USER@]HOST[:PORT][,HOST[:PORT]...]/DATABASE[?NAME=VALUE&...]. The first host that
 * answers is used until it doesn't. Settings: password_file=FILE (read when the store is opened),
 * tls=1 (then ports are 8443 unless given), ca=FILE, memory=BYTES (of one query on the server),
 * timeout=SECONDS; cluster=NAME (then all hosts of the cluster are named), quorum=N; and for
 * `assay store init` policy=NAME, cold_days=N with cold_volume=NAME.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CLICKHOUSE_HOSTS_MAX 64

struct clickhouse_address {
    char *hosts[CLICKHOUSE_HOSTS_MAX]; /* "host:port" */
    size_t host_count;
    char *user, *database; /* "default" and "assay" unless given */
    char *password;        /* NULL: none */
    char *ca_file;         /* NULL: the system's authorities */
    bool tls;
    uint64_t memory_bytes; /* of one query on the server; 0: the server's default */
    unsigned timeout_s;    /* of one request; 0: 60 */
    char *cluster;         /* NULL: one host has all data */
    unsigned quorum;       /* replicas that have an insert before it succeeds; 0: all */
    char *policy;          /* storage policy of samples; NULL: the server's */
    unsigned cold_days;    /* when samples move to the volume; 0: never */
    char *cold_volume;
};

/* `rest` is what follows "clickhouse:". */
int clickhouse_address_parse(const char *rest, struct clickhouse_address *ret_address,
                             struct error *error);
void clickhouse_address_release(struct clickhouse_address *address);
