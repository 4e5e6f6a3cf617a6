/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a request: which an address takes, and their values. Private to src/server. */
#pragma once

#include "base/error.h"
#include "http/server/request.h"

/* For parameters.c: what table_query_read() reads. */
#define TABLE_PARAMETERS                                                                           \
    " rows search regex offset limit sort order focus hide fold only recursion above below"

/* The parameters of an address of the API, separated by blanks; NULL: it takes any. `pattern` is
 * that of the table of routes. */
const char *parameters_of(const char *method, const char *pattern);

/* Answers 400 and returns false when the request has a parameter that its address doesn't know. */
bool parameters_known(struct http_request *request, const char *pattern);

/* A parameter as a number within bounds; `value` is untouched when it isn't there. */
int parameter_number(struct http_request *request, const char *name, uint64_t least, uint64_t most,
                     uint64_t *value, struct error *error);

/* A parameter that is one of some words, NULL after the last; its index, `otherwise` when it isn't
 * there. */
int parameter_word(struct http_request *request, const char *name, const char *const *words,
                   unsigned otherwise, unsigned *ret_index, struct error *error);
