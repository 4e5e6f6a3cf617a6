// SPDX-License-Identifier: Apache-2.0
// Pictures: the flame-data document, the page around it and the SVG. Names are hostile, and what is
// written must be well-formed whatever they hold.

#include <math.h>

#include "base/memory.h"
#include "base/text.h"
#include "format/format.h"
#include "format/picture/page.h"
#include "format/picture/pictures.h"
#include "format/picture/svg.h"
#include "profile/units.h"
#include "unit.h"

/* Reads folded stacks, the shortest way to write a profile down. */
static void read_folded(const char *text, struct profile *profile)
{
    const struct read_options options = {.format = &format_folded};
    struct error error = {0};
    profile_init(profile, PROFILE_ALL);
    if (format_read_memory("test", text, strlen(text), &options, profile, NULL, &error) < 0)
        fail_msg("%s", error.text);
}

static void add_to(struct calltree *tree, const char *folded, enum calltree_side side)
{
    _cleanup_profile_ struct profile profile;
    read_folded(folded, &profile);
    assert_int_equal(calltree_add(tree, &profile, side, NULL), 0);
}

/* A profile with one stack whose frames have any bytes as names. */
static void make_hostile(struct profile *profile)
{
    static const struct profile_string names[] = {
        {"</script><script>alert(1)</script>", 34},
        {"<!--ASSAY-TITLE-->", 18},
        {"]]>&\"'<title>", 13},
        {"nul\0tab\tnewline\nescape\033[31m", 27},
        {"\xff\xfe invalid \xc0\xaf", 13},
        {"\xef\xbf\xbf\xef\xbf\xbe\xed\xa0\x80\x7f", 10},
        {"\xe6\xa4\x9c\xe7\xb4\xa2\xf0\x9f\x94\xa5", 10},
        {" ", 1},
    };
    profile_init(profile, PROFILE_ALL);
    unsigned type = profile_type(profile, profile_cstring(profile, "cpu<&\""),
                                 profile_cstring(profile, "<nano>\001"));
    uint32_t mapping = profile_mapping(
        profile, &(struct profile_mapping){.file = profile_cstring(profile, "/x/<b>&\"'.so")});
    uint32_t frames[ARRAY_LENGTH(names)];
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        uint32_t name = profile_string(profile, names[i].data, names[i].length);
        frames[i] = profile_frame(
            profile, &(struct profile_frame){.function = profile_function(
                                                 profile, &(struct profile_function){.name = name}),
                                             .mapping = mapping});
    }
    size_t row =
        profile_sample(profile, profile_stack(profile, frames, ARRAY_LENGTH(names)), 0, 0, 0);
    profile_add_value(profile, row, type, 1000);
}

/* ---- a checker for XML: tags nest, attributes are quoted, text holds only legal characters ----
 */

struct xml {
    const char *at, *end;
    char open[64][16];
    size_t depth;
    size_t elements, titles;
};

static void check_text(const char *from, const char *to)
{
    assert_true(utf8_valid(from, (size_t)(to - from)));
    for (const char *c = from; c < to; c++) {
        assert_true((unsigned char)*c >= 0x20 || *c == '\n');
        assert_true(*c != '<');
        if ((unsigned char)*c == 0xef && (unsigned char)c[1] == 0xbf)
            assert_true((unsigned char)c[2] < 0xbe);
        if (*c == '&') {
            static const char *const known[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#"};
            bool fine = false;
            for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
                fine |= !strncmp(c, known[i], strlen(known[i]));
            assert_true(fine);
        }
    }
}

static void check_tag(struct xml *xml)
{
    const char *from = xml->at + 1, *to = memchr(from, '>', (size_t)(xml->end - from));
    assert_non_null(to);
    xml->at = to + 1;
    if (*from == '?')
        return;
    bool closing = *from == '/', empty = to[-1] == '/';
    from += closing;
    char name[16] = {0};
    for (size_t i = 0; from < to && *from >= 'a' && *from <= 'z'; from++)
        name[i++ < 15 ? i - 1 : 15] = *from;
    assert_true(name[0]);
    if (closing) {
        assert_true(xml->depth > 0);
        assert_string_equal(xml->open[--xml->depth], name);
        return;
    }
    xml->elements++;
    xml->titles += !strcmp(name, "title");
    for (to -= empty; from < to;) {
        assert_true(*from++ == ' ');
        const char *quote = memchr(from, '"', (size_t)(to - from));
        assert_true(quote && quote[-1] == '=');
        const char *last = memchr(quote + 1, '"', (size_t)(to - quote - 1));
        assert_non_null(last);
        check_text(quote + 1, last);
        from = last + 1;
    }
    if (!empty) {
        assert_true(xml->depth < ARRAY_LENGTH(xml->open));
        strcpy(xml->open[xml->depth++], name);
    }
}

static struct xml check_xml(const struct buffer *document)
{
    struct xml xml = {.at = document->data, .end = document->data + document->length};
    while (xml.at < xml.end) {
        if (*xml.at == '<') {
            check_tag(&xml);
            continue;
        }
        const char *next = memchr(xml.at, '<', (size_t)(xml.end - xml.at));
        if (!next)
            next = xml.end;
        check_text(xml.at, next);
        xml.at = next;
    }
    assert_int_equal(xml.depth, 0);
    return xml;
}

/* ---- numbers ---- */

static void assert_units(double value, const char *unit, const char *expected)
{
    _cleanup_buffer_ struct buffer out = {0};
    units_add(&out, &units_picture, value, unit);
    assert_string_equal(buffer_text(&out), expected);
}

static void test_quantities(void **state)
{
    (void)state;
    assert_units(0, "nanoseconds", "0\u00a0ns");
    assert_units(999, "nanoseconds", "999\u00a0ns");
    assert_units(1500, "nanoseconds", "1.50\u00a0µs");
    assert_units(-12.3e6, "nanoseconds", "\u221212.3\u00a0ms");
    assert_units(90e9, "nanoseconds", "90\u00a0s");
    assert_units(600e9, "nanoseconds", "10\u00a0min");
    assert_units(1536, "bytes", "1.50\u00a0KiB");
    assert_units(12034, "count", "12,034");
    assert_units(2.5e6, "count", "2.50\u00a0M");
    assert_units(7, "widgets", "7\u00a0widgets");
    _cleanup_buffer_ struct buffer out = {0};
    const double shares[] = {0, 0.00001, 0.0123, 0.5, 0.99994, 1, -0.25};
    for (size_t i = 0; i < ARRAY_LENGTH(shares); i++) {
        units_add_percent(&out, &units_picture, shares[i]);
        buffer_add_char(&out, ' ');
    }
    assert_string_equal(buffer_text(&out), "0% <0.01% 1.23% 50.0% 100% 100% \u221225.0% ");
    out.length = 0;
    const double pairs[][2] = {{1, 1}, {0, 1}, {1, 0}, {4, 5}, {4, 3}, {1, 40}, {0, 0}};
    for (size_t i = 0; i < ARRAY_LENGTH(pairs); i++) {
        units_add_growth(&out, &units_picture, pairs[i][0], pairs[i][1]);
        buffer_add_char(&out, ' ');
    }
    assert_string_equal(buffer_text(&out), "0% new gone +25.0% \u221225.0% ×40 0% ");
    out.length = 0;
    units_add_change(&out, &units_picture, 0.001, "count");
    units_add_change(&out, &units_picture, 1500, "nanoseconds");
    units_add_grouped(&out, &units_picture, -1234567);
    assert_string_equal(buffer_text(&out), "0+1.50\u00a0µs\u22121,234,567");
}

/* ---- flame data ---- */

static void test_flame_data(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned samples = profile_type(&profile, profile_cstring(&profile, "samples"),
                                    profile_cstring(&profile, "count"));
    unsigned cpu = profile_type(&profile, profile_cstring(&profile, "cpu"),
                                profile_cstring(&profile, "nanoseconds"));
    uint32_t mapping = profile_mapping(
        &profile, &(struct profile_mapping){.file = profile_cstring(&profile, "/bin/app")});
    const char *names[] = {"main", "work", "app"}; /* the last is also the binary's name */
    uint32_t frames[3];
    for (int i = 0; i < 3; i++)
        frames[i] = profile_frame(
            &profile, &(struct profile_frame){.function = profile_function(
                                                  &profile,
                                                  &(struct profile_function){
                                                      .name = profile_cstring(&profile, names[i]),
                                                      .file = profile_cstring(&profile, "main.c")}),
                                              .mapping = mapping,
                                              .inlined = i == 2});
    uint32_t nodes[2] = {profile_stack(&profile, frames, 3), profile_stack(&profile, frames, 1)};
    for (int i = 0; i < 2; i++) {
        size_t row = profile_sample(&profile, nodes[i], 0, 0, 0);
        profile_add_value(&profile, row, samples, 3 + i);
        profile_add_value(&profile, row, cpu, i ? -5 : 30);
    }
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
    const char *notes[] = {"one", "two \"2\""};
    struct flame_options options = {
        .title = "t<1>", .notes = notes, .note_count = 2, .default_type = 1, .dropped = 7};
    _cleanup_buffer_ struct buffer out = {0};
    assert_int_equal(flamedata_write(&out, &tree, &options, NULL), 0);
    assert_string_equal(buffer_text(&out),
                        "{\"version\":1,\"kind\":\"flame\",\"title\":\"t\\u003c1>\",\n"
                        "\"notes\":[\"one\",\"two \\\"2\\\"\"],\n"
                        "\"types\":[{\"name\":\"samples\",\"unit\":\"count\"},"
                        "{\"name\":\"cpu\",\"unit\":\"nanoseconds\"}],\"default_type\":1,\n"
                        "\"strings\":[\"\",\"main\",\"main.c\",\"app\",\"work\"],\n"
                        "\"functions\":{\"name\":[1,4,3],\"file\":[2,2,2],\"binary\":[3,3,3]},\n"
                        "\"nodes\":{\"up\":[1,1,1],\"function\":[0,1,2],\"inlined\":[3]},\n"
                        "\"self\":[[0,4,0,3],[0,-5,0,30]],\n"
                        "\"cut\":[0,0],\n\"dropped\":7}");
}

static void test_flame_data_of_a_difference(void **state)
{
    (void)state;
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    add_to(&tree, "main;a 5\n", CALLTREE_NEW);
    add_to(&tree, "main;a 4\nmain;b 6\n", CALLTREE_BASE);
    struct flame_options options = {.normalize = FLAME_NORMALIZE_TOTAL, .scale = (double[]){0.5}};
    _cleanup_buffer_ struct buffer out = {0};
    assert_int_equal(flamedata_write(&out, &tree, &options, NULL), 0);
    const char *text = buffer_text(&out);
    assert_non_null(strstr(text, "\"kind\":\"diff\",\"title\":\"\""));
    assert_non_null(strstr(text, "\"self\":[[0,0,5,0]],\n\"base\":[[0,0,4,6]],\n"
                                 "\"scale\":[0.5],\"normalize\":\"total\",\n"
                                 "\"cut\":[0],\n\"base_cut\":[0],\n\"dropped\":0}"));

    /* Functions that the tree doesn't have are left out, and so are ends that are unknown. */
    const struct flame_change changes[] = {
        {"nobody", 6, {"grew", NULL, true, 1, 2, 0}, {0}},
        {"b", 1, {"undecided", NULL, false, -6.5, 1.25, 90}, {0}},
        {"a", 1, {"grew", "requests", true, 1, INFINITY, NAN}, {"noise", NULL, false, -1, 3, 0}},
    };
    options.normalize = FLAME_NORMALIZE_REQUESTS;
    options.changes = changes;
    options.change_count = ARRAY_LENGTH(changes);
    out.length = 0;
    assert_int_equal(flamedata_write(&out, &tree, &options, NULL), 0);
    assert_non_null(
        strstr(buffer_text(&out),
               "\"normalize\":\"requests\",\n"
               "\"changes\":[{\"function\":1,\"verdict\":\"grew\",\"cause\":\"requests\","
               "\"self\":{\"interval\":[-1,3],\"verdict\":\"noise\"}},"
               "{\"function\":2,\"interval\":[-6.5,1.25],\"verdict\":\"undecided\","
               "\"more_seconds\":90}],\n"));
}

static void test_nothing_to_draw(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    const struct write_options options = {.type = -1};
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    assert_int_equal(format_html.write(&out, &profile, &options, &error), -EINVAL);
    assert_says(&error, "no such sample type");
    assert_int_equal(format_svg.write(&out, &profile, &options, &error), -EINVAL);
    /* A type, but no value: an empty picture that says so. */
    profile_type(&profile, profile_cstring(&profile, "cpu"), 0);
    out.length = 0;
    assert_int_equal(format_svg.write(&out, &profile, &options, &error), 0);
    check_xml(&out);
    assert_non_null(strstr(buffer_text(&out), "Nothing to draw"));
}

/* ---- the page ---- */

static size_t occurrences(const char *text, const char *word)
{
    size_t count = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        count++;
    return count;
}

static void test_page(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer template = {0}, out = {0};
    buffer_add(&template, flame_page, flame_page_length);
    _cleanup_profile_ struct profile profile;
    make_hostile(&profile);
    const struct write_options options = {.type = -1,
                                          .title = "</title><b> & <!--ASSAY-FLAME-DATA-->"};
    assert_int_equal(format_html.write(&out, &profile, &options, NULL), 0);
    const char *page = buffer_text(&out);
    assert_null(strstr(page, "<!--ASSAY-"));
    assert_non_null(
        strstr(page, "<title>&lt;/title&gt;&lt;b&gt; &amp; &lt;!--ASSAY-FLAME-DATA--&gt;"));
    /* One script more than the template has, and no markup in the data. */
    assert_int_equal(occurrences(page, "<script"),
                     occurrences(buffer_text(&template), "<script") + 1);
    const char *data = strstr(page, "<script type=\"application/json\" id=\"flame-data\">");
    assert_non_null(data);
    const char *end = strchr(data + 1, '<');
    assert_int_equal(strncmp(end, "</script>", 9), 0);
    assert_true(utf8_valid(data, (size_t)(end - data)));
    assert_non_null(strstr(data, "\"\\u003c/script>\\u003cscript>alert(1)\\u003c/script>\""));
    assert_int_equal(end[-1], '}');
}

static void test_page_is_limited(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    profile_init(&profile, PROFILE_ALL);
    unsigned type = profile_type(&profile, profile_cstring(&profile, "x"), 0);
    uint32_t parents[2] = {0};
    for (int i = 0; i < 2; i++)
        parents[i] = profile_child(
            &profile, 0,
            profile_frame(&profile, &(struct profile_frame){.address = 1 + (uint64_t)i}));
    for (uint64_t i = 0; i < 21000; i++) {
        uint32_t frame = profile_frame(&profile, &(struct profile_frame){.address = 16 + i});
        uint32_t node = profile_child(&profile, parents[i % 2], frame);
        profile_add_value(&profile, profile_sample(&profile, node, 0, 0, 0), type, 1);
    }
    const struct flame_options options = {.max_nodes = 20000};
    _cleanup_buffer_ struct buffer out = {0};
    _cleanup_calltree_ struct calltree whole;
    calltree_init(&whole);
    calltree_add(&whole, &profile, CALLTREE_NEW, NULL);
    assert_int_equal(html_draw(&out, &whole, &options, NULL), 0);
    const char *dropped = strstr(buffer_text(&out), "\"dropped\":");
    assert_non_null(dropped);
    long count = atol(dropped + strlen("\"dropped\":"));
    assert_true(count >= 1000 && count <= 1010);
    assert_non_null(strstr(out.data, "\"" CALLTREE_OTHER "\""));
    /* All functions are there, drawn or not, with their values; and how much isn't drawn. */
    assert_non_null(strstr(out.data, "\"table\":{\"self\":[["));
    const char *cut = strstr(out.data, "\"cut\":[");
    assert_true(cut && atol(cut + strlen("\"cut\":[")) == count);

    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
    calltree_add(&tree, &profile, CALLTREE_BASE, NULL);
    out.length = 0;
    assert_int_equal(html_draw(&out, &tree, &options, NULL), 0);
    assert_true(tree.node_count <= options.max_nodes);
    assert_non_null(strstr(buffer_text(&out), "\"kind\":\"diff\""));
}

/* ---- SVG ---- */

static void write_svg(const char *folded, const char *title, struct buffer *out)
{
    _cleanup_profile_ struct profile profile;
    read_folded(folded, &profile);
    const struct write_options options = {.type = -1, .title = title};
    assert_int_equal(format_svg.write(out, &profile, &options, NULL), 0);
}

/* The x, width and y of the frame whose tooltip begins with the name. */
static void find_frame(const struct buffer *svg, const char *name, double *x, double *width,
                       double *y)
{
    char start[128];
    snprintf(start, sizeof(start), "<title>%s&#10;", name);
    const char *at = memmem(svg->data, svg->length, start, strlen(start));
    if (!at)
        fail_msg("no frame %s", name);
    at = strstr(at, "<rect ");
    assert_int_equal(sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\"", x, y, width), 3);
}

static void test_svg_geometry(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer out = {0};
    write_svg("main;half;deep 4000\nmain;half 1000\nmain;rest 4985\nmain;thin 10\nmain;gone 5\n",
              "t", &out);
    buffer_text(&out);
    assert_int_equal(check_xml(&out).titles, 1 + 1 + 5); /* the picture, all, frames */
    double x[5], width[5], y[5];
    const char *names[] = {"all", "main", "half", "rest", "deep"};
    for (int i = 0; i < 5; i++)
        find_frame(&out, names[i], &x[i], &width[i], &y[i]);
    assert_true(x[0] == 16 && width[0] > 1167 && width[0] < 1168);
    assert_true(x[1] == x[0] && x[2] == x[0] && x[4] == x[2]);
    assert_true(x[3] - x[2] > 583.9 && x[3] - x[2] < 584.1); /* half of 1168 pixels */
    assert_true(width[2] / width[1] > 0.499 && width[2] / width[1] < 0.501);
    assert_true(y[0] > y[1] && y[1] > y[2] && y[2] == y[3] && y[2] > y[4]); /* the root is lowest */
    assert_null(strstr(out.data, "gone"));
    assert_non_null(strstr(out.data, "Frames narrower than 0.1% are omitted: 0.05% of the total."));
}

static void test_svg_says_what_it_shows(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer out = {0};
    write_svg("main;a 1500\nmain;b 500\n", "cpu.pb.gz", &out);
    const char *svg = buffer_text(&out);
    assert_non_null(strstr(svg, ">cpu.pb.gz</text>"));
    assert_non_null(strstr(svg, ">2,000 samples</text>"));
    assert_non_null(strstr(svg, "<title>a&#10;1,500, 75.0% of all</title>"));
    assert_non_null(strstr(svg, ">kernel</text>"));
    assert_null(strstr(svg, "omitted"));
}

static void test_svg_is_the_same_every_time(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer first = {0}, second = {0};
    write_svg("m;a 1\nm;b 1\nm;c;d 5\n", "t", &first);
    write_svg("m;c;d 5\nm;b 1\nm;a 1\n", "t", &second);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
}

static void test_svg_with_hostile_names(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    make_hostile(&profile);
    const struct write_options options = {.type = -1, .title = "\"</svg>\xff\001"};
    _cleanup_buffer_ struct buffer out = {0};
    assert_int_equal(format_svg.write(&out, &profile, &options, NULL), 0);
    struct xml xml = check_xml(&out);
    assert_int_equal(xml.titles, 1 + 1 + 8);

    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
    calltree_add(&tree, &profile, CALLTREE_BASE, NULL);
    const char *notes[] = {"<note> & \"more\"",
                           "a note that goes on and on, so that another line "
                           "must be begun for what comes behind it, which is this one here",
                           "\xff<>"};
    struct flame_options flame = {.title = "<x>", .notes = notes, .note_count = 3};
    out.length = 0;
    assert_int_equal(svg_draw(&out, &tree, &flame, NULL), 0);
    check_xml(&out);
}

static void assert_label(const char *name, size_t columns, const char *expected)
{
    _cleanup_buffer_ struct buffer out = {0};
    svg_add_label(&out, name, strlen(name), columns);
    assert_string_equal(buffer_text(&out), expected);
}

static void test_svg_labels(void **state)
{
    (void)state;
    assert_label("std::map<int, char>::find(int) const", 40,
                 "std::map&lt;int, char&gt;::find(int) const");
    assert_label("std::map<int, char>::find(int) const", 22, "std::map::find const");
    assert_label("std::map<int, char>::find(int)", 14, "std::map::find");
    assert_label("std::map<int, char>::find(int)", 10, "map::find");
    assert_label("std::map<int, char>::find(int)", 5, "find");
    assert_label("github.com/acme/store.(*Cache).Get", 20, "store.(*Cache).Get");
    assert_label("com.shop.search.Index.find", 12, "Index.find");
    assert_label("a_very_long_name_without_pieces", 10, "a_very_lo…");
    assert_label("operator new(unsigned long)", 12, "operator ne…");
    assert_label("[unknown frame]", 9, "[unknown…");
    assert_label("\xe6\xa4\x9c\xe7\xb4\xa2\xe6\xa4\x9c\xe7\xb4\xa2", 7,
                 "\xe6\xa4\x9c\xe7\xb4\xa2\xe6\xa4\x9c…");
    assert_label("main", 4, "main");
    assert_label("mains", 4, "");
    assert_label("\xff\xff", 7, "\\xff…");
    assert_label("main", 0, "");
}

/* Of the frame's colour, whether there is more red than blue (1), less (-1), or as much. */
static int frame_sign(const char *svg, const char *name)
{
    char start[64];
    snprintf(start, sizeof(start), "<title>%s&#10;", name);
    const char *fill = strstr(strstr(svg, start), "fill=\"#");
    unsigned red, green, blue;
    assert_int_equal(sscanf(fill, "fill=\"#%2x%2x%2x", &red, &green, &blue), 3);
    int difference = (int)red - (int)blue;
    return difference > 20 ? 1 : difference < -20 ? -1 : 0;
}

static void test_svg_of_a_difference(void **state)
{
    (void)state;
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    add_to(&tree, "main;grew 60\nmain;same 20\nmain;shrank 10\nmain;fresh 10\n", CALLTREE_NEW);
    add_to(&tree, "main;grew 60\nmain;same 40\nmain;shrank 80\nmain;gone 20\n", CALLTREE_BASE);
    const struct flame_options options = {
        .title = "old → new", .normalize = FLAME_NORMALIZE_TOTAL, .scale = (double[]){0.5}};
    _cleanup_buffer_ struct buffer out = {0};
    assert_int_equal(svg_draw(&out, &tree, &options, NULL), 0);
    check_xml(&out);
    const char *svg = buffer_text(&out);
    assert_non_null(strstr(svg, "Width is the value in the new profile. Normalised by total: base "
                                "values are multiplied by 0.5."));
    assert_non_null(strstr(svg, "blue shrank, grey is unchanged (within 1%), red grew"));
    assert_non_null(
        strstr(svg, "10.0% of the base is in removed call paths, which have no width."));
    assert_non_null(strstr(svg, "samples (count): 100 → 100 (0, 0%)"));
    assert_non_null(strstr(svg, "<title>grew&#10;30 → 60 (+30, +100%), 60.0% of all</title>"));
    assert_non_null(strstr(svg, "<title>fresh&#10;0 → 10 (+10, new), 10.0% of all</title>"));
    static const struct {
        const char *name;
        int sign; /* of red minus blue */
    } colours[] = {{"grew", 1}, {"fresh", 1}, {"shrank", -1}, {"same", 0}, {"main", 0}};
    for (size_t i = 0; i < ARRAY_LENGTH(colours); i++)
        assert_int_equal(frame_sign(svg, colours[i].name), colours[i].sign);

    /* Noise is grey, however large. */
    const struct flame_change changes[] = {{"grew", 4, {"noise", NULL, false, -1, 61, 0}, {0}},
                                           {"shrank", 6, {"shrank", NULL, true, -60, -1, 0}, {0}}};
    struct flame_options judged = options;
    judged.changes = changes;
    judged.change_count = ARRAY_LENGTH(changes);
    out.length = 0;
    assert_int_equal(svg_draw(&out, &tree, &judged, NULL), 0);
    svg = buffer_text(&out);
    assert_int_equal(frame_sign(svg, "grew"), 0);
    assert_int_equal(frame_sign(svg, "shrank"), -1);
    assert_int_equal(frame_sign(svg, "fresh"), 1);
    assert_non_null(strstr(svg, "blue shrank, grey is not certain to have changed, red grew"));
    const struct flame_options none = {.default_type = 1};
    struct error error = {0};
    assert_int_equal(svg_draw(&out, &tree, &none, &error), -EINVAL);
}

static void test_svg_with_extreme_values(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a 9223372036854775807\nb 9223372036854775807\nc;d -9223372036854775808\n",
        "a -5\nb 3\na;c 4\n",
        "a -5\n",
        " 5\n",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
        _cleanup_buffer_ struct buffer out = {0};
        write_svg(texts[i], NULL, &out);
        check_xml(&out);
        const char *svg = buffer_text(&out);
        for (const char *at = svg; (at = strstr(at, "<rect x=")); at++) {
            double x, y, width;
            assert_int_equal(sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\"", &x, &y, &width),
                             3);
            assert_true(x >= 0 && width >= 0 && x + width <= 1200 && y >= 0);
        }
        assert_int_equal(strstr(svg, "Negative values have no width") != NULL, i < 3);
    }
}

static void test_svg_of_deep_stacks(void **state)
{
    (void)state;
    struct buffer folded = {0};
    for (int i = 0; i < 5000; i++)
        buffer_add_text(&folded, "f;");
    buffer_add_text(&folded, "g 1\n");
    _cleanup_buffer_ struct buffer out = {0};
    write_svg(buffer_text(&folded), "t", &out);
    buffer_release(&folded);
    struct xml xml = check_xml(&out);
    assert_int_equal(xml.titles, 1 + 1000);
    assert_non_null(strstr(buffer_text(&out), "Frames below a depth of 1,000 are omitted: 100%"));
}

static void test_notes(void **state)
{
    (void)state;
    _cleanup_profile_ struct profile profile;
    read_folded("main;a 5\n", &profile);
    unsigned cpu = profile_type(&profile, profile_cstring(&profile, "cpu"),
                                profile_cstring(&profile, "nanoseconds"));
    uint32_t frame = profile_frame(&profile, &(struct profile_frame){.address = 0x1234});
    size_t row = profile_sample(&profile, profile_stack(&profile, &frame, 1), 0, 0, 0);
    profile_add_value(&profile, row, cpu, 1);
    profile_add_value(&profile, 0, cpu, 3);
    profile_note_source(&profile, 0, 30000000000);
    _cleanup_calltree_ struct calltree tree;
    calltree_init(&tree);
    calltree_add(&tree, &profile, CALLTREE_NEW, NULL);
    _cleanup_flame_notes_ struct flame_notes notes;
    flame_notes_init(&notes, &profile, &tree, cpu);
    assert_int_equal(notes.count, 2);
    assert_string_equal(notes.list[0], "5 samples over 30\u00a0s, from 2 profiles");
    assert_string_equal(notes.list[1], "25.0% of the time is missing symbols");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantities),
        cmocka_unit_test(test_flame_data),
        cmocka_unit_test(test_flame_data_of_a_difference),
        cmocka_unit_test(test_nothing_to_draw),
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_page_is_limited),
        cmocka_unit_test(test_svg_geometry),
        cmocka_unit_test(test_svg_says_what_it_shows),
        cmocka_unit_test(test_svg_is_the_same_every_time),
        cmocka_unit_test(test_svg_with_hostile_names),
        cmocka_unit_test(test_svg_labels),
        cmocka_unit_test(test_svg_of_a_difference),
        cmocka_unit_test(test_svg_with_extreme_values),
        cmocka_unit_test(test_svg_of_deep_stacks),
        cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
