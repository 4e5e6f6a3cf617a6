// SPDX-License-Identifier: Apache-2.0
// The fuzzer of selectors. What is accepted, written out and read again is the same selector, and
// matching ends.

#include <string.h>

#include "base/text.h"
#include "label/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static void match(const struct selector *selector)
{
    _cleanup_labels_ struct labels labels = {0};
    selector_matches(selector, &labels);
    for (size_t i = 0; i < selector->count && i < 4; i++) {
        const struct matcher *matcher = &selector->matchers[i];
        require(*matcher->name && utf8_valid(matcher->name, strlen(matcher->name)));
        labels_set(&labels, matcher->name, matcher->value);
        require(matcher->kind != MATCH_EQUAL || matcher_matches(matcher, matcher->value));
    }
    selector_matches(selector, &labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    struct selector selector = {0}, again = {0};
    struct error error = {0};
    if (selector_parse((const char *)data, length, &selector, &error) < 0) {
        require(error.text[0] && !selector.matchers);
        return 0;
    }
    _cleanup_buffer_ struct buffer first = {0};
    _cleanup_buffer_ struct buffer second = {0};
    selector_write(&first, &selector);
    match(&selector);
    /* Escapes make it longer, perhaps too long. */
    if (first.length <= SELECTOR_BYTES_MAX) {
        require(selector_parse(first.data, first.length, &again, &error) == 0);
        selector_write(&second, &again);
        require(first.length == second.length && !memcmp(first.data, second.data, first.length));
    }
    selector_release(&selector);
    selector_release(&again);
    return 0;
}
