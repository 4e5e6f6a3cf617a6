/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of redaction, as data: all names, prefixes, words and exceptions are in redact_rules.c,
 * and the detectors (detect_*.c) only know how to read them. tests/fixtures/redact/corpus.tsv has
 * values for them, and values to leave alone. Lists of texts end with NULL, others with zeroes.
 */
#pragma once

#include <stddef.h>

#include "label/redact/detect.h"

/* The name of a detector in settings and metrics, and its replacement text. */
struct redact_detector {
    const char *name, *replacement;
};
extern const struct redact_detector redact_detectors[DETECTORS];

/* A token that its maker begins with something to recognise it by. */
enum redact_charset { CHARS_ALNUM = 1, CHARS_UPPER_DIGIT, CHARS_WORD, CHARS_HEX };
#define FORM_EXACT 1u /* no more characters than that: else it is a word */
#define FORM_DIGIT 2u /* with a digit among them: else it is a word */
struct redact_form {
    const char *prefix;
    size_t least; /* characters behind it, */
    enum redact_charset charset;
    unsigned flags;
};
extern const struct redact_form redact_forms[];

/* Addresses whose rest is the secret: every holder can post there. */
extern const char *const redact_links[];

/* Endings of names of secrets, without separators and case: api_key, API-Key and apiKey are one.
 * Those with a '_' before them are whole words: db_pass, not bypass. */
extern const char *const redact_secret_names[];

/* Parameters of addresses, and cookies, whose long values are secrets; elsewhere the same names say
 * nothing: code=200. */
extern const char *const redact_parameters[];

/* Suffixes of systemd units, which look like e-mail addresses. */
extern const char *const redact_units[];

/* Before four numbers: they are a version; with a '_' before them, whole words only, as server ends
 * in ver. And behind the numbers and a dash. */
extern const char *const redact_version_words[];
extern const char *const redact_version_suffixes[];

/* Labels (globs) that say what they hold, so that a detector leaves them alone. */
struct redact_exception {
    enum detector detector;
    const char *label; /* NULL at the end */
};
extern const struct redact_exception redact_exceptions[];
