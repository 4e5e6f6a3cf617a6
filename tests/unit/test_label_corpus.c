// SPDX-License-Identifier: Apache-2.0
// Redaction over a few hundred values as they are met in labels, commands and names: how many
// secrets it misses, and how many other values it takes for one. tests/fixtures/redact/corpus.tsv
// has them; what is secret in a value is made up here, so that no file has anything that looks like
// a key.

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "label/redact/redact.h"
#include "unit.h"

#define ROUNDS 5 /* of each secret, with other characters */
#define PIECES_MAX 16
#define FIXTURE_BYTES_MAX (1u << 20)

static uint32_t random_state;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % limit;
}

static const char *pick(const char *const *list, size_t count)
{
    return list[random_below((unsigned)count)];
}

static void add_random(struct buffer *out, const char *alphabet, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_add_char(out, alphabet[random_below((unsigned)strlen(alphabet))]);
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static const char *alphabet_of(char kind)
{
    switch (kind) {
    case 'x':
        return DIGITS "abcdef";
    case 'a':
        return DIGITS LOWER;
    case 'U':
        return DIGITS UPPER;
    case 'd':
        return DIGITS;
    case 'b':
        return DIGITS LOWER UPPER "+/";
    case 'w':
        return DIGITS LOWER UPPER "-_";
    default:
        return DIGITS LOWER UPPER;
    }
}

static void add_card(struct buffer *out)
{
    char digits[17] = "4";
    unsigned sum = 0;
    for (int i = 1; i < 15; i++)
        digits[i] = (char)('0' + random_below(10));
    for (int i = 0; i < 15; i++) {
        unsigned digit = (unsigned)(digits[14 - i] - '0');
        digit = i % 2 ? digit : digit * 2 > 9 ? digit * 2 - 9 : digit * 2;
        sum += digit;
    }
    digits[15] = (char)('0' + (10 - sum % 10) % 10);
    buffer_add_text(out, digits);
}

static void add_address(struct buffer *out, bool six)
{
    if (six)
        buffer_printf(out, "2001:db8:%x:%x::%x", random_below(65536), random_below(65536),
                      1 + random_below(65535));
    else
        buffer_printf(out, "%u.%u.%u.%u", 128 + random_below(90), random_below(256),
                      random_below(256), 20 + random_below(230));
}

/* What stands for {spec}. */
static void add_generated(struct buffer *out, const char *spec)
{
    static const char *const firsts[] = {"jane", "j.doe", "maria", "li.wei", "o_brien", "anna-k"};
    static const char *const words[] = {"Tr0ub4dor", "hunter", "s3cr3t!", "Winter2026", "P@ssw0rd"};
    if (!strcmp(spec, "name")) {
        buffer_printf(out, "%s%u", pick(firsts, ARRAY_LENGTH(firsts)), 100 + random_below(900));
    } else if (!strcmp(spec, "pw")) {
        buffer_printf(out, "%s%u", pick(words, ARRAY_LENGTH(words)), 100 + random_below(900));
    } else if (!strcmp(spec, "card")) {
        add_card(out);
    } else if (!strncmp(spec, "ip", 2)) {
        add_address(out, spec[2] == '6');
    } else if (!strcmp(spec, "uuid")) {
        static const int parts[] = {8, 4, 4, 4, 12};
        for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
            buffer_add_text(out, i ? "-" : "");
            add_random(out, alphabet_of('x'), (size_t)parts[i]);
        }
    } else {
        add_random(out, alphabet_of(spec[0]), strtoul(spec + 1, NULL, 10));
    }
}

/* A value, and where in it the secret pieces are. */
struct value {
    struct buffer text;
    struct {
        size_t start, length;
    } pieces[PIECES_MAX];
    size_t piece_count;
};

static bool is_spec(const char *at, size_t *ret_length)
{
    static const char *const words[] = {"name}", "pw}", "card}", "ip4}", "ip6}", "uuid}"};
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (!strncmp(at, words[i], strlen(words[i]))) {
            *ret_length = strlen(words[i]) - 1;
            return true;
        }
    size_t length = 1 + strspn(at + 1, DIGITS);
    *ret_length = length;
    return strchr("xaAUdbw", *at) && *at && length > 1 && at[length] == '}';
}

static void expand(struct value *value, const char *pattern)
{
    value->text.length = value->piece_count = 0;
    for (const char *at = pattern; *at; at++) {
        char spec[16] = "";
        size_t length;
        if (*at == '{' && is_spec(at + 1, &length)) {
            size_t start = value->text.length;
            snprintf(spec, sizeof(spec), "%.*s", (int)length, at + 1);
            add_generated(&value->text, spec);
            assert_true(value->piece_count < PIECES_MAX);
            value->pieces[value->piece_count].start = start;
            value->pieces[value->piece_count++].length = value->text.length - start;
            at += length + 1;
        } else if (at[0] == '\\' && at[1] == 'n') {
            buffer_add_char(&value->text, '\n');
            at++;
        } else if (*at != '|') {
            buffer_add_char(&value->text, *at);
        }
    }
}

/* Is a piece still there? Short ones, and what is only the account of a token, don't count. */
static bool is_missed(const struct value *value, const char *result)
{
    for (size_t i = 0; i < value->piece_count; i++) {
        char piece[256];
        snprintf(piece, sizeof(piece), "%.*s", (int)value->pieces[i].length,
                 value->text.data + value->pieces[i].start);
        if (value->pieces[i].length >= 5 && strstr(result, piece))
            return true;
    }
    return false;
}

struct tally {
    unsigned secrets, missed, random, random_missed, plain, mistaken;
};

static void try_value(struct redactor *redactor, enum redact_place place, const char *kind,
                      const char *label, const struct value *value, struct tally *tally)
{
    _cleanup_buffer_ struct buffer out = {0};
    const char *text = value->text.data;
    bool changed =
        redactor_text(redactor, place, *label ? label : NULL, text, value->text.length, &out);
    bool secret = !strcmp(kind, "secret"), random = secret && !strcmp(label, "random");
    bool missed = secret && is_missed(value, changed ? buffer_text(&out) : text);
    tally->secrets += secret && !random;
    tally->missed += missed && !random;
    tally->random += random;
    tally->random_missed += missed && random;
    tally->plain += !secret;
    tally->mistaken += !secret && changed;
    if ((missed && !random) || (!secret && changed))
        print_message("# %s: %s=%s became %s\n", secret ? "missed" : "mistaken", label, text,
                      changed ? buffer_text(&out) : "the same");
}

static void try_line(struct redactor *redactor, char *line, struct tally *tally)
{
    static const char *const places[] = {[REDACT_LABEL] = "label", "name", "command"};
    char *fields[4] = {line};
    struct value value = {0};
    size_t place = 0;
    for (int i = 1; i < 4; i++) {
        char *tab = strchr(fields[i - 1], '\t');
        assert_non_null(tab);
        *tab = '\0';
        fields[i] = tab + 1;
    }
    while (place < ARRAY_LENGTH(places) && strcmp(places[place], fields[1]))
        place++;
    assert_true(place < ARRAY_LENGTH(places));
    int rounds = strcmp(fields[0], "secret") ? 1 : ROUNDS;
    for (int i = 0; i < rounds; i++) {
        expand(&value, fields[3]);
        buffer_text(&value.text);
        try_value(redactor, (enum redact_place)place, fields[0], fields[2], &value, tally);
    }
    buffer_release(&value.text);
}

static void finds_secrets_and_nothing_else(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer path = {0}, corpus = {0};
    struct error error = {0};
    struct tally tally = {0};
    struct redactor *redactor = redactor_new();
    buffer_printf(&path, "%s/redact/corpus.tsv", getenv("FIXTURES"));
    assert_int_equal(file_read(buffer_text(&path), FIXTURE_BYTES_MAX, &corpus, &error), 0);
    random_state = 1;
    buffer_text(&corpus);
    for (char *line = corpus.data, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        if (*line != '#')
            try_line(redactor, line, &tally);
    }
    redactor_free(redactor);
    print_message("# redaction: %u of %u secrets missed, %u of %u random texts missed, %u of %u "
                  "other values mistaken for one\n",
                  tally.missed, tally.secrets, tally.random_missed, tally.random, tally.mistaken,
                  tally.plain);
    assert_true(tally.secrets > 500 && tally.plain > 200);
    assert_int_equal(tally.missed, 0);
    assert_int_equal(tally.mistaken, 0);
    assert_true(tally.random_missed * 10 <= tally.random); /* there is nothing to know them by */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_secrets_and_nothing_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
