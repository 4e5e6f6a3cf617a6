// SPDX-License-Identifier: Apache-2.0
// Name maps: what source maps and mapping files say, which of them is whose, what is refused, and
// what damage does to one that is kept.

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "symbol/maps/build.h"
#include "symbol/maps/store.h"
#include "unit.h"

static const struct symbol_map_key key = {"one", "shop", "1.0", "app.js"};

static int build_bytes(const void *bytes, size_t length, struct buffer *built, struct error *error)
{
    struct source source;
    assert_int_equal(source_open_memory(&source, "test", bytes, length, 0, error), 0);
    int r = symbol_map_build(&source, &key, 7, built, error);
    source_release(&source);
    return r;
}

static int build(const char *text, struct buffer *built, struct error *error)
{
    return build_bytes(text, strlen(text), built, error);
}

static void open_text(const char *text, struct buffer *built, struct symbol_map *map)
{
    struct error error = {0};
    if (build(text, built, &error) < 0 ||
        symbol_map_open_memory(built->data, built->length, map, &error) < 0)
        fail_msg("%s", error.text);
}

/* ---- source maps ---- */

static void assert_place(const struct symbol_map *map, uint32_t line, uint32_t column,
                         const char *wanted)
{
    struct symbol_map_position at;
    char text[256] = "nothing";
    if (symbol_map_find(map, line, column, &at))
        snprintf(text, sizeof(text), "%s:%u:%u %s", at.source, at.line, at.column,
                 at.name ? at.name : "-");
    assert_string_equal(text, wanted);
}

static void test_positions(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer built = {0};
    struct symbol_map map;
    /* 1: 0 -> a.ts:1:1 "first", 4 -> a.ts:1:5; 2: nothing; 3: 2 -> b.ts:3:1, 8 -> nobody's. */
    open_text(")]}'\n{\"version\":3,\"mappings\":\"AAAAA,IAAI;;ECEJ,M\",\"sourceRoot\":\"src\","
              "\"sourcesContent\":[\"x\",null],\"x_google_ignoreList\":[1],\"ignoreList\":[0],"
              "\"names\":[\"first\"],\"sources\":[\"a.ts\",\"b.ts\"]}",
              &built, &map);
    assert_int_equal(map.header->kind, SYMBOL_MAP_JAVASCRIPT);
    assert_int_equal(map.header->added, 7);
    assert_string_equal(symbol_map_text(&map, map.header->name), "app.js");
    assert_place(&map, 1, 1, "src/a.ts:1:1 first");
    assert_place(&map, 1, 4, "src/a.ts:1:1 first");
    assert_place(&map, 1, 5, "src/a.ts:1:5 -");
    assert_place(&map, 1, 5000, "src/a.ts:1:5 -");
    assert_place(&map, 2, 1, "nothing");
    assert_place(&map, 3, 2, "nothing");
    assert_place(&map, 3, 3, "src/b.ts:3:1 -");
    assert_place(&map, 3, 9, "nothing");
    assert_place(&map, 4, 1, "nothing");
    assert_place(&map, 0, 1, "nothing");
    assert_place(&map, 1, 0, "nothing");
    struct symbol_map_position at;
    assert_true(symbol_map_find_line(&map, 1, &at));
    assert_int_equal(at.line, 1);
    assert_true(symbol_map_find_line(&map, 3, &at));
    assert_string_equal(at.source, "src/b.ts");
    assert_false(symbol_map_find_line(&map, 2, &at));
}

static void test_line_of_two(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer built = {0};
    struct symbol_map map;
    struct symbol_map_position at;
    open_text("{\"version\":3,\"mappings\":\"AAAA,IACA\",\"names\":[],\"sources\":[\"a.ts\"]}",
              &built, &map);
    assert_false(symbol_map_find_line(&map, 1, &at));
    assert_place(&map, 1, 5, "a.ts:2:1 -");
}

static void test_unsorted(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer built = {0};
    struct symbol_map map;
    /* Column 4 first, then 4 back to 0, and 4 again: the last of equal ones counts. */
    open_text("{\"version\":3,\"mappings\":\"IAAA,JACA,IACA\",\"names\":[],\"sources\":[\"a\"]}",
              &built, &map);
    assert_place(&map, 1, 1, "a:2:1 -");
    assert_place(&map, 1, 5, "a:3:1 -");
}

static void test_sections(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer built = {0};
    struct symbol_map map;
    open_text(
        "{\"version\":3,\"file\":\"all.js\",\"sections\":["
        "{\"offset\":{\"line\":0,\"column\":0},\"map\":{\"version\":3,\"names\":[\"x\"],"
        "\"sources\":[\"a.ts\"],\"mappings\":\"AAAAA\"}},"
        "{\"map\":{\"version\":3,\"sourceRoot\":\"lib/\",\"names\":[\"y\"],\"sources\":[null,"
        "\"b.ts\"],\"mappings\":\"ACAAA;AACA,EDAA\"},\"offset\":{\"column\":10,\"line\":2}}]}",
        &built, &map);
    assert_place(&map, 1, 1, "a.ts:1:1 x");
    assert_place(&map, 3, 10, "nothing");
    assert_place(&map, 3, 11, "lib/b.ts:1:1 y");
    assert_place(&map, 4, 1, "lib/b.ts:2:1 -"); /* only a section's first line is moved */
    assert_place(&map, 4, 3, "nothing");        /* null says that nobody knows */
}

/* As esbuild writes it; columns of functions as V8 gives them. */
static void test_function_names(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer built = {0};
    struct symbol_map map;
    /* function p(e){}var w=e=>{},h={on:e=>{}};class u{go(e){}}
     * tokens: 9 p "mixBits"; 11 e "bits"; 19 w "trips"; 21 e "count"; 27 h "table"; 30 on; 33 e
     * "n"; 46 u "Shop"; 48 go; 51 e "a" */
    open_text("{\"version\":3,\"sources\":[\"a.ts\"],\"names\":[\"mixBits\",\"bits\",\"trips\","
              "\"count\",\"table\",\"n\",\"Shop\",\"a\"],\"mappings\":"
              "\"SAAAA,EAAAC,QAAAC,EAAAC,MAAAC,GAAA,GAAAC,aAAAC,EAAA,GAAAC\"}",
              &built, &map);
    assert_string_equal(symbol_map_function(&map, 1, 11, "p"), "mixBits");
    assert_string_equal(symbol_map_function(&map, 1, 22, "w"), "trips"); /* and not "count" */
    assert_null(symbol_map_function(&map, 1, 34, "on"));                 /* and not "n" */
    assert_null(symbol_map_function(&map, 1, 34, "h.on"));
    assert_null(symbol_map_function(&map, 1, 51, "go"));
    assert_null(symbol_map_function(&map, 1, 1, "p"));
    assert_null(symbol_map_function(&map, 2, 11, "p"));
    assert_null(symbol_map_function(&map, 1, 11, ""));
}

static void test_bad_source_maps(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{", "end of the data"},
        {"{}", "no mappings"},
        {"{\"version\":2,\"mappings\":\"\"}", "version is 2"},
        {"{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"AA\"}", "not in a valid segment"},
        {"{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"AAA\"}", "not in a valid segment"},
        {"{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"AAAAAA\"}", "not in a valid segment"},
        {"{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"A!\"}", "not in a valid segment"},
        {"{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"Ag\"}", "not in a valid segment"},
        {"{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"ACAA\"}", "not in a valid segment"},
        {"{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"AAAAA\"}", "not in a valid segment"},
        {"{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"DAAA\"}", "not in a valid segment"},
        {"{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"AADA\"}", "not in a valid segment"},
        {"{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"ggggggggA\"}",
         "not in a valid segment"},
        {"{\"version\":3,\"sources\":[\"a\"],\"sources\":[],\"mappings\":\"\"}", "second list"},
        {"{\"version\":3,\"sections\":[],\"mappings\":\"\"}", "both"},
        {"{\"version\":3,\"sections\":[{\"url\":\"x\"}]}", "another file"},
        {"{\"version\":3,\"sections\":[{\"map\":{\"sections\":[]}}]}", "nested sections"},
        {"{\"version\":3,\"sections\":[{\"offset\":{\"line\":99999999}}]}", "beyond"},
        {"{\"version\":3,\"mappings\":\"\"} x", "offset"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        struct buffer built = {0};
        struct error error = {0};
        assert_int_not_equal(build(bad[i].text, &built, &error), 0);
        assert_says(&error, bad[i].says);
        assert_int_equal(built.length, 0);
    }
    _cleanup_buffer_ struct buffer lines = {0}, built = {0};
    struct error error = {0};
    buffer_add_text(&lines, "{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"");
    for (size_t i = 0; i <= SYMBOL_MAP_LINES_MAX; i++)
        buffer_add_char(&lines, ';');
    buffer_add_text(&lines, "AAAA\"}");
    assert_int_equal(build_bytes(lines.data, lines.length, &built, &error), -E2BIG);
    assert_says(&error, "lines");
}

/* ---- mapping files ---- */

static const char r8[] =
    "# compiler: R8\n"
    "# {\"id\":\"com.android.tools.r8.mapping\",\"version\":\"2.2\"}\n"
    "com.example.Cart -> a.b:\n"
    "# {\"id\":\"sourceFile\",\"fileName\":\"Cart.kt\"}\n"
    "    int total -> a\n"
    "    1:3:void <init>():10:12 -> <init>\n"
    "    1:1:int com.example.Price.round(int):88:88 -> a\n"
    "    1:1:int sum(java.util.List):41 -> a\n"
    "    1:1:void checkout():20 -> a\n"
    "    2:4:void checkout():21:23 -> a\n"
    "    # {\"id\":\"com.android.tools.r8.residualsignature\",\"signature\":\"()V\"}\n"
    "    5:9:void clear():30:34 -> a\n"
    "    void add(com.example.Item) -> b\n"
    "    void remove(com.example.Item) -> b\n"
    "    boolean add(com.example.Item,int) -> c\n"
    "    void add(com.example.Item) -> c\n"
    "    7:8:void lines() -> d\n"
    "com.example.Price -> a.c:\n";

static void assert_method(const struct symbol_map *map, const char *name, uint32_t line,
                          const char *wanted)
{
    struct symbol_map_frame frames[SYMBOL_MAP_FRAMES_MAX];
    struct arena arena = {0};
    _cleanup_buffer_ struct buffer text = {0};
    size_t count = symbol_map_method(map, name, line, &arena, frames, SYMBOL_MAP_FRAMES_MAX);
    for (size_t i = 0; i < count; i++)
        buffer_printf(&text, "%s%s %s:%u", i ? " > " : "", frames[i].function,
                      frames[i].file ? frames[i].file : "-", frames[i].line);
    assert_string_equal(buffer_text(&text), wanted);
    arena_release(&arena);
}

static void test_methods(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer built = {0};
    struct symbol_map map;
    open_text(r8, &built, &map);
    assert_int_equal(map.header->kind, SYMBOL_MAP_JVM);
    assert_string_equal(symbol_map_text(&map, map.header->name), "");
    assert_method(&map, "a.b.<init>", 2, "com.example.Cart.<init> Cart.kt:11");
    assert_method(&map, "a/b.<init>", 2, "com.example.Cart.<init> Cart.kt:11");
    /* What was inlined is frames of its own, the outermost first; the file is the class's. */
    assert_method(&map, "a.b.a", 1,
                  "com.example.Cart.checkout Cart.kt:20 > com.example.Cart.sum Cart.kt:41 > "
                  "com.example.Price.round -:88");
    assert_method(&map, "a.b.a", 3, "com.example.Cart.checkout Cart.kt:22");
    assert_method(&map, "a.b.a", 9, "com.example.Cart.clear Cart.kt:34");
    /* No line, or one that isn't there: any of them, named once. */
    assert_method(&map, "a.b.a", 0, "com.example.Cart.checkout|clear Cart.kt:0");
    assert_method(&map, "a.b.a", 4000, "com.example.Cart.checkout|clear Cart.kt:0");
    assert_method(&map, "a.b.b", 0, "com.example.Cart.add|remove Cart.kt:0");
    assert_method(&map, "a.b.c", 17, "com.example.Cart.add Cart.kt:17"); /* overloads: one name */
    assert_method(&map, "a.b.d", 8, "com.example.Cart.lines Cart.kt:8");
    assert_method(&map, "a.b.kept", 5, "com.example.Cart.kept Cart.kt:5");
    assert_method(&map, "a.c.x", 5, "com.example.Price.x -:5");
    assert_method(&map, "a.d.x", 5, "");
    assert_method(&map, "ab", 5, "");
    assert_method(&map, ".ab", 5, "");
    assert_method(&map, "", 5, "");
}

static void test_many_candidates(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer built = {0};
    struct symbol_map map;
    open_text("x.Y -> a:\n void p() -> a\n void q() -> a\n void other.Z.r() -> a\n void s() -> a\n"
              " void t() -> a\nx.Old -> b:\nx.New -> b:\n",
              &built, &map);
    assert_method(&map, "a.a", 0, "x.Y.p|q|other.Z.r|x.Y.s|… -:0");
    assert_method(&map, "b.m", 0, "x.New.m -:0");
}

static void test_bad_mapping_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "no class"},
        {"# only a comment\n", "no class"},
        {"hello world\n", "is not a class"},
        {"    void a() -> b\n", "is not a member"},
        {"x.Y -> a:\n    void a()\n", "Line 2"},
        {"x.Y -> :\n", "is not a class"},
        {"\x7f"
         "ELF\x02\x01\x01",
         "is not a class"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        struct buffer built = {0};
        struct error error = {0};
        assert_int_equal(build(bad[i].text, &built, &error), -EBADMSG);
        assert_says(&error, bad[i].says);
    }
    /* Numbers that are none, brackets the wrong way round and ranges backwards are no ranges. */
    _cleanup_buffer_ struct buffer built = {0};
    struct symbol_map map;
    open_text("x.Y -> a:\n  9:1:void m() -> a\n  99999999999:2:void n():x -> b\n  int )( -> c\n"
              "  1:2:f -> d\n",
              &built, &map);
    assert_method(&map, "a.a", 1, "x.Y.m -:1");
    assert_method(&map, "a.b", 1, "x.Y.n -:1");
    assert_method(&map, "a.c", 1, "x.Y.c -:1");
}

/* ---- what is kept ---- */

/* Whatever byte is changed, it is noticed; and with the checksum made good, nothing is read that
 * isn't there. */
static void damage(const char *text)
{
    _cleanup_buffer_ struct buffer built = {0};
    struct error error = {0};
    struct symbol_map map;
    assert_int_equal(build(text, &built, &error), 0);
    for (size_t i = 0; i < built.length; i++) {
        uint8_t *bytes = memory_alloc(built.length);
        memcpy(bytes, built.data, built.length);
        bytes[i] ^= 0x55;
        assert_true(symbol_map_open_memory(bytes, built.length, &map, NULL) < 0);
        struct symbol_map_header *header = (struct symbol_map_header *)bytes;
        header->checksum = symbol_map_checksum(bytes, built.length);
        if (symbol_map_open_memory(bytes, built.length, &map, NULL) == 0) {
            struct symbol_map_frame frames[SYMBOL_MAP_FRAMES_MAX];
            struct symbol_map_position at;
            struct arena arena = {0};
            for (uint32_t line = 0; line < 6; line++) {
                symbol_map_find(&map, line, 5, &at);
                symbol_map_find_line(&map, line, &at);
                symbol_map_function(&map, line, 9, "p");
                symbol_map_method(&map, "a.b.a", line, &arena, frames, SYMBOL_MAP_FRAMES_MAX);
            }
            arena_release(&arena);
        }
        free(bytes);
    }
    for (size_t i = 0; i < built.length; i++) {
        uint8_t *bytes = memory_alloc(i + 1);
        memcpy(bytes, built.data, i);
        assert_true(symbol_map_open_memory(bytes, i, &map, NULL) < 0);
        free(bytes);
    }
}

static void test_damage(void **state)
{
    (void)state;
    damage("{\"version\":3,\"mappings\":\"AAAAA,IAAI;;ECEJ,M\",\"names\":[\"first\"],"
           "\"sources\":[\"a.ts\",\"b.ts\"]}");
    damage(r8);
}

/* ---- the store ---- */

static const char one_map[] =
    "{\"version\":3,\"sources\":[\"one.ts\"],\"names\":[],\"mappings\":\"AAAA\"}";
static const char two_map[] =
    "{\"version\":3,\"sources\":[\"two.ts\"],\"names\":[],\"mappings\":\"AAAA\"}";

static struct symbol_maps *open_maps(uint64_t total, int64_t unused_ns)
{
    struct symbol_maps *maps = NULL;
    struct error error = {0};
    struct symbol_maps_options options = {
        .directory = "maps", .total_bytes_max = total, .unused_ns = unused_ns};
    if (symbol_maps_open(&options, &maps, &error) < 0)
        fail_msg("%s", error.text);
    return maps;
}

static int put(struct symbol_maps *maps, const struct symbol_map_key *whose, const char *text,
               struct error *error)
{
    struct source source;
    assert_int_equal(source_open_memory(&source, "test", text, strlen(text), 0, error), 0);
    int r = symbol_maps_put(maps, &source, whose, NULL, NULL, error);
    source_release(&source);
    return r;
}

static void assert_map(struct symbol_maps *maps, const struct symbol_map_key *whose,
                       const char *file, const char *wanted)
{
    struct symbol_map_use *use = symbol_maps_javascript(maps, whose, file);
    struct symbol_map_position at = {.source = "none"};
    if (use)
        assert_true(symbol_map_find(&use->map, 1, 1, &at));
    assert_string_equal(at.source, wanted);
    symbol_maps_give_back(maps, use);
}

static int count_entry(void *context, const struct symbol_maps_entry *entry)
{
    buffer_printf(context, "%s %s %s;", entry->service, entry->version, entry->name);
    return 0;
}

static void test_store(void **state)
{
    (void)state;
    struct symbol_maps *maps = open_maps(0, 0);
    struct error error = {0};
    struct symbol_map_key whose = {"one", "shop", "1.0", "assets/app.js"};
    assert_int_equal(put(maps, &whose, one_map, &error), 0);
    assert_map(maps, &whose, "https://shop.example/static/assets/app.js?v=3", "one.ts");
    assert_map(maps, &whose, "/srv/app.js", "one.ts");
    assert_map(maps, &whose, "app.js", "one.ts");
    assert_map(maps, &whose, "/srv/myapp.js", "none");
    assert_map(maps, &whose, "", "none");
    /* Two of one name: the longer end wins, and a tie is nobody's. */
    struct symbol_map_key other = whose;
    other.name = "admin/app.js";
    assert_int_equal(put(maps, &other, two_map, &error), 0);
    assert_map(maps, &whose, "/srv/assets/app.js", "one.ts");
    assert_map(maps, &whose, "/srv/admin/app.js", "two.ts");
    assert_map(maps, &whose, "/srv/app.js", "none");
    /* Others don't see it. */
    assert_map(maps, &(struct symbol_map_key){"two", "shop", "1.0", ""}, "assets/app.js", "none");
    assert_map(maps, &(struct symbol_map_key){"one", "shop", "1.1", ""}, "assets/app.js", "none");
    assert_map(maps, &(struct symbol_map_key){"one", "sho", "p1.0", ""}, "assets/app.js", "none");
    assert_null(symbol_maps_jvm(maps, &whose));
    /* The newest counts, and who has the old one open keeps it. */
    struct symbol_map_use *old = symbol_maps_javascript(maps, &whose, "assets/app.js");
    assert_int_equal(put(maps, &whose, two_map, &error), 0);
    assert_map(maps, &whose, "assets/app.js", "two.ts");
    struct symbol_map_position at;
    assert_true(symbol_map_find(&old->map, 1, 1, &at));
    assert_string_equal(at.source, "one.ts");
    symbol_maps_give_back(maps, old);
    assert_int_equal(put(maps, &(struct symbol_map_key){"one", "shop", "1.0", ""}, r8, &error), 0);
    struct symbol_map_use *jvm = symbol_maps_jvm(maps, &whose);
    assert_non_null(jvm);
    symbol_maps_give_back(maps, jvm);
    symbol_maps_close(maps);

    maps = open_maps(0, 0);
    assert_map(maps, &whose, "assets/app.js", "two.ts");
    _cleanup_buffer_ struct buffer list = {0};
    symbol_maps_list(maps, "one", count_entry, &list);
    assert_string_equal(buffer_text(&list),
                        "shop 1.0 ;shop 1.0 admin/app.js;shop 1.0 assets/app.js;");
    list.length = 0;
    symbol_maps_list(maps, "two", count_entry, &list);
    assert_int_equal(list.length, 0);
    symbol_maps_close(maps);
}

static int copy_id(void *context, const struct symbol_maps_entry *entry)
{
    strcpy(context, entry->id);
    return 1;
}

static void test_refused(void **state)
{
    (void)state;
    struct symbol_maps *maps = open_maps(0, 0);
    struct error error = {0};
    char id[SYMBOL_MAP_ID_BYTES] = "";
    assert_int_equal(put(maps, &(struct symbol_map_key){"one", "", "", "a"}, one_map, &error),
                     -EINVAL);
    assert_int_equal(put(maps, &(struct symbol_map_key){"one", "s", "", ""}, one_map, &error),
                     -EINVAL);
    assert_says(&error, "name of the generated file");
    assert_int_equal(put(maps, &key, "{", &error), -EBADMSG);
    assert_int_equal(symbol_maps_stats(maps).refused, 3);
    assert_int_equal(symbol_maps_stats(maps).entries, 0);
    assert_int_equal(put(maps, &key, one_map, &error), 0);
    symbol_maps_list(maps, "one", copy_id, id);
    assert_int_equal(symbol_maps_delete(maps, "two", id, &error), -ENOENT);
    assert_int_equal(symbol_maps_delete(maps, "one", "../x", &error), -ENOENT);
    assert_int_equal(symbol_maps_delete(maps, "one", id, &error), 0);
    assert_int_equal(symbol_maps_delete(maps, "one", id, &error), -ENOENT);
    assert_map(maps, &key, "app.js", "none");
    symbol_maps_close(maps);
}

static void set_used(const char *id, time_t when)
{
    char path[64];
    snprintf(path, sizeof(path), "maps/%s", id);
    struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* What was used longest ago goes first, for room and after a time. */
static void test_room(void **state)
{
    (void)state;
    struct symbol_maps *maps = open_maps(0, 0);
    struct error error = {0};
    char id[SYMBOL_MAP_ID_BYTES] = "";
    struct symbol_map_key first = {"one", "a", "", "a.js"}, second = {"one", "b", "", "b.js"};
    assert_int_equal(put(maps, &first, one_map, &error), 0);
    uint64_t bytes = symbol_maps_stats(maps).bytes;
    symbol_maps_list(maps, "one", copy_id, id);
    symbol_maps_close(maps);
    set_used(id, time(NULL) - 1000);

    maps = open_maps(bytes + 8, 0);
    assert_int_equal(put(maps, &second, one_map, &error), 0);
    assert_map(maps, &first, "a.js", "none");
    assert_map(maps, &second, "b.js", "one.ts");
    assert_int_equal(symbol_maps_stats(maps).removed, 1);
    assert_int_equal(put(maps, &first, r8, &error), -ENOSPC);
    assert_says(&error, "maps_limit");
    symbol_maps_list(maps, "one", copy_id, id);
    symbol_maps_close(maps);

    set_used(id, time(NULL) - 1000);
    maps = open_maps(0, 2000 * 1000000000ll);
    symbol_maps_maintain(maps);
    assert_int_equal(symbol_maps_stats(maps).entries, 1);
    symbol_maps_close(maps);
    maps = open_maps(0, 500 * 1000000000ll);
    symbol_maps_maintain(maps);
    assert_int_equal(symbol_maps_stats(maps).entries, 0);
    assert_true(access("maps", F_OK) == 0);
    symbol_maps_close(maps);
}

/* Files that are damaged, called otherwise or half written are nobody's. */
static void test_damaged_file(void **state)
{
    (void)state;
    struct symbol_maps *maps = open_maps(0, 0);
    struct error error = {0};
    char id[SYMBOL_MAP_ID_BYTES] = "", path[64], other[64];
    _cleanup_buffer_ struct buffer content = {0};
    assert_int_equal(put(maps, &key, one_map, &error), 0);
    symbol_maps_list(maps, "one", copy_id, id);
    snprintf(path, sizeof(path), "maps/%s", id);
    snprintf(other, sizeof(other), "maps/%.31s%c", id, id[31] == '0' ? '1' : '0');
    assert_int_equal(file_read(path, 1 << 20, &content, &error), 0);
    content.data[content.length / 2] ^= 1;
    assert_int_equal(file_write_atomic(path, content.data, content.length, &error), 0);
    assert_map(maps, &key, "app.js", "none"); /* noticed when it is opened */
    assert_int_equal(symbol_maps_stats(maps).entries, 0);
    assert_int_equal(access(path, F_OK), -1);
    content.data[content.length / 2] ^= 1;
    assert_int_equal(file_write_atomic(other, content.data, content.length, &error), 0);
    assert_int_equal(file_write_atomic("maps/half.XXXXXX", "x", 1, &error), 0);
    symbol_maps_close(maps);
    maps = open_maps(0, 0);
    assert_int_equal(symbol_maps_stats(maps).entries, 0);
    assert_int_equal(access(other, F_OK), -1);
    assert_int_equal(access("maps/half.XXXXXX", F_OK), -1);
    symbol_maps_close(maps);
}

/* More than can be open at once are closed by age, and still answer. */
static void test_cache(void **state)
{
    (void)state;
    struct symbol_maps *maps = open_maps(0, 0);
    struct error error = {0};
    char name[32];
    struct symbol_map_key whose = {"one", "shop", "1.0", name};
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < SYMBOL_MAPS_OPEN_MAX + 20; i++) {
            snprintf(name, sizeof(name), "chunk-%d.js", i);
            if (!round)
                assert_int_equal(put(maps, &whose, one_map, &error), 0);
            assert_map(maps, &whose, name, "one.ts");
            assert_true(symbol_maps_stats(maps).open <= SYMBOL_MAPS_OPEN_MAX);
        }
    symbol_maps_close(maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_line_of_two),
        cmocka_unit_test(test_unsorted),
        cmocka_unit_test(test_sections),
        cmocka_unit_test(test_function_names),
        cmocka_unit_test(test_bad_source_maps),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_many_candidates),
        cmocka_unit_test(test_bad_mapping_files),
        cmocka_unit_test(test_damage),
        cmocka_unit_test_setup_teardown(test_store, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_refused, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_room, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_damaged_file, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_cache, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
