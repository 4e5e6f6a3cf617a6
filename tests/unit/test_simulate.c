// SPDX-License-Identifier: Apache-2.0
// The made-up fleet: the same for the same seed, and what it says of itself is what is in its
// uploads.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"
#include "simulate/fleet.h"

#define SECOND 1000000000ll

static const struct fleet_options plain = {.seed = 7,
                                           .agents = 5,
                                           .services = 8,
                                           .services_per_agent = 3,
                                           .rows = 60,
                                           .stacks = 300,
                                           .known = 0.9,
                                           .start_ns = 1794700800 * SECOND,
                                           .interval_ns = 10 * SECOND,
                                           .format = FLEET_OTLP};

static struct fleet_upload upload_of(const struct fleet_options *options, uint32_t agent,
                                     uint32_t round, uint32_t part)
{
    struct fleet fleet;
    struct fleet_upload upload;
    fleet_init(&fleet, options);
    fleet_upload_make(&fleet, agent, round, part, &upload);
    fleet_release(&fleet);
    return upload;
}

static bool same(const struct fleet_upload *a, const struct fleet_upload *b)
{
    return a->body.length == b->body.length &&
           !memcmp(a->body.data, b->body.data, a->body.length) && !strcmp(a->target, b->target) &&
           !strcmp(a->batch_id, b->batch_id);
}

static void read_upload(const struct fleet_upload *upload, struct profile *profile)
{
    struct error error = {0};
    profile_init(profile, PROFILE_ALL);
    assert_int_equal(format_read_memory("upload", upload->body.data, upload->body.length, NULL,
                                        profile, NULL, &error),
                     0);
}

static void same_seed_same_bytes(void **state)
{
    (void)state;
    for (int format = FLEET_OTLP; format <= FLEET_PPROF; format++) {
        struct fleet_options options = plain;
        options.format = (enum fleet_format)format;
        struct fleet fleet;
        fleet_init(&fleet, &options);
        /* In any order, from any fleet. */
        for (uint32_t agent = options.agents; agent-- > 0;) {
            struct fleet_upload one, other = upload_of(&options, agent, 3, 0);
            fleet_upload_make(&fleet, agent, 3, 0, &one);
            assert_true(same(&one, &other));
            fleet_upload_release(&one);
            fleet_upload_release(&other);
        }
        struct fleet_upload base = upload_of(&options, 1, 3, 0);
        struct fleet_upload round = upload_of(&options, 1, 4, 0);
        options.seed++;
        struct fleet_upload seed = upload_of(&options, 1, 3, 0);
        assert_false(same(&base, &round));
        assert_false(same(&base, &seed));
        assert_string_not_equal(base.batch_id, round.batch_id);
        assert_string_not_equal(base.batch_id, seed.batch_id);
        fleet_upload_release(&base);
        fleet_upload_release(&round);
        fleet_upload_release(&seed);
        fleet_release(&fleet);
    }
}

static void sums_are_what_is_sent(void **state)
{
    (void)state;
    for (int format = FLEET_OTLP; format <= FLEET_PPROF; format++)
        for (int coding = FLEET_GZIP; coding <= FLEET_PLAIN; coding++)
            for (uint32_t round = 0; round < 3; round++) {
                struct fleet_options options = plain;
                options.format = (enum fleet_format)format;
                options.coding = (enum fleet_coding)coding;
                struct fleet_upload upload =
                    upload_of(&options, round, round == 2 ? FLEET_PRIME : round, 0);
                struct profile profile;
                read_upload(&upload, &profile);
                int64_t sent = 0, read = 0;
                for (uint32_t i = 0; i < upload.sum_count; i++)
                    sent += upload.sums[i].value;
                for (size_t i = 0; i < profile.samples.count; i++)
                    read += profile.samples.values[0][i];
                assert_int_equal(sent, read);
                assert_int_equal(upload.rows, profile.samples.count);
                assert_int_equal(profile.duration_ns, options.interval_ns);
                assert_true(sent > 0);
                profile_release(&profile);
                fleet_upload_release(&upload);
            }
}

/* Rows whose stack no primer has. */
static size_t unknown_rows(const struct fleet_options *options, size_t *ret_rows)
{
    struct profile known, both;
    struct fleet_upload prime = upload_of(options, 0, FLEET_PRIME, 0);
    struct fleet_upload upload = upload_of(options, 0, 5, 0);
    read_upload(&prime, &known);
    read_upload(&upload, &both);
    *ret_rows = both.samples.count;
    struct error error = {0};
    size_t before = known.samples.count;
    assert_int_equal(profile_merge(&known, &both, &error), 0);
    size_t added = known.samples.count - before;
    profile_release(&known);
    profile_release(&both);
    fleet_upload_release(&prime);
    fleet_upload_release(&upload);
    return added;
}

static void known_stacks_are_primed(void **state)
{
    (void)state;
    struct fleet_options options = plain;
    size_t rows;
    options.format = FLEET_PPROF;
    options.known = 1;
    assert_int_equal(unknown_rows(&options, &rows), 0);
    assert_true(rows > 50);
    options.known = 0;
    assert_int_equal(unknown_rows(&options, &rows), rows);
    assert_true(rows > 50);
    options.known = 0.5;
    size_t unknown = unknown_rows(&options, &rows);
    assert_true(unknown > rows / 5 && unknown < rows * 4 / 5);
}

static int64_t value_of_function(const struct fleet_upload *upload, const char *name)
{
    struct profile profile;
    read_upload(upload, &profile);
    int64_t sum = 0;
    for (size_t i = 0; i < profile.samples.count; i++) {
        uint32_t frame = profile.nodes[profile.samples.node[i]].frame;
        uint32_t function = profile.frames[frame].function;
        if (!strcmp(profile_text(&profile, profile.functions[function].name), name))
            sum += profile.samples.values[0][i];
    }
    profile_release(&profile);
    return sum;
}

static void a_deployment_makes_it_slower(void **state)
{
    (void)state;
    struct fleet_options options = plain;
    options.format = FLEET_PPROF;
    options.rows = 250;
    options.known = 1;
    struct fleet_upload before = upload_of(&options, 0, 5, 0);
    options.deploy = 5;
    options.regression = 0.5;
    struct fleet_upload after = upload_of(&options, 0, 5, 0);
    struct fleet fleet;
    fleet_init(&fleet, &options);
    int64_t old = value_of_function(&before, fleet_slow_function(&fleet));
    assert_true(old > 0);
    assert_int_equal(value_of_function(&after, fleet_slow_function(&fleet)), old + old / 2);
    assert_null(strstr(before.target, "version=1.0.1"));
    assert_non_null(strstr(after.target, "version=1.0.1"));
    fleet_release(&fleet);
    fleet_upload_release(&before);
    fleet_upload_release(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_same_bytes),
        cmocka_unit_test(sums_are_what_is_sent),
        cmocka_unit_test(known_stacks_are_primed),
        cmocka_unit_test(a_deployment_makes_it_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
