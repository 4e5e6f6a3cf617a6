// SPDX-License-Identifier: Apache-2.0
// Export and import: what comes out of one store goes into another and answers the same; twice is
// as once; files that are cut off or damaged are refused, and nothing but whole batches is stored.

#include "store/store.h"
#include "store/transfer/export_file.h"
#include "store_pair.h"
#include "unit.h"

static int add_to_buffer(void *context, const void *data, size_t length)
{
    buffer_add(context, data, length);
    return 0;
}

struct input {
    const struct buffer *content;
    size_t at, step; /* how much is given at once */
};

static ssize_t take_from_buffer(void *context, void *data, size_t room)
{
    struct input *input = context;
    size_t count = MIN(MIN(room, input->step), input->content->length - input->at);
    memcpy(data, input->content->data + input->at, count);
    input->at += count;
    return (ssize_t)count;
}

static struct store_transfer export_all(struct store *store, struct buffer *out)
{
    struct store_transfer transfer;
    struct error error;
    struct store_selection selection = {.from_ns = INT64_MIN, .to_ns = INT64_MAX};
    out->length = 0;
    if (store_export(store, &selection, NULL, add_to_buffer, out, &transfer, &error))
        fail_msg("%s", error.text);
    assert_int_equal(transfer.bytes + 0, out->length);
    return transfer;
}

static int import_from(struct store *store, const struct buffer *content,
                       struct store_transfer *transfer, struct error *error)
{
    struct input input = {.content = content, .step = 1000};
    return store_import(store, take_from_buffer, &input, NULL, transfer, error);
}

static struct store *open_other(void)
{
    static const struct store_class for_ever = {.name = "default"};
    struct store_options settings = options();
    settings.directory = "other";
    settings.classes = &for_ever;
    settings.class_count = 1;
    return open_with(&settings);
}

static void comes_back_as_it_was(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory(), *other = open_other();
    int64_t from = TODAY_NS - 2 * DAY_NS;
    write_both(store, memory, 110, 40, from, test_now_ns);
    maintain(store);
    write_both(store, memory, 111, 10, from, test_now_ns); /* not compacted, not rolled up */
    _cleanup_buffer_ struct buffer content = {0}, again = {0};
    struct store_transfer out = export_all(store, &content), in;
    struct error error;
    assert_int_equal(out.windows, 400);
    assert_true(out.batches >= 3 && !out.damaged_blocks);
    if (import_from(other, &content, &in, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(in.windows, 400);
    assert_int_equal(in.rows, out.rows);
    assert_int_equal(in.bytes, content.length);
    assert_int_equal(in.repeated_batches + in.refused_batches, 0);
    compare_answers(other, memory, 112, 40, from, test_now_ns);
    maintain(other);
    compare_answers(other, memory, 113, 40, from, test_now_ns);
    /* Once more changes nothing, and neither does what comes out of the copy. */
    assert_int_equal(import_from(other, &content, &in, &error), 0);
    assert_int_equal(in.windows, 0);
    assert_int_equal(in.repeated_batches, out.batches);
    export_all(other, &again);
    assert_int_equal(import_from(store, &again, &in, &error), 0);
    assert_int_equal(import_from(other, &again, &in, &error), 0);
    assert_int_equal(in.repeated_batches, in.batches);
    compare_answers(other, memory, 114, 20, from, test_now_ns);
    check_is_clean(other);
    store_close(store);
    store_close(other);
    store_close(memory);
}

/* The answers at the edges of slots, which is where rollups know them. */
static void compare_slots(struct store *a, struct store *b, int64_t from_ns, int64_t to_ns)
{
    static const int64_t lengths[] = {10 * MINUTE_NS, HOUR_NS, DAY_NS};
    for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++)
        for (int64_t at = from_ns; at < to_ns; at += 3 * lengths[i]) {
            struct store_selection selection = {
                .tenant = "acme", .type = CPU, .from_ns = at, .to_ns = at + lengths[i]};
            _cleanup_buffer_ struct buffer x = {0}, y = {0};
            describe_merge(a, &selection, NULL, &x);
            describe_merge(b, &selection, NULL, &y);
            assert_string_equal(buffer_text(&x), buffer_text(&y));
        }
}

static void rollups_that_outlived_their_raw_data_come_along(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS;
    struct store *store = open_embedded(), *memory = open_memory(), *other = open_other();
    int64_t from = TODAY_NS - 2 * DAY_NS;
    write_both(store, memory, 120, 30, from, TODAY_NS);
    maintain(store);
    test_now_ns = TODAY_NS + 14 * DAY_NS + 12 * HOUR_NS; /* raw data expires */
    maintain(store);
    write_both(store, memory, 121, 10, test_now_ns - 6 * HOUR_NS, test_now_ns);
    maintain(store);
    struct store_stats stats;
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_true(stats.first_ns[STORE_RAW] > TODAY_NS);
    _cleanup_buffer_ struct buffer content = {0};
    struct store_transfer out = export_all(store, &content), in;
    struct error error;
    if (import_from(other, &content, &in, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(in.refused_batches, 0);
    assert_int_equal(in.windows, out.windows);
    maintain(other);
    compare_slots(other, memory, from, TODAY_NS);
    compare_answers(other, memory, 122, 20, test_now_ns - 6 * HOUR_NS, test_now_ns);
    check_is_clean(other);
    assert_int_equal(import_from(other, &content, &in, &error), 0);
    assert_int_equal(in.repeated_batches, out.batches);
    compare_slots(other, memory, from, TODAY_NS);
    /* Hours alone, years later. */
    test_now_ns = TODAY_NS + 60 * DAY_NS;
    maintain(store);
    assert_int_equal(store_stats(store, &stats, NULL), 0);
    assert_int_equal(stats.files[STORE_RAW] + stats.files[STORE_TEN_MINUTES], 0);
    export_all(store, &content);
    /* The copy has ten-minute slots of that time, which are as good. */
    assert_int_equal(import_from(other, &content, &in, &error), 0);
    assert_true(in.refused_batches > 0 && !in.windows);
    assert_non_null(strstr(in.refusal, "already has data"));
    compare_slots(other, memory, from, TODAY_NS);
    store_close(other);
    assert_int_equal(system("rm -r other"), 0);
    other = open_other();
    assert_int_equal(import_from(other, &content, &in, &error), 0);
    assert_int_equal(in.refused_batches, 0);
    maintain(other);
    struct store_selection day = {
        .tenant = "acme", .type = CPU, .from_ns = from, .to_ns = TODAY_NS};
    _cleanup_buffer_ struct buffer x = {0}, y = {0};
    describe_merge(other, &day, NULL, &x);
    describe_merge(memory, &day, NULL, &y);
    assert_string_equal(buffer_text(&x), buffer_text(&y));
    store_close(store);
    store_close(other);
    store_close(memory);
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
}

static void selections_can_be_exported(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory(), *other = open_other();
    write_both(store, memory, 130, 20, TODAY_NS, test_now_ns);
    _cleanup_selector_ struct selector selector = {0};
    assert_int_equal(selector_parse("{host=\"host1\"}", 14, &selector, NULL), 0);
    struct store_selection selection = {.tenant = "acme",
                                        .type = CPU,
                                        .selector = &selector,
                                        .from_ns = TODAY_NS + HOUR_NS + SECOND_NS,
                                        .to_ns = TODAY_NS + 5 * HOUR_NS};
    struct store_transfer transfer;
    struct error error;
    _cleanup_buffer_ struct buffer content = {0}, x = {0}, y = {0};
    assert_int_equal(
        store_export(store, &selection, NULL, add_to_buffer, &content, &transfer, &error), 0);
    assert_int_equal(import_from(other, &content, &transfer, &error), 0);
    describe_merge(memory, &selection, NULL, &x);
    selection.selector = NULL;
    selection.from_ns = 0;
    selection.to_ns = INT64_MAX;
    describe_merge(other, &selection, NULL, &y);
    assert_string_equal(buffer_text(&x), buffer_text(&y));
    selection.tenant = "nobody";
    content.length = 0;
    assert_int_equal(
        store_export(store, &selection, NULL, add_to_buffer, &content, &transfer, &error), 0);
    assert_int_equal(transfer.batches, 0);
    assert_int_equal(import_from(other, &content, &transfer, &error), 0);
    store_close(store);
    store_close(other);
    store_close(memory);
}

/* Cut off anywhere, or with any byte changed: an error, and nothing stored but whole batches. */
static void damage_is_noticed(void **state)
{
    (void)state;
    test_now_ns = TODAY_NS + 12 * HOUR_NS;
    struct store *store = open_embedded(), *memory = open_memory();
    write_both(store, memory, 140, 1, TODAY_NS, TODAY_NS + 2 * HOUR_NS);
    _cleanup_buffer_ struct buffer content = {0}, x = {0}, y = {0};
    struct store_transfer out = export_all(store, &content), in;
    struct error error;
    struct store *other = open_other();
    uint64_t most = 0;
    for (size_t length = 0; length < content.length; length++) {
        struct buffer part = {.data = content.data, .length = length};
        int r = import_from(other, &part, &in, &error);
        assert_true(r == -ENODATA || r == -EBADMSG);
        most = MAX(most, in.batches);
    }
    assert_int_equal(most, out.batches);
    for (size_t at = 0; at < content.length; at += 7) {
        content.data[at] ^= (char)(1 << at % 8);
        int r = import_from(other, &content, &in, &error);
        assert_true(r == -ENODATA || r == -EBADMSG || r == -ENOTSUP);
        content.data[at] ^= (char)(1 << at % 8);
    }
    assert_int_equal(import_from(other, &content, &in, &error), 0);
    assert_int_equal(in.repeated_batches, out.batches);
    struct store_selection all = {.tenant = "acme", .type = CPU, .from_ns = 0, .to_ns = INT64_MAX};
    describe_merge(memory, &all, NULL, &x);
    describe_merge(other, &all, NULL, &y);
    assert_string_equal(buffer_text(&x), buffer_text(&y));
    store_close(store);
    store_close(other);
    store_close(memory);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        CASE(comes_back_as_it_was),
        CASE(rollups_that_outlived_their_raw_data_come_along),
        CASE(selections_can_be_exported),
        CASE(damage_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
