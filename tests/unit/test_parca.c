// SPDX-License-Identifier: Apache-2.0
// Samples of Parca's agent: both versions of its schema, each compression, what the server asks
// for, and damage. tests/fixtures/parca/make.py has the samples as a table.

#include "base/file.h"
#include "base/memory.h"
#include "format/parca/parca.h"
#include "io/lz4.h"
#include "unit.h"

struct taken {
    struct buffer text; /* a line for each profile, and for each of its rows */
    size_t profiles, rows;
};

static void put_stack(struct buffer *out, const struct profile *profile, uint32_t node)
{
    for (; node; node = profile->nodes[node].parent) {
        const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];
        const struct profile_mapping *mapping = &profile->mappings[frame->mapping];
        const char *name = profile_text(profile, profile->functions[frame->function].name);
        if (frame->function)
            buffer_printf(out, ";%s:%u%s", name, frame->line, frame->inlined ? "*" : "");
        else
            buffer_printf(out, ";%s+%#llx", profile_text(profile, mapping->file),
                          (unsigned long long)frame->address);
        if (frame->kind != FRAME_NATIVE)
            buffer_printf(out, "/%u", frame->kind);
    }
}

static int take(void *context, struct profile *profile, bool total, struct error *error)
{
    struct taken *taken = context;
    const struct profile_samples *samples = &profile->samples;
    (void)error;
    taken->profiles++;
    taken->rows += samples->count;
    buffer_printf(&taken->text, "%s/%s by %s/%s %lld%s at %lld for %lld\n",
                  profile_text(profile, profile->types[0].type),
                  profile_text(profile, profile->types[0].unit),
                  profile_text(profile, profile->period_type.type),
                  profile_text(profile, profile->period_type.unit), (long long)profile->period,
                  total ? " total" : "", (long long)profile->time_ns,
                  (long long)profile->duration_ns);
    for (size_t i = 0; i < samples->count; i++) {
        size_t count;
        const struct profile_label *labels = profile_labels(profile, samples->labels[i], &count);
        buffer_printf(&taken->text, "%lld", (long long)samples->values[0][i]);
        for (size_t k = 0; k < count; k++)
            if (!strcmp(profile_text(profile, labels[k].key), "service_name"))
                buffer_printf(&taken->text, " %s", profile_text(profile, labels[k].text));
        buffer_printf(&taken->text, "(%zu)", count);
        put_stack(&taken->text, profile, samples->node[i]);
        buffer_add_char(&taken->text, '\n');
    }
    return 0;
}

static struct buffer load(const char *name)
{
    char path[512];
    struct buffer content = {0};
    struct error error = {0};
    snprintf(path, sizeof(path), "%s/parca/%s", getenv("FIXTURES"), name);
    if (file_read(path, 1 << 20, &content, &error) < 0)
        fail_msg("%s", error.text);
    return content;
}

static struct parca_input input_of(const struct buffer *samples, const struct buffer *stacks)
{
    return (struct parca_input){.samples = samples->data,
                                .samples_length = samples->length,
                                .stacks = stacks ? stacks->data : NULL,
                                .stacks_length = stacks ? stacks->length : 0,
                                .expansion_limit = 1 << 20,
                                .row_limit = 100};
}

static const char expected[] =
    "samples/count by cpu/nanoseconds 52631578 at 1700000000000000000 for 6000000000\n"
    "1 app(5);/usr/bin/app+0x401136;/usr/bin/app+0x401200\n"
    "1 app(5);/usr/bin/app+0x401136;/usr/bin/app+0x401200\n"
    "1 app(5);/usr/bin/app+0x401200\n"
    "1 script(5);Small.get:5*/3;Large.sum of all elements:9/3;handle:12/4;/usr/bin/app+0x401200\n"
    "1 app(5);vfs_read:0/2;/usr/bin/app+0x401136;/usr/bin/app+0x401200\n"
    "1 batch(3);[truncated]:0/0\n"
    "wallclock/nanoseconds by samples/count 0 at 1700000000000000000 for 6000000000\n"
    "2000000 script(5);Small.get:5*/3;Large.sum of all "
    "elements:9/3;handle:12/4;/usr/bin/app+0x401200\n"
    "inuse_space/bytes by space/bytes 524288 total at 1700000000000000000 for 6000000000\n"
    "4096 app(3);/usr/bin/app+0x401136;/usr/bin/app+0x401200\n";

static void must_read(const struct parca_input *input)
{
    struct taken taken = {0};
    struct error error = {0};
    if (parca_read(input, PROFILE_ALL & ~PROFILE_TIMES, take, &taken, &error) < 0)
        fail_msg("%s", error.text);
    assert_string_equal(buffer_text(&taken.text), expected);
    buffer_release(&taken.text);
}

static void must_fail(const struct parca_input *input, int code, const char *words)
{
    struct taken taken = {0};
    struct error error = {0};
    assert_int_equal(parca_read(input, PROFILE_ALL, take, &taken, &error), code);
    assert_says(&error, words);
    buffer_release(&taken.text);
}

static void second_version(void **state)
{
    (void)state;
    static const char *const names[] = {"v2.arrow", "v2-lz4.arrow", "v2-zstd.arrow"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct buffer samples = load(names[i]), ids = {0};
        struct error error = {0};
        struct parca_input input = input_of(&samples, NULL);
        must_read(&input);
        assert_int_equal(parca_ask(&input, &ids, &error), 0);
        assert_int_equal(ids.length, 0);
        buffer_release(&samples);
    }
}

static void first_version(void **state)
{
    (void)state;
    struct buffer samples = load("v1.arrow"), stacks = load("v1-stacks.arrow"), ids = {0};
    struct parca_input input = input_of(&samples, NULL);
    struct taken taken = {0};
    struct error error = {0};
    assert_int_equal(parca_ask(&input, &ids, &error), 5);
    assert_non_null(memmem(ids.data, ids.length, "workidlescriptkernelaborted", 27));
    /* What is asked for is a stream as ours to read: as stacks it has no frames. */
    struct parca_input asked = input_of(&samples, &ids);
    must_fail(&asked, -EBADMSG, "no stacks");
    input.row_limit = 4;
    assert_int_equal(parca_ask(&input, &ids, &error), -E2BIG);
    assert_says(&error, "more than 4 stacks");
    input.row_limit = 100;
    /* Samples without their stacks are of unknown ones. */
    assert_int_equal(parca_read(&input, PROFILE_ALL & ~PROFILE_TIMES, take, &taken, &error), 0);
    assert_non_null(strstr(buffer_text(&taken.text), "1 app(5);[unknown]:0/0\n"));
    input = input_of(&samples, &stacks);
    must_read(&input);
    buffer_release(&taken.text);
    buffer_release(&samples);
    buffer_release(&stacks);
    buffer_release(&ids);
}

static void limits(void **state)
{
    (void)state;
    struct buffer samples = load("v2-lz4.arrow"), stacks = load("v1-stacks.arrow");
    struct parca_input input = input_of(&samples, NULL);
    input.row_limit = 7;
    must_fail(&input, -E2BIG, "more than 7 samples");
    input.row_limit = 8;
    input.expansion_limit = 100;
    must_fail(&input, -E2BIG, "expands");
    input.expansion_limit = 1 << 20;
    must_read(&input);
    must_fail(&(struct parca_input){.samples = "", .row_limit = 1}, -EBADMSG, "no schema");
    must_fail(&(struct parca_input){.samples = "nonsense", .samples_length = 8}, -EBADMSG,
              "malformed");
    input = input_of(&stacks, NULL);
    must_fail(&input, -EBADMSG, "no columns of values");
    buffer_release(&samples);
    buffer_release(&stacks);
}

/* What both streams expand to counts together. */
static void shared_expansion(void **state)
{
    (void)state;
    struct buffer samples = load("v2-lz4.arrow"), stacks = load("v1-stacks-lz4.arrow");
    struct parca_input alone = input_of(&samples, NULL), both = input_of(&samples, &stacks);
    struct taken taken = {0};
    struct error error = {0};
    /* As much as the samples need, and no more. */
    alone.expansion_limit = 0;
    while (parca_read(&alone, PROFILE_ALL, take, &taken, &error) < 0)
        alone.expansion_limit++;
    both.expansion_limit = alone.expansion_limit;
    must_fail(&both, -E2BIG, "expands");
    both.expansion_limit *= 2;
    must_read(&both);
    buffer_release(&taken.text);
    buffer_release(&samples);
    buffer_release(&stacks);
}

/* Every end, and every bit of the metadata: an answer, or an error that says something. */
static void damage(void **state)
{
    (void)state;
    static const char *const names[] = {"v2.arrow", "v2-lz4.arrow", "v1-stacks.arrow"};
    struct buffer v1 = load("v1.arrow");
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        struct buffer content = load(names[i]);
        for (size_t at = 0; at < 2 * content.length; at++) {
            size_t length = at < content.length ? at : content.length;
            char *copy = malloc(length + 1);
            memcpy(copy, content.data, length);
            if (at >= content.length)
                copy[at - content.length] ^= (char)(1 << at % 8);
            struct buffer changed = {.data = copy, .length = length};
            struct parca_input input = i == 2 ? input_of(&v1, &changed) : input_of(&changed, NULL);
            struct taken taken = {0};
            struct error error = {0};
            int r = parca_read(&input, PROFILE_ALL, take, &taken, &error);
            assert_true(r == 0 || (r < 0 && error.text[0]));
            buffer_release(&taken.text);
            free(copy);
        }
        buffer_release(&content);
    }
    buffer_release(&v1);
}

/* A frame by hand, with a match that overlaps itself. */
static void lz4(void **state)
{
    (void)state;
    static const uint8_t head[] = {0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0xc0};
    static const uint8_t good[] = {7, 0, 0, 0, 0x1f, 'a', 1, 0, 0, 0x10, 'b', 0, 0, 0, 0};
    static const uint8_t far[] = {6, 0, 0, 0, 0x1f, 'a', 2, 0, 0, 0, 0, 0, 0, 0};
    struct buffer frame = {0}, out = {0};
    struct error error = {0};
    buffer_add(&frame, head, sizeof(head));
    buffer_add(&frame, good, sizeof(good));
    const uint8_t *bytes = (const uint8_t *)frame.data;
    assert_int_equal(lz4_decompress(bytes, frame.length, 100, &out, &error), 0);
    assert_buffer(&out, "aaaaaaaaaaaaaaaaaaaab");
    out.length = 0;
    assert_int_equal(lz4_decompress(bytes, frame.length, 20, &out, &error), -E2BIG);
    for (size_t length = 0; length < frame.length; length++) {
        out.length = 0;
        assert_int_equal(lz4_decompress(bytes, length, 100, &out, &error), -EBADMSG);
    }
    frame.length = sizeof(head);
    buffer_add(&frame, far, sizeof(far));
    out.length = 0;
    assert_int_equal(lz4_decompress((const uint8_t *)frame.data, frame.length, 100, &out, &error),
                     -EBADMSG);
    buffer_release(&frame);
    buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_version), cmocka_unit_test(first_version),
        cmocka_unit_test(limits),         cmocka_unit_test(shared_expansion),
        cmocka_unit_test(damage),         cmocka_unit_test(lz4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
