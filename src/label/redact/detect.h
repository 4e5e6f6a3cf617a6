/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detectors of what should not be in a label: they find spans in a text, from left to right, in
 * time linear in its length. They know forms, not meanings; docs/labels.md says for each what it
 * takes and what it leaves alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum detector {
    DETECT_EMAIL,
    DETECT_TOKEN,       /* JWT, AWS, GitHub and others by their prefix; Bearer and Basic */
    DETECT_CREDENTIALS, /* user:password in a URL */
    DETECT_PRIVATE_KEY, /* PEM */
    DETECT_ASSIGNMENT,  /* password=..., token: ..., in command lines also --password ... */
    DETECT_SECRET,      /* long texts that look random */
    DETECT_CARD,
    DETECT_IP,
    DETECTORS,
};

/* "email", "token", ... for settings and metrics. */
const char *detector_name(enum detector detector);

struct detect_span {
    size_t start, end;
    enum detector detector;
};

/* Beside the bits 1 << detector: words behind options, --password hunter2, are looked at too. */
#define DETECT_OPTIONS (1u << DETECTORS)

/* The next span at or after `from`, which is 0 or the end of the span before. */
bool detect_next(const char *text, size_t length, size_t from, unsigned detectors,
                 struct detect_span *ret_span);

/* Does a name say that its value is a secret: "db_password", "api-key"? */
bool detect_secret_name(const char *name, size_t length);
