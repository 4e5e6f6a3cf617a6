/* SPDX-License-Identifier: Apache-2.0 */
/* The value of an SLI at a time, from the store. Private to src/server. */
#pragma once

#include "server/handler/handler.h"
#include "server/rules/rules.h"

#define SLI_VALUES_MAX 1000 /* of one SLI */

struct sli_value {
    struct labels labels; /* those that the SLI keeps apart, and that are there */
    double value;
};

struct sli_values {
    struct sli_value *list;
    size_t count, capacity;
    uint64_t left_out;             /* for want of room */
    char reason[ERROR_TEXT_BYTES]; /* why there is none, or why some are absent; "": there is none */
};
void sli_values_release(struct sli_values *values);

/* Of the window that ends at a time. A value that can't be determined is absent, with a reason;
 * -EAGAIN and -ECANCELED: try again later. */
int sli_evaluate(struct server *server, const char *tenant, const struct sli_rule *sli,
                 int64_t now_ns, struct sli_values *ret_values, struct error *error);
