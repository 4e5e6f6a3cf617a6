/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading with one format: define READER_FORMAT (format_x) and READER_FOLDER (its fixtures) before
 * including this.
 */
#pragma once

#include "format/format.h"
#include "unit.h"

static inline int read_text(struct profile *profile, enum profile_detail detail, const char *text,
                            size_t length, struct error *error)
{
    struct source source;
    /* From a copy of exact size, so that a sanitizer sees a read past its end. */
    char *copy = memory_alloc(length + !length);
    memcpy(copy, text, length);
    profile_init(profile, detail);
    assert_int_equal(source_open_memory(&source, "test", copy, length, 0, error), 0);
    int r = READER_FORMAT.read(&source, profile, error);
    source_release(&source);
    free(copy);
    return r;
}

static inline void must_read(struct profile *profile, enum profile_detail detail, const char *text)
{
    struct error error = {0};
    if (read_text(profile, detail, text, strlen(text), &error) < 0)
        fail_msg("%s", error.text);
}

static inline void must_fail(const char *text, int code, const char *words)
{
    struct profile profile;
    struct error error = {0};
    assert_int_equal(read_text(&profile, PROFILE_ALL, text, strlen(text), &error), code);
    assert_int_equal(error.code, code);
    assert_says(&error, words);
    profile_release(&profile);
}

static inline void read_fixture(struct profile *profile, enum profile_detail detail,
                                const char *name)
{
    char path[512];
    struct error error = {0};
    const struct format *format = NULL;
    snprintf(path, sizeof(path), "%s/" READER_FOLDER "/%s", getenv("FIXTURES"), name);
    profile_init(profile, detail);
    if (format_read_file(path, NULL, profile, &format, &error) < 0)
        fail_msg("%s", error.text);
    assert_ptr_equal(format, &READER_FORMAT);
}
