/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the spool to the server, in a thread of its own: oldest first, one at a time, each until the
 * server has it. Every batch has an id, so that one that is sent again is not stored again. After
 * an outage the backlog goes out at a bounded rate. Only what the server itself says it will never
 * take is given up: 400 and 422 with HTTP_SERVER_HEADER, or what gRPC has for them. A batch that
 * the server fails on (500), that is too large (413) or that something on the way refuses, again
 * and again, while the next one is taken, lets others go before it, and is tried now and then.
 */
#pragma once

#include <stdint.h>

#include "agent/send/spool.h"
#include "base/error.h"

struct uploader;

enum upload_compression { UPLOAD_ZSTD, UPLOAD_GZIP };
enum upload_protocol { UPLOAD_HTTP, UPLOAD_GRPC }; /* OTLP's two */

struct upload_options {
    const char *url;        /* of the server: "http://127.0.0.1:4040" */
    const char *token_file; /* NULL: none; read again when it has changed */
    const char *ca_file, *certificate_file, *key_file;
    const char *proxy;         /* NULL: no proxy, also if the environment has one */
    unsigned compression;      /* enum upload_compression */
    unsigned protocol;         /* enum upload_protocol */
    double batches_per_second; /* of a backlog; 0: 1, which is ten times what the agent makes */
    unsigned first_retry_ms, longest_retry_ms; /* 0: 1 s and 30 s */
    unsigned timeout_ms;                       /* of a request; 0: 30 s */
};

struct upload_stats {
    uint64_t requests, failures; /* failures among requests */
    uint64_t throttled;          /* of them: 429 and 503 */
    uint64_t refused;            /* of them: batches that will never be taken */
    uint64_t kept;    /* of them: refused for their size, or not by the server; tried again */
    uint64_t skipped; /* times that others went before a batch that the server fails on */
    uint64_t bytes;   /* of bodies that the server took */
    int64_t last_ns;  /* when it took the last, since 1970; 0: never */
    char error[ERROR_TEXT_BYTES]; /* why the last request failed; "": it didn't */
};

/* The spool outlives it; texts are copied. */
int uploader_start(const struct upload_options *options, struct spool *spool,
                   struct uploader **ret_uploader, struct error *error);

/* Lets what is in the spool go off for at most `grace_ms`, then ends. Takes NULL. */
void uploader_stop(struct uploader *uploader, unsigned grace_ms);

struct upload_stats uploader_stats(struct uploader *uploader);

/* How long to wait after this many failures in a row: a random time up to a bound that doubles,
 * after the delay that the server requested (-1: none), which counts up to an hour. */
int64_t upload_wait_ms(const struct upload_options *options, unsigned failures,
                       int64_t retry_after_ms, uint64_t random);
