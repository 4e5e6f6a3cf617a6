// SPDX-License-Identifier: Apache-2.0
// Column blocks and table chunks: what goes in comes out, and damage is noticed.

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/block/block.h"
#include "store/file/catalog.h"
#include "store_samples.h"
#include "unit.h"

static void add_window(struct block_rows *rows, uint64_t *seed, int64_t start_ns, size_t count,
                       unsigned nodes, bool wild)
{
    _cleanup_free_ uint32_t *ids = memory_zalloc(count + 1, sizeof(*ids));
    _cleanup_free_ int64_t *values = memory_zalloc(count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        ids[i] = sample_random(seed) % nodes;
        values[i] = (int64_t)(1 + sample_random(seed) % 9) * 1000;
        if (wild && i % 5 == 0)
            values[i] = (int64_t)((uint64_t)sample_random(seed) << 33 | sample_random(seed));
        if (wild && i % 7 == 0)
            values[i] = i % 2 ? INT64_MIN : INT64_MAX;
    }
    struct block_window window = {.start_ns = start_ns,
                                  .duration_ns = 10,
                                  .first_ns = start_ns,
                                  .last_ns = start_ns,
                                  .windows = 1};
    block_rows_add(rows, &window, ids, values, count);
    struct block_window *added = &rows->windows[rows->window_count - 1];
    added->raw_rows = added->row_count;
}

static void assert_same(const struct block_rows *a, const struct block_rows *b)
{
    assert_int_equal(a->window_count, b->window_count);
    assert_int_equal(a->row_count, b->row_count);
    for (size_t i = 0; i < a->window_count; i++)
        assert_memory_equal(&a->windows[i], &b->windows[i], sizeof(a->windows[i]));
    if (a->row_count) {
        assert_memory_equal(a->nodes, b->nodes, a->row_count * sizeof(*a->nodes));
        assert_memory_equal(a->values, b->values, a->row_count * sizeof(*a->values));
    }
}

static void round_trip(struct block_codec *codec, const struct block_rows *rows)
{
    _cleanup_buffer_ struct buffer data = {0};
    struct block_rows out = {0};
    struct block_view view;
    block_encode(codec, rows, 0, rows->window_count, &data);
    assert_int_equal(block_open(codec, data.data, data.length, &view), 0);
    assert_int_equal(view.row_count, rows->row_count);
    assert_int_equal(block_decode(&view, 0, view.window_count, &out), 0);
    assert_same(rows, &out);
    /* Adding up in pieces gives what the rows do. */
    size_t middle = view.window_count / 2;
    _cleanup_free_ uint64_t *sums = memory_zalloc(view.dictionary_count + 1, sizeof(*sums));
    assert_int_equal(block_sum(&view, 0, middle, sums), 0);
    assert_int_equal(block_sum(&view, middle, view.window_count - middle, sums), 0);
    for (size_t i = 0; i < view.dictionary_count; i++) {
        uint64_t expected = 0;
        for (size_t k = 0; k < rows->row_count; k++)
            if (rows->nodes[k] == view.dictionary[i])
                expected += (uint64_t)rows->values[k];
        assert_true(sums[i] * view.unit == expected);
    }
    block_rows_release(&out);
}

static void gives_back_rows(void **state)
{
    (void)state;
    struct block_codec *codec = block_codec_new();
    uint64_t seed = 1;
    static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 63, 64, 65, 300};
    for (unsigned windows = 0; windows < 5; windows++)
        for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++)
            for (unsigned wild = 0; wild < 2; wild++) {
                struct block_rows rows = {0};
                for (unsigned w = 0; w < windows; w++)
                    add_window(&rows, &seed, 1000 + w * 10, sizes[i], wild ? 0x7fffffff : 500,
                               wild);
                round_trip(codec, &rows);
                block_rows_release(&rows);
            }
    block_codec_free(codec);
}

static void keeps_what_rollups_know(void **state)
{
    (void)state;
    struct block_codec *codec = block_codec_new();
    struct block_rows rows = {0};
    uint64_t seed = 2;
    add_window(&rows, &seed, 1000, 20, 50, false);
    add_window(&rows, &seed, 2000, 20, 50, false);
    rows.windows[1].first_ns = 2005;
    rows.windows[1].last_ns = 2900;
    rows.windows[1].windows = 77;
    rows.windows[1].raw_rows = 12345;
    round_trip(codec, &rows);
    block_rows_release(&rows);
    block_codec_free(codec);
}

static void takes_little_room(void **state)
{
    (void)state;
    struct block_codec *codec = block_codec_new();
    struct block_rows rows = {0};
    _cleanup_buffer_ struct buffer data = {0};
    uint64_t seed = 3;
    for (unsigned w = 0; w < 360; w++)
        add_window(&rows, &seed, (int64_t)w * 10000000000, 100, 2000, false);
    block_encode(codec, &rows, 0, rows.window_count, &data);
    assert_true(data.length < rows.row_count * 2); /* values are of random size here */
    block_rows_release(&rows);
    block_codec_free(codec);
}

/* Windows [first, first + count) added up by stack, and by window for every third stack, in place
 * of what the rows say. */
static void check_part(struct block_view *view, const struct block_rows *rows, size_t first,
                       size_t count, unsigned nodes)
{
    _cleanup_free_ uint64_t *sums = memory_zalloc(view->dictionary_count + 1, sizeof(*sums));
    _cleanup_free_ uint64_t *by_node = memory_zalloc(nodes, sizeof(*by_node));
    _cleanup_free_ bool *wanted = memory_zalloc(nodes, sizeof(*wanted));
    _cleanup_free_ int64_t *totals = memory_zalloc(count + 1, sizeof(*totals));
    for (unsigned i = 0; i < nodes; i += 3)
        wanted[i] = true;
    assert_int_equal(block_sum(view, first, count, sums), 0);
    for (size_t i = 0; i < view->dictionary_count; i++)
        by_node[view->dictionary[i]] = sums[i] * view->unit;
    assert_int_equal(block_pick(view, first, count, wanted, totals), 0);
    for (size_t w = 0; w < count; w++) {
        const struct block_window *window = &rows->windows[first + w];
        int64_t total = 0;
        for (uint32_t i = window->first_row; i < window->first_row + window->row_count; i++) {
            by_node[rows->nodes[i]] -= (uint64_t)rows->values[i];
            total += wanted[rows->nodes[i]] ? rows->values[i] : 0;
        }
        assert_int_equal(totals[w], total);
    }
    for (unsigned i = 0; i < nodes; i++)
        assert_int_equal(by_node[i], 0);
    struct block_rows part = {0};
    assert_int_equal(block_decode(view, first, count, &part), 0);
    assert_int_equal(part.window_count, count);
    for (size_t w = 0; w < count; w++) {
        const struct block_window *a = &part.windows[w], *b = &rows->windows[first + w];
        assert_int_equal(a->row_count, b->row_count);
        assert_memory_equal(part.nodes + a->first_row, rows->nodes + b->first_row,
                            a->row_count * sizeof(*part.nodes));
        assert_memory_equal(part.values + a->first_row, rows->values + b->first_row,
                            a->row_count * sizeof(*part.values));
    }
    block_rows_release(&part);
}

/* The number of a window takes one, two and three bytes; values a byte, more, and a sign. */
static void gives_any_windows(void **state)
{
    (void)state;
    struct block_codec *codec = block_codec_new();
    static const size_t counts[] = {2, 255, 256, 257, 700, 65537};
    uint64_t seed = 8;
    for (unsigned i = 0; i < ARRAY_LENGTH(counts); i++)
        for (unsigned kind = 0; kind < 3; kind++) {
            struct block_rows rows = {0};
            _cleanup_buffer_ struct buffer data = {0};
            struct block_view view;
            for (size_t w = 0; w < counts[i]; w++) {
                add_window(&rows, &seed, (int64_t)w * 10, 1 + sample_random(&seed) % 3, 90, false);
                struct block_window *window = &rows.windows[w];
                int64_t *value = &rows.values[window->first_row];
                if (kind && w % 50 == 0) {
                    window->total -= *value;
                    *value = kind == 1 ? 300000 : -7000;
                    window->total += *value;
                }
            }
            block_encode(codec, &rows, 0, rows.window_count, &data);
            for (unsigned part = 0; part < 6; part++) {
                size_t first = sample_random(&seed) % counts[i];
                size_t count = part ? sample_random(&seed) % (counts[i] - first) + 1 : counts[i];
                assert_int_equal(block_open(codec, data.data, data.length, &view), 0);
                check_part(&view, &rows, part ? first : 0, count, 90);
            }
            block_rows_release(&rows);
        }
    block_codec_free(codec);
}

static void notices_every_changed_byte(void **state)
{
    (void)state;
    struct block_codec *codec = block_codec_new();
    struct block_rows rows = {0};
    struct block_view view;
    _cleanup_buffer_ struct buffer data = {0};
    uint64_t seed = 4;
    for (unsigned w = 0; w < 3; w++)
        add_window(&rows, &seed, w, 40, 60, w == 2);
    block_encode(codec, &rows, 0, rows.window_count, &data);
    for (size_t i = 0; i < data.length; i++) {
        /* In memory of exactly that size, so that reading beyond it is noticed. */
        char *copy = malloc(i ? i : 1);
        memcpy(copy, data.data, i);
        assert_int_equal(block_open(codec, copy, i, &view), -EBADMSG);
        free(copy);
        data.data[i] ^= 0x10;
        assert_int_equal(block_open(codec, data.data, data.length, &view), -EBADMSG);
        data.data[i] ^= 0x10;
    }
    assert_int_equal(block_open(codec, data.data, data.length, &view), 0);
    block_rows_release(&rows);
    block_codec_free(codec);
}

typedef void pack_fn(const struct catalog *catalog, enum catalog_table table, uint32_t service,
                     uint32_t first, uint32_t count, struct buffer *out);

static void check_tables(pack_fn *pack, unsigned nodes, unsigned frames)
{
    struct catalog a, b;
    uint64_t seed = 5;
    catalog_init(&a);
    catalog_init(&b);
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "service_name", "x");
    labels_set(&labels, "empty.name", "y\nz");
    assert_int_equal(catalog_series(&a, &labels, CPU), 0);
    assert_int_equal(catalog_service(&b, "x"), 0);
    struct tree *tree = &a.services[0].tree;
    for (uint32_t i = 0, node = 0; i < nodes; i++) {
        if (sample_random(&seed) % 4 == 0)
            node = (uint32_t)(sample_random(&seed) % tree->count);
        node = tree_child(tree, node, sample_frame(&a.tables, sample_random(&seed) % frames));
    }
    for (unsigned table = 0; table <= TABLE_NODES; table++) {
        uint32_t count = catalog_count(&a, table, 0), half = 1 + (count - 1) / 2;
        uint32_t cuts[] = {1, half, count};
        for (unsigned i = 0; i < 2; i++) {
            _cleanup_buffer_ struct buffer chunk = {0};
            pack(&a, table, 0, cuts[i], cuts[i + 1] - cuts[i], &chunk);
            assert_int_equal(catalog_unpack(&b, table, 0, cuts[i] + 1, chunk.data, chunk.length),
                             -EBADMSG); /* not where the table ends */
            for (size_t k = 0; k < chunk.length; k += 7 + chunk.length / 256) {
                chunk.data[k] ^= 1;
                assert_int_equal(catalog_unpack(&b, table, 0, cuts[i], chunk.data, chunk.length),
                                 -EBADMSG);
                chunk.data[k] ^= 1;
                assert_int_equal(catalog_unpack(&b, table, 0, cuts[i], chunk.data, k), -EBADMSG);
            }
            assert_int_equal(catalog_unpack(&b, table, 0, cuts[i], chunk.data, chunk.length), 0);
        }
        assert_int_equal(catalog_count(&b, table, 0), count);
    }
    assert_memory_equal(a.tables.frames, b.tables.frames,
                        a.tables.frame_count * sizeof(*a.tables.frames));
    assert_memory_equal(tree->nodes, b.services[0].tree.nodes, tree->count * sizeof(*tree->nodes));
    /* What is there is found again, and what isn't is added. */
    uint32_t known = b.tables.frame_count;
    for (unsigned i = 0; i < frames; i++)
        assert_int_equal(sample_frame(&b.tables, i), sample_frame(&a.tables, i));
    assert_true(b.tables.frame_count >= known && b.tables.frame_count == a.tables.frame_count);
    assert_int_equal(b.tables.string_count, a.tables.string_count);
    catalog_release(&a);
    catalog_release(&b);
}

static void tables_come_back_with_the_same_ids(void **state)
{
    (void)state;
    check_tables(catalog_pack, 500, 50);
    check_tables(catalog_pack_zstd, 9000, 4000);
    check_tables(catalog_pack_joined, 500, 50);
    check_tables(catalog_pack_joined, 9000, 4000);
}

/* Sealed as it must be, so that what is in it is looked at. */
static int unpack_sealed(struct catalog *catalog, enum catalog_table table, struct buffer *chunk)
{
    uint64_t checksum = XXH3_64bits(chunk->data, chunk->length);
    buffer_add(chunk, &checksum, sizeof(checksum));
    int r = catalog_unpack(catalog, table, 0, catalog_count(catalog, table, 0), chunk->data,
                           chunk->length);
    chunk->length -= sizeof(checksum);
    return r;
}

static void columns_that_lie_are_refused(void **state)
{
    (void)state;
    struct catalog catalog;
    catalog_init(&catalog);
    catalog_service(&catalog, "x");
    for (unsigned i = 0; i < 3; i++)
        sample_frame(&catalog.tables, i);
    /* Form, nodes; runs, their lengths - 1, distances - 1; frames, their gaps; indexes. */
    static const struct {
        char bytes[20];
        size_t length;
        int result;
    } cases[] = {
        {{2, 2, 1, 1, 1, 1, 0, 2, 1, 2, 1, 1, 1, 2, 0, 1}, 16, 0},
        {{2, 2, 1, 1, 1, 2, 0, 2, 1, 2, 1, 1, 1, 2, 0, 1}, 16, -EBADMSG},       /* a longer run */
        {{2, 2, 1, 1, 1, 0, 0, 2, 1, 2, 1, 1, 1, 2, 0, 1}, 16, -EBADMSG},       /* a shorter one */
        {{2, 2, 1, 1, 1, 1, 1, 1, 9, 2, 1, 2, 1, 1, 1, 2, 0, 1}, 18, -EBADMSG}, /* no parent */
        {{2, 2, 1, 1, 1, 1, 0, 2, 1, 2, 1, 9, 1, 2, 0, 1}, 16, -EBADMSG},       /* no such frame */
        {{2, 2, 1, 1, 1, 1, 0, 2, 1, 2, 1, 1, 1, 2, 0, 2}, 16, -EBADMSG},       /* nor index */
        {{2, 2, 3, 1, 1, 1, 0, 2, 1, 2, 1, 1, 1, 2, 0, 1}, 16, -EBADMSG},    /* runs of nothing */
        {{2, 2, 1, 9, 1, 1, 0, 2, 1, 2, 1, 1, 1, 2, 0, 1}, 16, -EBADMSG},    /* too many planes */
        {{2, 2, 1, 1, 1, 1, 0, 2, 1, 2, 1, 1, 1, 2, 0, 1, 0}, 17, -EBADMSG}, /* something behind */
        {{2, 0, 0, 0, 0, 0, 0}, 7, -EBADMSG},
        {{3, 0}, 2, -EBADMSG},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        _cleanup_buffer_ struct buffer chunk = {0};
        struct tree *tree = &catalog.services[0].tree;
        tree->count = 1;
        buffer_add(&chunk, cases[i].bytes, cases[i].length);
        assert_int_equal(unpack_sealed(&catalog, TABLE_NODES, &chunk), cases[i].result);
        for (size_t cut = 0; cut < cases[i].length; cut++) {
            chunk.length = cut;
            tree->count = 1;
            assert_int_equal(unpack_sealed(&catalog, TABLE_NODES, &chunk), -EBADMSG);
        }
        /* Strings and mappings never come so. */
        chunk.length = cases[i].length;
        assert_int_equal(unpack_sealed(&catalog, TABLE_STRINGS, &chunk), -EBADMSG);
        assert_int_equal(unpack_sealed(&catalog, TABLE_MAPPINGS, &chunk), -EBADMSG);
    }
    catalog_release(&catalog);
}

static void labels_come_back(void **state)
{
    (void)state;
    _cleanup_labels_ struct labels labels = {0};
    labels_set(&labels, "service_name", "x");
    labels_set(&labels, "empty.name", "y\nz");
    _cleanup_buffer_ struct buffer packed = {0};
    _cleanup_labels_ struct labels back = {0};
    catalog_pack_labels(&labels, &packed);
    assert_int_equal(catalog_unpack_labels(packed.data, packed.length, &back), 0);
    assert_true(labels_equal(&labels, &back));
    for (size_t i = 0; i < packed.length; i++) {
        _cleanup_labels_ struct labels cut = {0};
        assert_int_equal(catalog_unpack_labels(packed.data, i, &cut), -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_rows),
        cmocka_unit_test(keeps_what_rollups_know),
        cmocka_unit_test(takes_little_room),
        cmocka_unit_test(gives_any_windows),
        cmocka_unit_test(notices_every_changed_byte),
        cmocka_unit_test(tables_come_back_with_the_same_ids),
        cmocka_unit_test(columns_that_lie_are_refused),
        cmocka_unit_test(labels_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
