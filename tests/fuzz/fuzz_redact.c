// SPDX-License-Identifier: Apache-2.0
// The fuzzer of redaction. The first byte chooses the place; a label's name is up to the first line
// break. Spans go forward and stay within the text.

#include <string.h>

#include "base/text.h"
#include "label/redact/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* What does not hold ends the process, so that the fuzzer keeps the input. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static struct redactor *make(void)
{
    struct redactor *redactor = redactor_new();
    struct error error = {0};
    const struct redact_rule_config rules[] = {
        {.name = "id", .regex = "(user|order)[-/]?\\d+", .replacement = "$1-{id}"},
        {.name = "word", .regex = "\\bx+y*", .labels = (const char *[]){"a*"}, .label_count = 1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        require(redactor_add(redactor, &rules[i], &error) == 0);
    return redactor;
}

static void check_spans(const char *text, size_t length)
{
    struct detect_span span;
    size_t from = 0;
    while (detect_next(text, length, from, UINT32_MAX, &span)) {
        require(span.start >= from && span.end > span.start && span.end <= length);
        require((unsigned)span.detector < DETECTORS);
        from = span.end;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    static struct redactor *redactor;
    if (!redactor)
        redactor = make();
    if (!length)
        return 0;
    enum redact_place place = (enum redact_place)(data[0] % 3);
    const char *text = (const char *)data + 1, *line = memchr(text, '\n', length - 1);
    char label[64] = "x";
    length--;
    if (place == REDACT_LABEL && line && (size_t)(line - text) < sizeof(label)) {
        size_t name = (size_t)(line - text);
        memcpy(label, text, name);
        label[name] = '\0';
        text += name + 1;
        length -= name + 1;
    }
    check_spans(text, length);
    _cleanup_buffer_ struct buffer out = {0};
    bool changed =
        redactor_text(redactor, place, place == REDACT_LABEL ? label : NULL, text, length, &out);
    /* Replacements are whole characters in the place of whole characters. */
    require(!changed || !utf8_valid(text, length) || utf8_valid(buffer_text(&out), out.length));
    return 0;
}
