// SPDX-License-Identifier: Apache-2.0
// Names and numbers of error codes: see status.h.

#include "http/status.h"

#include <errno.h>

#include "base/memory.h"

static const struct {
    const char *name;
    unsigned status;
} codes[] = {
    [HTTP_CANCELED] = {"canceled", 499},
    [HTTP_UNKNOWN] = {"unknown", 500},
    [HTTP_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [HTTP_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
    [HTTP_NOT_FOUND] = {"not_found", 404},
    [HTTP_ALREADY_EXISTS] = {"already_exists", 409},
    [HTTP_PERMISSION_DENIED] = {"permission_denied", 403},
    [HTTP_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [HTTP_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [HTTP_ABORTED] = {"aborted", 409},
    [HTTP_OUT_OF_RANGE] = {"out_of_range", 400},
    [HTTP_UNIMPLEMENTED] = {"unimplemented", 501},
    [HTTP_INTERNAL] = {"internal", 500},
    [HTTP_UNAVAILABLE] = {"unavailable", 503},
    [HTTP_DATA_LOSS] = {"data_loss", 500},
    [HTTP_UNAUTHENTICATED] = {"unauthenticated", 401},
};

const char *http_code_name(enum http_code code)
{
    return codes[code].name;
}

unsigned http_code_status(enum http_code code)
{
    return codes[code].status;
}

enum http_code http_status_code(unsigned status)
{
    switch (status) {
    case 401:
        return HTTP_UNAUTHENTICATED;
    case 403:
        return HTTP_PERMISSION_DENIED;
    case 404:
    case 410:
        return HTTP_NOT_FOUND;
    case 405:
    case 501:
        return HTTP_UNIMPLEMENTED;
    case 408:
    case 504:
        return HTTP_DEADLINE_EXCEEDED;
    case 409:
        return HTTP_ABORTED;
    case 412:
        return HTTP_FAILED_PRECONDITION;
    case 413:
    case 429:
        return HTTP_RESOURCE_EXHAUSTED;
    case 499:
        return HTTP_CANCELED;
    case 502:
    case 503:
        return HTTP_UNAVAILABLE;
    default:
        return status < 500 ? HTTP_INVALID_ARGUMENT : HTTP_INTERNAL;
    }
}

unsigned http_status_of_error(int error_code)
{
    static const struct {
        int error;
        unsigned status;
    } table[] = {
        {-EBADMSG, 400},   {-EINVAL, 400},    {-EDOM, 400},       {-ERANGE, 400},    {-E2BIG, 413},
        {-ENOTSUP, 415},   {-ENOENT, 404},    {-EACCES, 403},     {-EPERM, 403},     {-EAGAIN, 503},
        {-ENOSPC, 503},    {-EDQUOT, 503},    {-EROFS, 503},      {-ESHUTDOWN, 503}, {-ETIME, 408},
        {-ETIMEDOUT, 408}, {-ECANCELED, 499}, {-ECONNRESET, 499}, {-ENOSYS, 501},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(table); i++)
        if (table[i].error == error_code)
            return table[i].status;
    return 500;
}
