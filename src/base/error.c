// SPDX-License-Identifier: Apache-2.0
// Error sentences: see error.h for the contract.

#include "base/error.h"

#include <stdio.h>
#include <string.h>

int error_set(struct error *error, int code, const char *format, ...)
{
    if (!error)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    error->code = code;
    return code;
}

int error_set_errno(struct error *error, int code, const char *format, ...)
{
    if (!error)
        return code;
    va_list args;
    va_start(args, format);
    int used = vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof(error->text))
        snprintf(error->text + used, sizeof(error->text) - (size_t)used, ": %s.", strerror(-code));
    error->code = code;
    return code;
}

int error_prefix(struct error *error, const char *format, ...)
{
    if (!error)
        return -EIO;
    char old[ERROR_TEXT_BYTES];
    memcpy(old, error->text, sizeof(old));
    va_list args;
    va_start(args, format);
    int used = vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof(error->text))
        snprintf(error->text + used, sizeof(error->text) - (size_t)used, ": %s", old);
    return error->code;
}
