// SPDX-License-Identifier: Apache-2.0
// The watch over simulated services: what deploys become, and which of them yield findings.

#include "server/watch/watch.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "sample_profile.h"
#include "server/admission/admission.h"
#include "server/compare/compared.h"
#include "store/store.h"
#include "unit.h"

#define SECOND 1000000000ll
#define MINUTE (60 * SECOND)
#define START (1700000000 * SECOND / 86400 / SECOND * 86400 * SECOND + 12 * 60 * MINUTE)
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define WINDOW_S 10

struct fixture {
    struct server server;
    struct admissions admissions;
    struct comparisons comparisons;
    struct watch *watch;
    uint64_t random;
};

static void fixture_open(struct fixture *fixture, const char *directory, uint64_t seed)
{
    static const struct store_class keep = {.name = "default"};
    static const struct watch_options options = WATCH_OPTIONS_DEFAULT;
    struct store_options store = {.classes = &keep, .class_count = 1};
    struct error error = {0};
    *fixture = (struct fixture){.random = seed};
    admissions_init(&fixture->admissions, 64u << 20);
    atomic_store(&fixture->admissions.query_memory_bytes, 8u << 20);
    fixture->server.admissions = &fixture->admissions;
    fixture->server.comparisons = &fixture->comparisons;
    assert_int_equal(store_open_memory(&store, &fixture->server.store, &error), 0);
    if (watch_open(&fixture->server, &options, directory, &fixture->watch, &error) < 0)
        fail_msg("%s", error.text);
}

static void fixture_close(struct fixture *fixture)
{
    watch_close(fixture->watch);
    store_close(fixture->server.store);
    admissions_release(&fixture->admissions);
}

static uint64_t draw(struct fixture *fixture)
{
    fixture->random = fixture->random * 6364136223846793005ull + 1442695040888963407ull;
    return fixture->random >> 33;
}

/* About Poisson-distributed: so many samples of 1 in 64. */
static int64_t samples(struct fixture *fixture, double mean)
{
    int64_t count = 0;
    for (int i = 0; i < 64; i++)
        count += (double)(draw(fixture) % 1000000) < mean / 64 * 1e6;
    return count;
}

/* 1, more or less by up to a part. */
static double jitter(struct fixture *fixture, double part)
{
    return 1 + part * ((double)(draw(fixture) % 2001) / 1000 - 1);
}

/* main -> handler h (of 6) -> leaf (of 4 each): as samples of 10 ms. */
#define HANDLERS 6
#define LEAVES 4

struct load {
    double traffic;   /* times the usual */
    int slow_handler; /* -1: none */
    int slow_leaf;    /* of it; -1: all of them, so the handler is the cause */
    double slower;    /* its time by this */
};

static double weight(const struct load *load, int handler, int leaf)
{
    bool slow = handler == load->slow_handler && (load->slow_leaf < 0 || leaf == load->slow_leaf);
    return load->traffic * (2 + handler + leaf) * (slow ? load->slower : 1);
}

static uint32_t function_frame(struct profile *profile, const char *format, int a, int b)
{
    char name[32];
    snprintf(name, sizeof(name), format, a, b); /* which may use none or one of them */
    uint32_t function = profile_function(
        profile, &(struct profile_function){.name = profile_cstring(profile, name)});
    return profile_frame(profile, &(struct profile_frame){.function = function});
}

static void write_window(struct fixture *fixture, const char *service, const char *version,
                         int64_t time_ns, const struct load *load)
{
    _cleanup_profile_ struct profile profile;
    struct labels labels = {0};
    struct store_row rows[HANDLERS * LEAVES];
    size_t count = 0;
    profile_init(&profile, PROFILE_ALL);
    /* Traffic varies from window to window, and so does what it asks for. */
    double traffic = jitter(fixture, 0.2);
    for (int handler = 0; handler < HANDLERS; handler++) {
        double mix = traffic * jitter(fixture, 0.15);
        for (int leaf = 0; leaf < LEAVES; leaf++) {
            uint32_t frames[] = {function_frame(&profile, "main", 0, 0),
                                 function_frame(&profile, "handler_%d", handler, 0),
                                 function_frame(&profile, "leaf_%d_%d", handler, leaf)};
            rows[count++] =
                (struct store_row){profile_stack(&profile, frames, 3),
                                   samples(fixture, mix * weight(load, handler, leaf)) * 10000000};
        }
    }
    labels_set(&labels, "service_name", service);
    labels_set(&labels, "version", version);
    struct store_profile written = {.labels = &labels,
                                    .type = CPU,
                                    .time_ns = time_ns,
                                    .duration_ns = WINDOW_S * SECOND,
                                    .profile = &profile,
                                    .rows = rows,
                                    .row_count = count};
    struct store_batch batch = {.tenant = "t", .profiles = &written, .count = 1};
    struct error error = {0};
    assert_int_equal(store_write(fixture->server.store, &batch, &error), 0);
    labels_release(&labels);
}

static void write_minutes(struct fixture *fixture, const char *service, const char *version,
                          int from, int to, const struct load *load)
{
    for (int64_t at = from * MINUTE; at < to * MINUTE; at += WINDOW_S * SECOND)
        write_window(fixture, service, version, START + at, load);
}

static const struct load usual = {.traffic = 1, .slow_handler = -1};

/* As the thread does it, once a minute. */
static void watch_minutes(struct fixture *fixture, int from, int to)
{
    for (int minute = from; minute <= to; minute++)
        watch_round(fixture->watch, START + minute * MINUTE);
}

static const struct watch_tenant *tenant_of(const struct fixture *fixture)
{
    return watch_book_tenant(&fixture->watch->book, "t");
}

static size_t open_count(const struct fixture *fixture)
{
    const struct watch_tenant *tenant = tenant_of(fixture);
    size_t count = 0;
    for (size_t i = 0; i < tenant->finding_count; i++)
        count += !tenant->findings[i].closed;
    return count;
}

static void say_findings(const struct fixture *fixture)
{
    const struct watch_tenant *tenant = tenant_of(fixture);
    for (size_t i = 0; i < tenant->finding_count; i++)
        print_message("%s %s: %s by %g, %s\n", tenant->findings[i].service,
                      tenant->findings[i].version, tenant->findings[i].function,
                      tenant->findings[i].growth, watch_close_names[tenant->findings[i].closed]);
}

/* Nine services, all of which are deployed; one function of one of them becomes 20% slower. */
static void one_slow_function_is_one_finding(void **state)
{
    (void)state;
    struct fixture fixture;
    static const struct load slow = {
        .traffic = 1, .slow_handler = 5, .slow_leaf = 3, .slower = 1.2};
    char service[16];
    fixture_open(&fixture, NULL, 1);
    for (int i = 0; i < 9; i++) {
        snprintf(service, sizeof(service), "service%d", i);
        write_minutes(&fixture, service, "1", -60, 0, &usual);
        write_minutes(&fixture, service, "2", 0, 85, i == 4 ? &slow : &usual);
    }
    watch_minutes(&fixture, 0, 82);
    const struct watch_tenant *tenant = tenant_of(&fixture);
    assert_int_equal(tenant->mark_count, 9);
    assert_int_equal(tenant->marks[4].time_ns, START);
    assert_string_equal(tenant->marks[4].by, "");
    say_findings(&fixture);
    assert_int_equal(open_count(&fixture), 1);
    assert_int_equal(tenant->finding_count, 1);
    const struct watch_finding *finding = &tenant->findings[0];
    assert_string_equal(finding->service, "service4");
    assert_string_equal(finding->version, "2");
    assert_string_equal(finding->base_version, "1");
    assert_string_equal(finding->type, CPU);
    assert_string_equal(finding->function, "leaf_5_3");
    /* The share of what is 20% slower and 10/156 of all grows by a little less. */
    assert_true(finding->growth_low < 0.185 && finding->growth_high > 0.185);
    assert_int_equal(atomic_load(&fixture.watch->stats.looks), 9 * WATCH_LOOKS);
    assert_int_equal(atomic_load(&fixture.watch->stats.failed), 0);
    assert_int_equal(budget_stats(&fixture.admissions.memory).used_bytes, 0);
    fixture_close(&fixture);
}

/* The handler does more of everything: its leaves are no findings of their own. */
static void a_subtree_is_one_finding(void **state)
{
    (void)state;
    struct fixture fixture;
    static const struct load slow = {
        .traffic = 1.3, .slow_handler = 2, .slow_leaf = -1, .slower = 1.5};
    fixture_open(&fixture, NULL, 2);
    write_minutes(&fixture, "shop", "1", -60, 0, &usual);
    write_minutes(&fixture, "shop", "2", 0, 85, &slow);
    watch_minutes(&fixture, 0, 82);
    say_findings(&fixture);
    assert_int_equal(tenant_of(&fixture)->finding_count, 1);
    assert_string_equal(tenant_of(&fixture)->findings[0].function, "handler_2");
    fixture_close(&fixture);
}

/* More traffic, and a function that vanishes, make nothing slower. */
static void other_changes_are_no_findings(void **state)
{
    (void)state;
    struct fixture fixture;
    static const struct load busy = {.traffic = 1.5, .slow_handler = -1};
    static const struct load faster = {
        .traffic = 1, .slow_handler = 5, .slow_leaf = -1, .slower = 0.1};
    fixture_open(&fixture, NULL, 3);
    write_minutes(&fixture, "busy", "1", -60, 0, &usual);
    write_minutes(&fixture, "busy", "2", 0, 45, &busy);
    write_minutes(&fixture, "faster", "1", -60, 0, &usual);
    write_minutes(&fixture, "faster", "2", 0, 45, &faster);
    write_minutes(&fixture, "alone", "1", -60, 45, &usual);
    watch_minutes(&fixture, 0, 42);
    say_findings(&fixture);
    assert_int_equal(tenant_of(&fixture)->mark_count, 2);
    assert_int_equal(tenant_of(&fixture)->finding_count, 0);
    fixture_close(&fixture);
}

/* A finding outlives a restart and a next version that is as slow, and is closed by a fix. */
static void a_finding_is_closed_when_it_is_gone(void **state)
{
    (void)state;
    struct fixture fixture;
    static const struct load slow = {.traffic = 1, .slow_handler = 5, .slow_leaf = 3, .slower = 2};
    static const struct watch_options options = WATCH_OPTIONS_DEFAULT;
    struct error error = {0};
    char directory[] = "watch.XXXXXX";
    assert_non_null(mkdtemp(directory));
    fixture_open(&fixture, directory, 4);
    write_minutes(&fixture, "shop", "1", -60, 0, &usual);
    write_minutes(&fixture, "shop", "2", 0, 100, &slow);
    write_minutes(&fixture, "shop", "3", 100, 300, &slow);
    write_minutes(&fixture, "shop", "4", 300, 500, &usual);
    for (int minute = 0; minute <= 290; minute += 5)
        watch_minutes(&fixture, minute, minute);
    say_findings(&fixture);
    assert_int_equal(open_count(&fixture), 1);
    char id[WATCH_ID_BYTES];
    memcpy(id, tenant_of(&fixture)->findings[0].id, sizeof(id));

    watch_close(fixture.watch);
    assert_int_equal(watch_open(&fixture.server, &options, directory, &fixture.watch, &error), 0);
    assert_int_equal(tenant_of(&fixture)->mark_count, 2);
    assert_int_equal(tenant_of(&fixture)->marks[0].looks, WATCH_LOOKS);
    assert_int_equal(open_count(&fixture), 1);
    assert_string_equal(tenant_of(&fixture)->findings[0].id, id);
    assert_string_equal(tenant_of(&fixture)->findings[0].function, "leaf_5_3");

    for (int minute = 295; minute <= 495; minute += 5)
        watch_minutes(&fixture, minute, minute);
    say_findings(&fixture);
    assert_int_equal(tenant_of(&fixture)->finding_count, 1);
    assert_int_equal(tenant_of(&fixture)->findings[0].closed, WATCH_GONE);
    fixture_close(&fixture);
}

/* Going back to the version before closes it at once; without data, it is closed after a day. */
static void a_rollback_closes(void **state)
{
    (void)state;
    struct fixture fixture;
    static const struct load slow = {.traffic = 1, .slow_handler = 5, .slow_leaf = 3, .slower = 2};
    fixture_open(&fixture, NULL, 5);
    write_minutes(&fixture, "back", "1", -60, 0, &usual);
    write_minutes(&fixture, "back", "2", 0, 30, &slow);
    write_minutes(&fixture, "back", "1", 30, 120, &usual);
    write_minutes(&fixture, "gone", "1", -60, 0, &usual);
    write_minutes(&fixture, "gone", "2", 0, 30, &slow);
    watch_minutes(&fixture, 0, 25);
    say_findings(&fixture);
    assert_int_equal(open_count(&fixture), 2);
    watch_round(fixture.watch, START + 115 * MINUTE);
    assert_int_equal(tenant_of(&fixture)->findings[0].closed, WATCH_REPLACED);
    assert_int_equal(open_count(&fixture), 1);
    watch_round(fixture.watch, START + 30 * 60 * MINUTE);
    assert_int_equal(tenant_of(&fixture)->findings[1].closed, WATCH_NO_DATA);
    fixture_close(&fixture);
}

/* One function becomes slower while the version runs: that is one finding, of its own kind, which
 * closes when it is as fast as before. */
static void a_change_within_a_version(void **state)
{
    (void)state;
    struct fixture fixture;
    static const struct load slow = {
        .traffic = 1, .slow_handler = 5, .slow_leaf = 3, .slower = 1.6};
    fixture_open(&fixture, NULL, 6);
    write_minutes(&fixture, "shop", "1", -60, 360, &usual);
    write_minutes(&fixture, "shop", "1", 360, 600, &slow);
    write_minutes(&fixture, "shop", "1", 600, 800, &usual);
    for (int minute = 0; minute <= 590; minute += 10)
        watch_minutes(&fixture, minute, minute);
    say_findings(&fixture);
    assert_int_equal(tenant_of(&fixture)->finding_count, 1);
    const struct watch_finding *finding = &tenant_of(&fixture)->findings[0];
    assert_int_equal(finding->kind, WATCH_CHANGE);
    assert_int_equal(finding->closed, WATCH_OPEN);
    assert_string_equal(finding->function, "leaf_5_3");
    assert_string_equal(finding->version, "1");
    assert_string_equal(finding->base_version, "1");
    assert_true(finding->opened_ns <= START + 430 * MINUTE); /* the first look after it */
    for (int minute = 600; minute <= 790; minute += 10)
        watch_minutes(&fixture, minute, minute);
    say_findings(&fixture);
    assert_int_equal(tenant_of(&fixture)->finding_count, 1);
    assert_int_equal(tenant_of(&fixture)->findings[0].closed, WATCH_GONE);
    fixture_close(&fixture);
}

/* What comes back every day is no change; nor is more traffic, nor noise. */
static void no_changes_within_a_version(void **state)
{
    (void)state;
    struct fixture fixture;
    static const struct load slow = {
        .traffic = 1, .slow_handler = 5, .slow_leaf = 3, .slower = 1.6};
    static const struct load busy = {.traffic = 1.4, .slow_handler = -1};
    fixture_open(&fixture, NULL, 7);
    write_minutes(&fixture, "daily", "0", 360 - 1440, 480 - 1440, &slow);
    write_minutes(&fixture, "daily", "1", -60, 360, &usual);
    write_minutes(&fixture, "daily", "1", 360, 480, &slow);
    write_minutes(&fixture, "busy", "1", -60, 240, &usual);
    write_minutes(&fixture, "busy", "1", 240, 480, &busy);
    for (int minute = 0; minute <= 480; minute += 10)
        watch_minutes(&fixture, minute, minute);
    say_findings(&fixture);
    assert_int_equal(tenant_of(&fixture)->finding_count, 0);
    assert_int_equal(atomic_load(&fixture.watch->stats.failed), 0);
    assert_true(atomic_load(&fixture.watch->stats.looks) >= 8);
    fixture_close(&fixture);
}

/*
 * Deploys that change nothing: at most one in 20 may yield a finding. tests/long/watch.sh sets how
 * many there are; a few are enough for the normal run.
 */
static void deploys_without_a_change(void **state)
{
    (void)state;
    const char *wanted = getenv("ASSAY_WATCH_DEPLOYS");
    int deploys = wanted ? atoi(wanted) : 10, found = 0;
    for (int i = 0; i < deploys; i++) {
        struct fixture fixture;
        fixture_open(&fixture, NULL, 1000 + (uint64_t)i);
        write_minutes(&fixture, "shop", "1", -60, 0, &usual);
        write_minutes(&fixture, "shop", "2", 0, 82, &usual);
        watch_minutes(&fixture, 0, 82);
        assert_int_equal(atomic_load(&fixture.watch->stats.looks), WATCH_LOOKS);
        found += tenant_of(&fixture)->finding_count > 0;
        fixture_close(&fixture);
    }
    print_message("%d of %d deploys without a change had a finding.\n", found, deploys);
    assert_true(found <= MAX(deploys / 20, 1));
}

/* The same within versions: of so many services over half a day, none may yield a finding. */
static void hours_without_a_change(void **state)
{
    (void)state;
    const char *wanted = getenv("ASSAY_WATCH_DEPLOYS");
    int services = wanted ? atoi(wanted) / 5 : 1, found = 0;
    uint64_t looks = 0;
    for (int i = 0; i < services; i++) {
        struct fixture fixture;
        fixture_open(&fixture, NULL, 5000 + (uint64_t)i);
        write_minutes(&fixture, "shop", "1", -60, 660, &usual);
        for (int minute = 0; minute <= 660; minute += 30)
            watch_minutes(&fixture, minute, minute);
        looks += atomic_load(&fixture.watch->stats.looks);
        found += tenant_of(&fixture)->finding_count > 0;
        fixture_close(&fixture);
    }
    print_message("%d of %d services without a change had a finding in %llu looks.\n", found,
                  services, (unsigned long long)looks);
    assert_true(looks >= 7 * (uint64_t)services);
    assert_int_equal(found, 0);
}

/* ---- the book ---- */

static struct watch_mark mark_at(int64_t time_ns, const char *service, const char *version,
                                 const char *by)
{
    return (struct watch_mark){.time_ns = time_ns,
                               .service = (char *)service,
                               .version = (char *)version,
                               .text = (char *)"x",
                               .by = (char *)by};
}

static void books_are_bounded(void **state)
{
    (void)state;
    struct watch_book book;
    struct error error = {0};
    assert_int_equal(watch_book_open(NULL, &book, &error), 0);
    struct watch_tenant *tenant = watch_book_tenant(&book, "t");
    for (int i = 0; i < WATCH_MARKS_MAX + 10; i++) {
        struct watch_mark mark = mark_at(1000 + i, "", "", "me");
        assert_true(watch_mark_add(&book, tenant, &mark));
    }
    struct watch_mark old = mark_at(5, "", "", "me");
    assert_false(watch_mark_add(&book, tenant, &old));
    assert_int_equal(tenant->mark_count, WATCH_MARKS_MAX);
    assert_int_equal(tenant->marks[0].time_ns, 1010);
    assert_int_equal(book.dropped_marks, 11);

    struct watch_finding finding = {.service = (char *)"s",
                                    .version = (char *)"2",
                                    .base_version = (char *)"1",
                                    .type = (char *)CPU,
                                    .function = (char *)"f"};
    for (int i = 0; i < WATCH_FINDINGS_MAX; i++)
        assert_non_null(watch_finding_add(&book, tenant, &finding));
    assert_null(watch_finding_add(&book, tenant, &finding));
    tenant->findings[7].closed = WATCH_GONE;
    assert_non_null(watch_finding_add(&book, tenant, &finding));
    assert_int_equal(tenant->finding_count, WATCH_FINDINGS_MAX);
    assert_int_equal(book.dropped_findings, 1);
    watch_book_release(&book);
}

static void a_posted_mark_replaces_a_derived_one(void **state)
{
    (void)state;
    struct watch_book book;
    struct error error = {0};
    assert_int_equal(watch_book_open(NULL, &book, &error), 0);
    struct watch_tenant *tenant = watch_book_tenant(&book, "t");
    struct watch_mark derived = mark_at(50, "s", "1", ""), posted = mark_at(40, "s", "1", "ci");
    watch_mark_add(&book, tenant, &derived);
    tenant->marks[0].looks = 3;
    watch_mark_add(&book, tenant, &posted);
    watch_mark_add(&book, tenant, &derived);
    assert_int_equal(tenant->mark_count, 1);
    assert_int_equal(tenant->marks[0].time_ns, 40);
    assert_string_equal(tenant->marks[0].by, "ci");
    assert_int_equal(tenant->marks[0].looks, 3);
    watch_book_release(&book);
}

/* Files that were cut off or damaged are errors with a sentence, or are read. */
static void damaged_files(void **state)
{
    (void)state;
    struct watch_book book;
    struct error error = {0};
    _cleanup_buffer_ struct buffer file = {0};
    assert_int_equal(watch_book_open(NULL, &book, &error), 0);
    struct watch_tenant *tenant = watch_book_tenant(&book, "t");
    struct watch_mark mark = mark_at(50, "s\"\\", "1", "");
    struct watch_finding finding = {.service = (char *)"s",
                                    .version = (char *)"2",
                                    .base_version = (char *)"1",
                                    .type = (char *)CPU,
                                    .function = (char *)"f<int>",
                                    .growth = INFINITY,
                                    .growth_high = INFINITY,
                                    .closed = WATCH_GONE};
    watch_mark_add(&book, tenant, &mark);
    watch_finding_add(&book, tenant, &finding);
    watch_book_write(&book, &file);
    watch_book_release(&book);
    for (size_t i = 0; i <= file.length; i++)
        for (int flip = i < file.length ? 8 : 0; flip >= 0; flip--) {
            _cleanup_buffer_ struct buffer damaged = {0};
            buffer_add(&damaged, file.data, flip < 8 ? file.length : i);
            if (flip < 8 && i < file.length)
                damaged.data[i] = (char)(damaged.data[i] ^ 1 << flip);
            error = (struct error){0};
            assert_int_equal(watch_book_open(NULL, &book, &error), 0);
            int r = watch_book_read(&book, damaged.data, damaged.length, &error);
            assert_true(r >= 0 || *error.text);
            if (i == file.length) {
                assert_int_equal(r, 0);
                assert_string_equal(book.tenants[0].marks[0].service, "s\"\\");
                assert_true(isinf(book.tenants[0].findings[0].growth));
                assert_int_equal(book.tenants[0].findings[0].closed, WATCH_GONE);
            }
            watch_book_release(&book);
        }
}

static void files_of_other_versions(void **state)
{
    (void)state;
    static const char *const files[] = {"", "[]", "{\"version\":2,\"tenants\":[]}",
                                        "{\"tenants\":[]}",
                                        "{\"version\":1,\"tenants\":[{\"marks\":[]}]}"};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        struct watch_book book;
        struct error error = {0};
        assert_int_equal(watch_book_open(NULL, &book, &error), 0);
        assert_true(watch_book_read(&book, files[i], strlen(files[i]), &error) < 0);
        assert_true(*error.text);
        watch_book_release(&book);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_slow_function_is_one_finding),
        cmocka_unit_test(a_subtree_is_one_finding),
        cmocka_unit_test(other_changes_are_no_findings),
        cmocka_unit_test(a_finding_is_closed_when_it_is_gone),
        cmocka_unit_test(a_rollback_closes),
        cmocka_unit_test(a_change_within_a_version),
        cmocka_unit_test(no_changes_within_a_version),
        cmocka_unit_test(deploys_without_a_change),
        cmocka_unit_test(hours_without_a_change),
        cmocka_unit_test(books_are_bounded),
        cmocka_unit_test(a_posted_mark_replaces_a_derived_one),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(files_of_other_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
