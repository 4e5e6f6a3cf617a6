// SPDX-License-Identifier: Apache-2.0
// The tables that walks in the kernel read: what is in them after loading, evicting and giving
// back.

#include "capture/bpf/unwind_pool.h"

#include "base/memory.h"
#include "unit.h"

#define SLOTS 8

struct fixture {
    struct unwind_tables tables;
    struct unwind_pool pool;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct unwind_tables *tables = &fixture->tables;
    tables->mappings = calloc(BPF_MAPPINGS_MAX, sizeof(*tables->mappings));
    tables->directory = calloc(BPF_DIRECTORY_MAX, sizeof(*tables->directory));
    tables->slots_used = calloc(BPF_SLOTS_MAX, sizeof(*tables->slots_used));
    tables->rules = calloc(BPF_RULES_MAX, sizeof(*tables->rules));
    tables->pool = calloc(SLOTS * BPF_SLOT_ROWS, sizeof(*tables->pool));
    tables->slot_count = SLOTS;
    unwind_pool_init(&fixture->pool, tables);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    unwind_pool_release(&fixture->pool);
    free(fixture->tables.mappings);
    free(fixture->tables.directory);
    free(fixture->tables.slots_used);
    free(fixture->tables.rules);
    free(fixture->tables.pool);
    free(fixture);
    return 0;
}

/* A file of so many pages with `per_page` rows each, all with the same rule. */
static struct unwind_rows make_rows(uint32_t page_count, uint32_t per_page, uint16_t rule)
{
    struct unwind_rows rows = {.first_page = 0x400,
                               .page_count = page_count,
                               .row_count = page_count * per_page,
                               .pages = calloc(page_count + 1, sizeof(uint32_t)),
                               .rows = calloc(page_count * per_page, sizeof(struct unwind_row))};
    for (uint32_t page = 0; page <= page_count; page++)
        rows.pages[page] = page * per_page;
    for (uint32_t i = 0; i < rows.row_count; i++)
        rows.rows[i] = (struct unwind_row){.offset = (uint16_t)(i % per_page * 8), .rule = rule};
    return rows;
}

static void free_rows(struct unwind_rows *rows)
{
    free(rows->pages);
    free(rows->rows);
}

static uint64_t address_of(const struct unwind_rows *rows, uint32_t page)
{
    return (rows->first_page + page) << UNWIND_PAGE_SHIFT;
}

/* What a walk in the kernel would find, or -1 where the rows are not there: the same search. */
static int look_up(const struct fixture *fixture, uint32_t file, const struct unwind_rows *rows,
                   uint64_t address)
{
    const struct unwind_tables *tables = &fixture->tables;
    uint32_t page = (uint32_t)((address >> UNWIND_PAGE_SHIFT) - rows->first_page);
    uint32_t entry = tables->directory[fixture->pool.files[file].directory + page];
    uint32_t count = (entry & BPF_GROUPS_MASK) * BPF_GROUP_ROWS;
    uint32_t base = (entry >> BPF_GROUPS_SHIFT) * BPF_GROUP_ROWS;
    if (!count)
        return -1;
    assert_true(base + count <= SLOTS * BPF_SLOT_ROWS);
    assert_int_equal(base / BPF_SLOT_ROWS, (base + count - 1) / BPF_SLOT_ROWS);
    while (count > 1) {
        uint32_t half = count / 2;
        if (tables->pool[base + half].offset <= address % UNWIND_PAGE_BYTES)
            base += half;
        count -= half;
    }
    return tables->pool[base].rule;
}

static void loads_what_is_asked_for(void **state)
{
    struct fixture *fixture = *state;
    struct unwind_pool *pool = &fixture->pool;
    struct unwind_rows rows = make_rows(100, 101, 7); /* 104 with what fills up: 39 pages a slot */
    uint32_t file = unwind_pool_add_file(pool, &rows);
    assert_int_equal(pool->files[file].chunk_count, 3);
    for (uint32_t page = 0; page < 100; page++)
        assert_int_equal(look_up(fixture, file, &rows, address_of(&rows, page)), -1);
    assert_true(unwind_pool_load(pool, file, &rows, address_of(&rows, 50) + 5));
    for (uint32_t page = 0; page < 100; page++) {
        int expected = page >= 39 && page < 78 ? 7 : -1;
        assert_int_equal(look_up(fixture, file, &rows, address_of(&rows, page)), expected);
        assert_int_equal(look_up(fixture, file, &rows, address_of(&rows, page) + 4095), expected);
    }
    assert_int_equal(pool->loads, 1);
    assert_false(unwind_pool_load(pool, file, &rows, address_of(&rows, 50)));
    /* Addresses that the file has no rows for ask for nothing. */
    assert_false(unwind_pool_load(pool, file, &rows, address_of(&rows, 100)));
    assert_false(unwind_pool_load(pool, file, &rows, 0));
    assert_false(unwind_pool_load(pool, file, &rows, UINT64_MAX));
    free_rows(&rows);
}

/* Every offset gets its own row's rule, the first and the last among them. */
static void every_row_is_found(void **state)
{
    struct fixture *fixture = *state;
    static const uint32_t counts[] = {1, 2, 7, 8, 9, 500, 4096};
    for (size_t c = 0; c < ARRAY_LENGTH(counts); c++) {
        struct unwind_rows rows = make_rows(1, counts[c], 0);
        uint32_t step = UNWIND_PAGE_BYTES / counts[c];
        for (uint32_t i = 0; i < counts[c]; i++)
            rows.rows[i] =
                (struct unwind_row){.offset = (uint16_t)(i * step), .rule = (uint16_t)(i + 1)};
        uint32_t file = unwind_pool_add_file(&fixture->pool, &rows);
        assert_true(unwind_pool_load(&fixture->pool, file, &rows, address_of(&rows, 0)));
        for (uint32_t offset = 0; offset < UNWIND_PAGE_BYTES; offset++)
            assert_int_equal(look_up(fixture, file, &rows, address_of(&rows, 0) + offset),
                             MIN(offset / step, counts[c] - 1) + 1);
        free_rows(&rows);
    }
}

static void the_least_recently_used_goes(void **state)
{
    struct fixture *fixture = *state;
    struct unwind_pool *pool = &fixture->pool;
    struct unwind_rows rows = make_rows(SLOTS + 4, 4000, 9); /* a slot for each page */
    for (uint32_t i = 0; i < rows.row_count; i++)
        rows.rows[i].offset = (uint16_t)(i % 4000);
    uint32_t file = unwind_pool_add_file(pool, &rows);
    for (uint32_t page = 0; page < SLOTS; page++) {
        assert_true(unwind_pool_load(pool, file, &rows, address_of(&rows, page)));
        fixture->tables.slots_used[page] = 100 + page;
    }
    assert_int_equal(pool->evictions, 0);
    fixture->tables.slots_used[0] = 500; /* a walk has just read the first */
    assert_true(unwind_pool_load(pool, file, &rows, address_of(&rows, SLOTS)));
    assert_int_equal(pool->evictions, 1);
    assert_int_equal(look_up(fixture, file, &rows, address_of(&rows, 0)), 9);
    assert_int_equal(look_up(fixture, file, &rows, address_of(&rows, 1)), -1);
    assert_int_equal(look_up(fixture, file, &rows, address_of(&rows, SLOTS)), 9);
    /* The new one is not the next to go, and what went can come back. */
    assert_true(unwind_pool_load(pool, file, &rows, address_of(&rows, 1)));
    assert_int_equal(look_up(fixture, file, &rows, address_of(&rows, SLOTS)), 9);
    assert_int_equal(look_up(fixture, file, &rows, address_of(&rows, 2)), -1);
    free_rows(&rows);
}

/* However much is loaded, a look-up gives the right rule or none. */
static void never_another_files_rows(void **state)
{
    struct fixture *fixture = *state;
    struct unwind_rows rows[5];
    uint32_t files[5], random = 1, found = 0;
    for (uint16_t i = 0; i < 5; i++) {
        rows[i] = make_rows(130 + i * 37u, 90 + i * 40u, (uint16_t)(100 + i));
        files[i] = unwind_pool_add_file(&fixture->pool, &rows[i]);
        assert_int_not_equal(files[i], 0);
    }
    for (int round = 0; round < 3000; round++) {
        random = random * 1664525 + 1013904223;
        uint32_t i = (random >> 8) % 5, page = (random >> 16) % rows[i].page_count;
        uint64_t address = address_of(&rows[i], page) + random % UNWIND_PAGE_BYTES;
        if (random & 0x80)
            unwind_pool_load(&fixture->pool, files[i], &rows[i], address);
        int rule = look_up(fixture, files[i], &rows[i], address);
        if (rule >= 0)
            assert_int_equal(rule, 100 + i);
        found += rule >= 0;
        fixture->tables.slots_used[random % SLOTS]++;
    }
    assert_true(found > 1000);
    assert_true(fixture->pool.evictions > 100);
    for (int i = 0; i < 5; i++)
        free_rows(&rows[i]);
}

static void small_files_come_as_a_whole(void **state)
{
    struct fixture *fixture = *state;
    struct unwind_rows small = make_rows(45, 100, 3), large = make_rows(200, 100, 4);
    uint32_t file = unwind_pool_add_file(&fixture->pool, &small);
    assert_true(unwind_pool_load_all(&fixture->pool, file, &small));
    for (uint32_t page = 0; page < 45; page++)
        assert_int_equal(look_up(fixture, file, &small, address_of(&small, page)), 3);
    file = unwind_pool_add_file(&fixture->pool, &large);
    assert_false(unwind_pool_load_all(&fixture->pool, file, &large));
    free_rows(&small);
    free_rows(&large);
}

static void lists_rest_before_they_are_used_again(void **state)
{
    struct fixture *fixture = *state;
    struct unwind_pool *pool = &fixture->pool;
    struct bpf_mapping mappings[3] = {{.start = 1, .end = 2}, {.start = 3, .end = 4, .segment = 5}};
    struct pool_list *one = unwind_pool_add_list(pool, mappings, 2, 0);
    struct pool_list *two = unwind_pool_add_list(pool, mappings, 3, 0);
    assert_int_not_equal(one->described.list, two->described.list);
    assert_int_equal(fixture->tables.mappings[one->described.first + 1].segment, 5);
    assert_int_equal(fixture->tables.mappings[one->described.first].list, one->described.list);
    uint32_t place = one->described.first, number = one->described.list;
    one->users++; /* a child has the same */
    unwind_pool_leave_list(pool, one, 10);
    unwind_pool_leave_list(pool, one, 10);
    struct pool_list *soon = unwind_pool_add_list(pool, mappings, 2, 20);
    assert_int_not_equal(soon->described.first, place);
    assert_int_equal(fixture->tables.mappings[place].list, number);
    struct pool_list *later = unwind_pool_add_list(pool, mappings, 2, 10 + POOL_REST_NS);
    assert_int_equal(later->described.first, place);
    assert_int_not_equal(fixture->tables.mappings[place].list, number);
    /* After a reset, lists of before are still left, and their places are not given out twice. */
    unwind_pool_reset(pool);
    assert_int_equal(fixture->tables.mappings[place].list, 0);
    struct pool_list *fresh = unwind_pool_add_list(pool, mappings, 2, 5 * (int64_t)POOL_REST_NS);
    assert_int_equal(fresh->described.first, 0);
    assert_true(fresh->described.list > later->described.list);
    unwind_pool_leave_list(pool, two, 0);
    unwind_pool_leave_list(pool, soon, 0);
    unwind_pool_leave_list(pool, later, 0);
    struct pool_list *other = unwind_pool_add_list(pool, mappings, 2, 9 * (int64_t)POOL_REST_NS);
    assert_int_not_equal(other->described.first, fresh->described.first);
    unwind_pool_leave_list(pool, fresh, 0);
    unwind_pool_leave_list(pool, other, 0);
    unwind_pool_leave_list(pool, NULL, 0);
}

static void full_tables_say_so(void **state)
{
    struct fixture *fixture = *state;
    struct unwind_pool *pool = &fixture->pool;
    static struct bpf_mapping mappings[30000];
    struct pool_list *lists[3] = {0};
    size_t count = 0;
    while (count < 3 && (lists[count] = unwind_pool_add_list(pool, mappings, 30000, 0)))
        count++;
    assert_int_equal(count, 2);
    assert_true(pool->full);
    for (size_t i = 0; i < count; i++)
        unwind_pool_leave_list(pool, lists[i], 0);
    unwind_pool_reset(pool);
    assert_false(pool->full);

    struct unwind_rows rows = make_rows(1, 1, 1);
    rows.page_count = BPF_DIRECTORY_MAX + 1; /* nothing of it is read */
    assert_int_equal(unwind_pool_add_file(pool, &rows), 0);
    assert_true(pool->full);
    free_rows(&rows);
}

/* What is found out of a segment later reaches the lists that were there before. */
static void segments_begin_without_rows(void **state)
{
    struct fixture *fixture = *state;
    struct unwind_pool *pool = &fixture->pool;
    struct unwind_rows rows = make_rows(10, 10, 1);
    uint32_t file = unwind_pool_add_file(pool, &rows);
    struct bpf_mapping mappings[] = {
        {.segment = 3}, {.segment = 2}, {.segment = 3}, {.segment = 4}};
    struct pool_list *list = unwind_pool_add_list(pool, mappings, 4, 0);
    const struct bpf_mapping *made = fixture->tables.mappings + list->described.first;
    assert_false(unwind_pool_knows_segment(pool, 3));
    assert_int_equal(made[0].rows.state, BPF_SEGMENT_EMPTY);
    unwind_pool_set_segment(pool, 3, file, &rows);
    unwind_pool_set_segment(pool, 2, 0, NULL);
    assert_true(unwind_pool_knows_segment(pool, 3));
    for (int i = 0; i < 3; i += 2) {
        assert_int_equal(made[i].rows.state, BPF_SEGMENT_ROWS);
        assert_int_equal(made[i].rows.first_page, 0x400);
        assert_int_equal(made[i].rows.page_count, 10);
    }
    assert_int_equal(made[1].rows.state, BPF_SEGMENT_NO_ROWS);
    assert_int_equal(made[3].rows.state, BPF_SEGMENT_EMPTY);
    struct pool_list *next = unwind_pool_add_list(pool, mappings, 4, 0);
    made = fixture->tables.mappings + next->described.first;
    assert_int_equal(made[2].rows.state, BPF_SEGMENT_ROWS);
    unwind_pool_leave_list(pool, list, 0);
    unwind_pool_leave_list(pool, next, 0);
    free_rows(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loads_what_is_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(every_row_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(the_least_recently_used_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(never_another_files_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(small_files_come_as_a_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_rest_before_they_are_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(full_tables_say_so, setup, teardown),
        cmocka_unit_test_setup_teardown(segments_begin_without_rows, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
