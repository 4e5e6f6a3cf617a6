/* SPDX-License-Identifier: Apache-2.0 */
/* A relabelling rule inside: made by relabel_rule.c, applied by relabel.c. */
#pragma once

#include "io/regex.h"
#include "label/rules/relabel.h"

struct relabel_rule {
    enum relabel_action action;
    char **sources;
    size_t source_count;
    char *separator, *target, *replacement; /* never NULL */
    struct regex *regex;
    uint64_t modulus;
};
