/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error codes of an RPC (Connect's and gRPC's names), the HTTP status that each is sent as, and the
 * errno-style code of a `struct error` that each stands for.
 */
#pragma once

/* In every answer of a server of ours, so that clients can tell it from a proxy's. */
#define HTTP_SERVER_HEADER "X-Assay-Server"

enum http_code {
    HTTP_CANCELED,
    HTTP_UNKNOWN,
    HTTP_INVALID_ARGUMENT,
    HTTP_DEADLINE_EXCEEDED,
    HTTP_NOT_FOUND,
    HTTP_ALREADY_EXISTS,
    HTTP_PERMISSION_DENIED,
    HTTP_RESOURCE_EXHAUSTED,
    HTTP_FAILED_PRECONDITION,
    HTTP_ABORTED,
    HTTP_OUT_OF_RANGE,
    HTTP_UNIMPLEMENTED,
    HTTP_INTERNAL,
    HTTP_UNAVAILABLE,
    HTTP_DATA_LOSS,
    HTTP_UNAUTHENTICATED,
};

/* "invalid_argument" */
const char *http_code_name(enum http_code code);

/* 400 */
unsigned http_code_status(enum http_code code);

/* The code that names a status best: 413 is resource_exhausted, 415 invalid_argument. */
enum http_code http_status_code(unsigned status);

/* Status of an error code: -EBADMSG and -EINVAL are 400, -E2BIG 413, -ENOTSUP 415, -ENOENT 404,
 * -EACCES 403, -EAGAIN and -ENOSPC 503, -ETIME 408, -ECANCELED 499, the rest 500. */
unsigned http_status_of_error(int error_code);
