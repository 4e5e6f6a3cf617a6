/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading with one format: define READER_FORMAT (format_x) and READER_FOLDER (its fixtures) before
 * including this.
 */
#pragma once

#include "base/file.h"
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

/* A fixture truncated at every byte, and with every bit flipped: each must be read or refused with
 * a sentence. */
static inline void survives_damage(const char *name)
{
    _cleanup_buffer_ struct buffer content = {0};
    char path[512];
    struct error error = {0};
    snprintf(path, sizeof(path), "%s/" READER_FOLDER "/%s", getenv("FIXTURES"), name);
    assert_int_equal(file_read(path, 1 << 20, &content, &error), 0);
    for (size_t i = 0; i < content.length * 9; i++) {
        struct profile profile;
        size_t flips = content.length * 8;
        if (i < flips)
            content.data[i / 8] ^= (char)(1 << i % 8);
        size_t length = i < flips ? content.length : i - flips;
        error = (struct error){0};
        int r = read_text(&profile, PROFILE_ALL, content.data, length, &error);
        if (r < 0 && (!error.text[0] || error.text[strlen(error.text) - 1] != '.'))
            fail_msg("byte %zu: \"%s\" is not a sentence", i < flips ? i / 8 : length, error.text);
        profile_release(&profile);
        if (i < flips)
            content.data[i / 8] ^= (char)(1 << i % 8);
    }
}

/* Sum of a sample type, by its name. */
static inline int64_t total_of(const struct profile *profile, const char *type)
{
    int64_t sum = 0;
    unsigned index = profile_find_type(profile, type);
    assert_true(index < profile->type_count);
    for (size_t i = 0; i < profile->samples.count; i++)
        sum += profile->samples.values[index][i];
    return sum;
}

/* The values of a type per stack as folded text, one "a;b 3" per row of the profile, for comparing
 * with what a file is known to hold. */
static inline void assert_folded(const struct profile *profile, const char *type,
                                 const char *expected)
{
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    struct write_options options = {.type = (int)profile_find_type(profile, type)};
    assert_int_equal(format_folded.write(&out, profile, &options, &error), 0);
    assert_string_equal(buffer_text(&out), expected);
}
