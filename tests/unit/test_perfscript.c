// SPDX-License-Identifier: Apache-2.0
// The text of `perf script`: every form of its lines, whole recordings, and damaged ones.

#include "format/text/perfscript.h"

#include "format/format.h"
#include "unit.h"

static int read_text(const char *text, size_t length, enum profile_detail detail,
                     struct profile *profile, struct error *error)
{
    const struct read_options options = {.format = &format_perf_script};
    profile_init(profile, detail);
    return format_read_memory("test", text, length, &options, profile, NULL, error);
}

#define assert_text(text, expected) assert_bytes((text).at, (text).length, expected)

/* ---- lines ---- */

struct header_case {
    const char *line, *comm, *event, *rest;
    int64_t pid, tid, period; /* -1: not printed */
    uint64_t time_ns;         /* 0: not printed */
};

static void test_headers(void **state)
{
    (void)state;
    static const struct header_case cases[] = {
        {"load 12 [003] 5.000001:  1001001 cpu-clock: ", "load", "cpu-clock", "", -1, 12, 1001001,
         5000001000},
        {"load 12 5.000001: 1001001 cpu-clock:u: ", "load", "cpu-clock:u", "", -1, 12, 1001001,
         5000001000},
        {"load    11/12    [000]  5.000000001: 7 cycles:P:", "load", "cycles:P", "", 11, 12, 7,
         5000000001},
        {"load 12 [003] 5.5: cycles: ", "load", "cycles", "", -1, 12, -1, 5500000000},
        {"load 12 5.000001:  1001001 ", "load", "", "", -1, 12, 1001001, 5000001000},
        {"load 12 5.000001:  1001001   55e4f7 f (/x)", "load", "", "55e4f7 f (/x)", -1, 12, 1001001,
         5000001000},
        {"load 12 5.000001:  55e4f7 f (/x)", "load", "", "55e4f7 f (/x)", -1, 12, -1, 5000001000},
        {"load 12 5.000001: ", "load", "", "", -1, 12, -1, 5000001000},
        {"load 12  1001001 cpu-clock: ", "load", "cpu-clock", "", -1, 12, 1001001, 0},
        {"load 1 of 2  12  1001001 cpu-clock: ", "load 1 of 2", "cpu-clock", "", -1, 12, 1001001,
         0},
        {"load 12 [000] cycles:", "load", "cycles", "", -1, 12, -1, 0},
        {"load 12 [001] U 5.000001: 3 cycles:", "load", "cycles", "", -1, 12, 3, 5000001000},
        {"   [k] 7: x  6196  5.000001: 10 cpu-clock:  ffff80 halt+0x5 ([kernel.kallsyms])",
         "[k] 7: x", "cpu-clock", "ffff80 halt+0x5 ([kernel.kallsyms])", -1, 6196, 10, 5000001000},
        {"load 1 of 2  4174  5.000001: 10 cpu-clock:", "load 1 of 2", "cpu-clock", "", -1, 4174, 10,
         5000001000},
        {"a 1 2 3 4.5 6 5.000001: 10 x:", "a 1 2 3 4.5", "x", "", -1, 6, 10, 5000001000},
        {"42 43 [000] 5.000001: 10 x:", "42", "x", "", -1, 43, 10, 5000001000},
        {":-1    -1 [002] 5.000001: 1 x:", ":-1", "x", "", -1, -1, 1, 5000001000},
        {"sh 9 [000] 5.000001: sched:sched_switch: prev_comm=a: 1 ==> b", "sh",
         "sched:sched_switch", "prev_comm=a: 1 ==> b", -1, 9, -1, 5000001000},
        {"sh 9 5.000001: 100 cpu/event=0x3c,umask=0x0/uP: ", "sh", "cpu/event=0x3c,umask=0x0/uP",
         "", -1, 9, 100, 5000001000},
        {"sh 9 5.000001: 18446744073709551615 x:", "sh", "x", "", -1, 9, -2, 5000001000},
        {"#1 worker 9 5.000001: 1 x:", "#1 worker", "x", "", -1, 9, 1, 5000001000},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const struct header_case *c = &cases[i];
        struct perf_header header;
        if (!perf_parse_header(c->line, strlen(c->line), &header))
            fail_msg("no header: %s", c->line);
        assert_text(header.comm, c->comm);
        assert_text(header.event, c->event);
        assert_text(header.rest, c->rest);
        assert_int_equal(header.pid, c->pid);
        assert_int_equal(header.tid, c->tid);
        assert_int_equal(header.has_period, c->period != -1);
        if (c->period >= 0)
            assert_int_equal(header.period, c->period);
        assert_int_equal(header.has_time, c->time_ns != 0);
        if (c->time_ns)
            assert_int_equal(header.time_ns, c->time_ns);
        assert_false(header.is_record);
    }
    static const char *const others[] = {
        "",
        "   ",
        "load",
        "load 12",
        "load 12 13",
        "# time of first sample : 5.5",
        "# event 12 x:",
        "load 12 [000",
        "load 99999999999999999999 5.5: 1 x:",
        "load 12 5.0000000001:",
        "load 12 .5:",
        "load 12 5.:",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
        struct perf_header header;
        if (perf_parse_header(others[i], strlen(others[i]), &header))
            fail_msg("a header: %s", others[i]);
    }
    struct perf_header header;
    const char *record = "swapper 0 0.000000: PERF_RECORD_MMAP2 12/12: [0x5(0x1) @ 0]: x /bin/a";
    assert_true(perf_parse_header(record, strlen(record), &header) && header.is_record);
}

static void test_frames(void **state)
{
    (void)state;
    static const struct {
        const char *line, *symbol, *file;
        uint64_t address;
        bool inlined;
    } cases[] = {
        {"\t  12f7 heavy+0x27 (/srv/load)", "heavy", "/srv/load", 0x12f7, false},
        {"\t  12f7 heavy (/srv/load)", "heavy", "/srv/load", 0x12f7, false},
        {"\tffffffff81000130 [unknown] ([kernel.kallsyms])", "", "[kernel.kallsyms]",
         0xffffffff81000130, false},
        {"\t 0 [unknown] ([unknown])", "", "", 0, false},
        {"\t 12 small<(kind)2> (inlined)", "small<(kind)2>", "", 0x12, true},
        {"\t 12 f(int, void (*)(int))+0x1 (/lib/a b.so (deleted))", "f(int, void (*)(int))",
         "/lib/a b.so (deleted)", 0x12, false},
        {"\t 12 operator()+0xaB (/x)", "operator()+0xaB", "/x", 0x12, false},
        {"\t 12 f (/odd(x)", "f", "/odd(x", 0x12, false},
        {"\t 12 f (/x+0x1f)", "f", "/x", 0x1f, false},
        {"\t 12 f", "f", "", 0x12, false},
        {"\t 12", "", "", 0x12, false},
        {"\t 12 f+0x5 (/x)  ", "f", "/x", 0x12, false},
        {"\t 12 +0x5 (/x)", "+0x5", "/x", 0x12, false},
        {"\t 12 ()", "", "", 0x12, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct perf_frame frame;
        if (!perf_parse_frame(cases[i].line, strlen(cases[i].line), &frame))
            fail_msg("no frame: %s", cases[i].line);
        assert_text(frame.symbol, cases[i].symbol);
        assert_text(frame.file, cases[i].file);
        assert_int_equal(frame.address, cases[i].address);
        assert_int_equal(frame.inlined, cases[i].inlined);
    }
    static const char *const others[] = {
        "", "  ", "\tload.c:16", "\t12345678901234567 f (/x)", "\t0x12 f (/x)", "\tg f (/x)"};
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
        struct perf_frame frame;
        assert_false(perf_parse_frame(others[i], strlen(others[i]), &frame));
    }
}

static void test_events(void **state)
{
    (void)state;
    static const struct {
        const char *event, *name;
        bool is_clock, is_tracepoint;
    } cases[] = {
        {"cpu-clock", "cpu-clock", true, false},
        {"cpu-clock:u", "cpu-clock", true, false},
        {"task-clock:pppH", "task-clock", true, false},
        {"cycles:P", "cycles", false, false},
        {"cycles", "cycles", false, false},
        {"cpu_core/cycles/", "cpu_core/cycles/", false, false},
        {"cpu_core/cycles/P", "cpu_core/cycles/", false, false},
        {"sched:sched_switch", "sched:sched_switch", false, true},
        {"probe_libc:malloc", "probe_libc:malloc", false, true},
        {"uk", "uk", false, false},
        {":u", ":u", false, true},
        {"/", "/", false, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct perf_event event = perf_parse_event(
            (struct perf_text){.at = cases[i].event, .length = strlen(cases[i].event)});
        assert_text(event.name, cases[i].name);
        assert_int_equal(event.is_clock, cases[i].is_clock);
        assert_int_equal(event.is_tracepoint, cases[i].is_tracepoint);
    }
}

/* ---- samples ---- */

/* One line per row, outermost first: "comm=x pid=1 tid=2: main[kind] > leaf@file:line 1 250" */
static void describe(const struct profile *profile, struct buffer *out)
{
    const struct profile_samples *samples = &profile->samples;
    for (size_t row = 0; row < samples->count; row++) {
        size_t count;
        const struct profile_label *labels = profile_labels(profile, samples->labels[row], &count);
        for (size_t i = 0; i < count; i++) {
            buffer_printf(out, "%s=", profile_text(profile, labels[i].key));
            if (labels[i].text)
                buffer_printf(out, "%s ", profile_text(profile, labels[i].text));
            else
                buffer_printf(out, "%lld ", (long long)labels[i].number);
        }
        uint32_t path[64];
        size_t depth = 0;
        for (uint32_t node = samples->node[row]; node; node = profile->nodes[node].parent)
            path[depth++] = profile->nodes[node].frame;
        while (depth-- > 0) {
            const struct profile_frame *frame = &profile->frames[path[depth]];
            const struct profile_function *function = &profile->functions[frame->function];
            buffer_printf(out, "> %s", profile_text(profile, function->name));
            if (!frame->function)
                buffer_printf(out, "%llx", (unsigned long long)frame->address);
            buffer_printf(out, "{%s}",
                          profile_text(profile, profile->mappings[frame->mapping].file));
            if (frame->kind)
                buffer_add_text(out, frame->kind == FRAME_KERNEL ? "k" : "n");
            if (frame->inlined)
                buffer_add_text(out, "i");
            if (frame->line)
                buffer_printf(out, "@%s:%u", profile_text(profile, function->file), frame->line);
            buffer_add_char(out, ' ');
        }
        for (unsigned type = 0; type < profile->type_count; type++)
            buffer_printf(out, "%lld ", (long long)samples->values[type][row]);
        buffer_add_char(out, '\n');
    }
}

static void assert_reads(const char *text, const char *types, const char *rows)
{
    _cleanup_profile_ struct profile profile;
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    if (read_text(text, strlen(text), PROFILE_ALL & ~PROFILE_TIMES, &profile, &error) < 0)
        fail_msg("%s", error.text);
    for (unsigned i = 0; i < profile.type_count; i++)
        buffer_printf(&out, "%s/%s ", profile_text(&profile, profile.types[i].type),
                      profile_text(&profile, profile.types[i].unit));
    assert_string_equal(buffer_text(&out), types);
    out.length = 0;
    describe(&profile, &out);
    assert_string_equal(buffer_text(&out), rows);
}

static void test_samples(void **state)
{
    (void)state;
    assert_reads("a b 7/8 [000] 1.5: 250 cpu-clock:u:\n"
                 "\t  20 leaf+0x5 (/bin/x)\n"
                 "\t  10 main (/bin/x)\n"
                 "\n"
                 "a b 7/8 [001] 1.6: 250 cpu-clock:u:\n"
                 "\t  20 leaf+0x5 (/bin/x)\n"
                 "\t  10 main (/bin/x)\n",
                 "samples/count cpu/nanoseconds ",
                 "comm=a b pid=7 tid=8 > main{/bin/x}n > leaf{/bin/x}n 2 500 \n");
    /* Without blank lines, with carriage returns, without a stack, without a period. */
    assert_reads("a 8 1.5: 3 cycles:\r\n\t 20 f (/x)\r\nb 9 1.6: cycles:\r\n\r\n",
                 "samples/count cycles/count ", "comm=a tid=8 > f{/x}n 1 3 \ncomm=b tid=9 1 0 \n");
    assert_reads("  a 8 1.5: 3 cycles:  20 f+0x1 (/x)\n  a 8 1.6: 4 cycles:  20 f\n",
                 "samples/count cycles/count ",
                 "comm=a tid=8 > f{/x}n 1 3 \ncomm=a tid=8 > f{} 1 4 \n");
    /* Frames whose blanks somebody has trimmed away; a word that is hexadecimal by chance. */
    assert_reads("java 8 cycles:\n"
                 "ffffffff8103d0ca native_write ([kernel.kallsyms])\n"
                 "7f72 Shop::sell(int) const (/lib/libshop.so)\n"
                 "beef\n"
                 "7f73 stub ([unknown])\n"
                 "20 main (inlined)\n"
                 "\n"
                 "dead 9 cycles:\n"
                 "7f72 _ZN4shop4sellEv+0x12 (/lib/libshop.so)\n",
                 "samples/count ",
                 "comm=java tid=8 > main{} > stub{} > Shop::sell(int) const{/lib/libshop.so}n > "
                 "native_write{[kernel.kallsyms]}k 1 \n"
                 "comm=dead tid=9 > shop::sell{/lib/libshop.so}n 1 \n");
    /* A tracepoint's payload is no frame, and each event is one. */
    assert_reads("a 8 [000] 1.5: x:y: 12 (34)\n\t 20 f (/x)\n\na 8 [000] 1.5: x:y: dead (beef)\n\n",
                 "samples/count x:y/count ", "comm=a tid=8 > f{/x}n 1 1 \ncomm=a tid=8 1 1 \n");
    /* Side-band events end a sample and are none. */
    assert_reads("a 8 1.5: 3 cycles:\n\t 20 f (/x)\na 8 1.6: PERF_RECORD_EXIT(8:8):(8:8)\n"
                 "\t 30 g (/x)\n",
                 "samples/count cycles/count ", "comm=a tid=8 > f{/x}n 1 3 \n");
}

static void test_kinds_and_inlines(void **state)
{
    (void)state;
    assert_reads("a 8 1.5: 1 cycles:\n"
                 "\t 30 in1 (inlined)\n"
                 "\t 30 in2 (inlined)\n"
                 "\t 30 real+0x1 (/bin/x)\n"
                 "\t 31 jit (/tmp/perf-8.map)\n"
                 "\t 32 stub (//anon)\n"
                 "\t 33 [unknown] (/bin/libx.kotlin.so)\n"
                 "\t 34 v ([vdso])\n"
                 "\t 35 m ([ext4])\n"
                 "\t 36 m2 (/lib/modules/net/nf.ko.xz)\n"
                 "\t 37 v2 (/boot/vmlinux-6.1)\n"
                 "\t 38 [unknown] ([unknown])\n"
                 "\t 39 lost (inlined)\n",
                 "samples/count cycles/count ",
                 "comm=a tid=8 > lost{} > 38{} > v2{/boot/vmlinux-6.1}k "
                 "> m2{/lib/modules/net/nf.ko.xz}k > m{[ext4]}k > v{[vdso]}n "
                 "> 33{/bin/libx.kotlin.so}n > stub{//anon} > jit{/tmp/perf-8.map} > real{/bin/x}n "
                 "> in2{/bin/x}ni > in1{/bin/x}ni 1 1 \n");
}

static void test_source_lines(void **state)
{
    (void)state;
    assert_reads("a 8 1.5: 1 cycles:\n"
                 "\t 30 f+0x1 (/bin/x)\n"
                 "  f.c:12\n"
                 "\t 31 g+0x1 (/bin/x)\n"
                 "  ??:0\n"
                 "\t 32 h+0x1 (/bin/x)\n"
                 "  x[32]\n"
                 "\n",
                 "samples/count cycles/count ",
                 "comm=a tid=8 > h{/bin/x}n > g{/bin/x}n > f{/bin/x}n@f.c:12 1 1 \n");
}

static void test_details(void **state)
{
    (void)state;
    const char *text =
        "a 8 1.5: 4 cpu-clock:\n\t 20 f (/x)\n\nb 9 3.5: 6 cpu-clock:\n\t 24 f (/x)\n";
    _cleanup_profile_ struct profile profile, timed;
    assert_int_equal(read_text(text, strlen(text), 0, &profile, NULL), 0);
    assert_int_equal(profile.samples.count, 1); /* no labels, no addresses, no times */
    assert_int_equal(profile.samples.values[1][0], 10);
    assert_int_equal(profile.duration_ns, 2000000000);
    assert_int_equal(profile.time_ns, 0); /* perf's clock does not start at the epoch */
    assert_int_equal(profile.period, 6);
    assert_string_equal(profile_text(&profile, profile.period_type.type), "cpu");
    assert_int_equal(profile.source_count, 1);
    assert_int_equal(read_text(text, strlen(text), PROFILE_ALL, &timed, NULL), 0);
    assert_int_equal(timed.samples.count, 2);
    assert_int_equal(timed.samples.time_ns[1], 3500000000);
}

static void test_default_type(void **state)
{
    (void)state;
    const char *first = "a 8 1.5: 4 cycles:\n\na 8 1.5: 4 instructions:\n\n";
    _cleanup_profile_ struct profile profile, clock;
    assert_int_equal(read_text(first, strlen(first), PROFILE_ALL, &profile, NULL), 0);
    assert_int_equal(profile_default_type(&profile), 1);
    const char *later = "a 8 1.5: 4 page-faults:\n\na 8 1.5: 4 task-clock:\n\n";
    assert_int_equal(read_text(later, strlen(later), PROFILE_ALL, &clock, NULL), 0);
    assert_int_equal(profile_default_type(&clock), 2);
}

/* cpu-clock and task-clock measure the same time: only one of them is "cpu". */
static void test_two_clocks(void **state)
{
    (void)state;
    assert_reads(
        "a 8 1.5: 4 cpu-clock:u:\n\t 20 f (/x)\n\na 8 1.6: 5 task-clock:u:\n\t 20 f (/x)\n\n"
        "a 8 1.7: 6 cpu-clock:u:\n\t 20 f (/x)\n\n",
        "samples/count cpu/nanoseconds task-clock/nanoseconds ", "comm=a tid=8 > f{/x}n 3 10 5 \n");
}

/* Samples of two events are two things, even if neither says how many of its kind they stand for.
 */
static void test_events_without_periods(void **state)
{
    (void)state;
    assert_reads("a 8 cycles:u:\n\t 20 f (/x)\n\na 8 cycles:k:\n\t 20 f (/x)\n\n", "samples/count ",
                 "comm=a tid=8 > f{/x}n 2 \n");
    assert_reads("a 8 cycles:\n\t 20 f (/x)\n\na 8 cycles:\n\t 20 f (/x)\n\n"
                 "a 8 instructions:\n\t 20 f (/x)\n\na 8 cycles:\n\t 30 g (/x)\n\n",
                 "samples/count cycles/samples instructions/samples ",
                 "comm=a tid=8 > f{/x}n 3 2 1 \ncomm=a tid=8 > g{/x}n 1 1 0 \n");
    assert_reads("a 8 5 cycles:\n\t 20 f (/x)\n\na 8 instructions:\n\t 20 f (/x)\n\n",
                 "samples/count cycles/count instructions/samples ",
                 "comm=a tid=8 > f{/x}n 2 5 1 \n");
    /* What another file had counted is none of this one's. */
    const char *single = "a 8 cycles:\n\t 20 f (/x)\n\n";
    const char *both = "a 8 cycles:\n\t 20 f (/x)\n\na 8 faults:\n\t 20 f (/x)\n\n";
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    profile_init(&profile, PROFILE_LABELS);
    assert_int_equal(format_read_memory("a", single, strlen(single), NULL, &profile, NULL, &error),
                     0);
    assert_int_equal(format_read_memory("b", both, strlen(both), NULL, &profile, NULL, &error), 0);
    assert_int_equal(profile.samples.count, 1);
    assert_int_equal(profile.samples.values[0][0], 3);
    assert_int_equal(profile.samples.values[1][0], 1);
    assert_int_equal(profile.samples.values[2][0], 1);
    assert_string_equal(profile_text(&profile, profile.default_type), "cycles");
}

static void test_skipped_lines_are_counted(void **state)
{
    (void)state;
    const char *text = "Warning: something\na 8 1.5: 4 cycles:\n\t 20 f (/x)\n\t nonsense\n";
    _cleanup_profile_ struct profile profile, none;
    assert_int_equal(read_text(text, strlen(text), PROFILE_ALL, &profile, NULL), 0);
    assert_int_equal(profile.comment_count, 1);
    assert_string_equal(
        profile_text(&profile, profile.comments[0]),
        "perf script: 2 lines that are not part of a sample were skipped, the first "
        "of them line 1");
    struct error error = {0};
    text = "\nhello\nworld\n";
    assert_int_equal(read_text(text, strlen(text), PROFILE_ALL, &none, &error), -EBADMSG);
    assert_says(&error, "line 2");
}

static void test_too_many_events(void **state)
{
    (void)state;
    struct buffer text = {0};
    for (int i = 0; i < 300; i++)
        buffer_printf(&text, "a 8 1.5: 4 event%d_:\n\n", i);
    _cleanup_profile_ struct profile profile;
    struct error error = {0};
    assert_int_equal(read_text(text.data, text.length, PROFILE_ALL, &profile, &error), -E2BIG);
    assert_says(&error, "line 511");
    buffer_release(&text);
}

static void test_detects(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int sure;
    } cases[] = {
        {"a 8 1.5: 4 cycles:\n\t 20 f (/x)\n", 3},
        {"# comment\n\na 8 [000] 1.5: 4 cycles: \n    20 f (/x)\n", 3},
        {"   a 8 1.5: 4 cycles:  20 f (/x)\n", 3},
        {"a 8 1.5: PERF_RECORD_COMM: a:8/8\n", 3},
        {"a 8 1.5: 4 cycles:\n", 2},
        {"a 8 4 cycles:\n\t 20 f (/x)\n", 2},
        {"a 8 4 cycles:\n", 1},
        {"# cmdline : /usr/bin/perf record\n#\n", 1},
        {"# something\n", 0},
        {"a;b 8\n", 0},
        {"hello 8 world\na 8 1.5: 4 cycles:\n", 0},
        {"", 0},
        {"{\"a\": 1}", 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        assert_int_equal(
            format_perf_script.detect((const uint8_t *)cases[i].text, strlen(cases[i].text)),
            cases[i].sure);
}

/* ---- files ---- */

static char *read_fixture(const char *name, size_t *ret_length)
{
    char path[4096];
    assert_non_null(getenv("FIXTURES"));
    snprintf(path, sizeof(path), "%s/perf-script/%s", getenv("FIXTURES"), name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    *ret_length = fread(text, 1, 1 << 16, file);
    fclose(file);
    return text;
}

static void test_fixtures(void **state)
{
    (void)state;
    static const struct {
        const char *name, *type;
        int64_t samples, value;
    } files[] = {
        {"stacks.txt", "cpu", 9, 9009009},       {"no-stacks.txt", "cpu", 12, 60301500},
        {"fields.txt", "cpu", 6, 30150750},      {"events.txt", "cpu", 8, 8008008},
        {"source-lines.txt", "cpu", 6, 6006006}, {"tracepoints.txt", "sched:sched_switch", 6, 3},
        {"two-events.txt", "page-faults", 7, 3}, {"odd.txt", "cpu_core/cycles/", 7, 559},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
        size_t length;
        char *text = read_fixture(files[i].name, &length);
        _cleanup_profile_ struct profile profile;
        const struct format *format = NULL;
        struct error error = {0};
        profile_init(&profile, PROFILE_ALL);
        if (format_read_memory(files[i].name, text, length, NULL, &profile, &format, &error) < 0)
            fail_msg("%s", error.text);
        free(text);
        assert_ptr_equal(format, &format_perf_script);
        assert_int_equal(profile.comment_count, 0);
        unsigned type = profile_find_type(&profile, files[i].type);
        assert_true(type < profile.type_count);
        int64_t samples = 0, value = 0;
        for (size_t row = 0; row < profile.samples.count; row++) {
            samples += profile.samples.values[0][row];
            value += profile.samples.values[type][row];
        }
        assert_int_equal(samples, files[i].samples);
        assert_int_equal(value, files[i].value);
    }
}

/* Cut anywhere, it is a shorter recording; with a bit flipped, it is at worst refused. */
static void test_bad_bytes(void **state)
{
    (void)state;
    size_t length;
    char *text = read_fixture("odd.txt", &length);
    for (size_t cut = 0; cut <= length; cut++) {
        _cleanup_profile_ struct profile profile;
        struct error error = {0};
        char *copy = malloc(cut + 1); /* of its own, so that a sanitizer sees a read beyond it */
        memcpy(copy, text, cut);
        if (read_text(copy, cut, PROFILE_ALL, &profile, &error) < 0)
            assert_says(&error, "line ");
        free(copy);
    }
    for (size_t at = 0; at < length; at++) {
        for (int bit = 0; bit < 8; bit++) {
            text[at] ^= (char)(1 << bit);
            _cleanup_profile_ struct profile profile;
            struct error error = {0};
            assert_int_equal(read_text(text, length, PROFILE_ALL, &profile, &error), 0);
            text[at] ^= (char)(1 << bit);
        }
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_kinds_and_inlines),
        cmocka_unit_test(test_source_lines),
        cmocka_unit_test(test_details),
        cmocka_unit_test(test_default_type),
        cmocka_unit_test(test_two_clocks),
        cmocka_unit_test(test_events_without_periods),
        cmocka_unit_test(test_skipped_lines_are_counted),
        cmocka_unit_test(test_too_many_events),
        cmocka_unit_test(test_detects),
        cmocka_unit_test(test_fixtures),
        cmocka_unit_test(test_bad_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
