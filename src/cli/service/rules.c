// SPDX-License-Identifier: Apache-2.0
// `assay rules`: checks a file of rules, and runs it on recorded data.

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/table.h"
#include "query/query.h"
#include "server/admission/admission.h"
#include "server/rules/live.h"
#include "store/store.h"

#define MEMORY_BYTES (256ull << 20)
#define ROUNDS_MAX 100000
#define DAY_NS 86400000000000ll

struct rules_flags {
    const char *data, *from, *to, *tenant, *format;
};

static struct rule_set *read_file(const char *path)
{
    struct problems problems = {.file = path};
    struct rule_set *set = rule_set_read(path, &problems);
    if (!set)
        fputs(buffer_text(&problems.text), stderr);
    problems_release(&problems);
    return set;
}

static int check(const char *path)
{
    struct rule_set *set = read_file(path);
    if (!set)
        return EXIT_FAILED;
    printf("The rules are valid: %zu SLI%s, %zu alert%s, %zu receiver%s.\n", set->sli_count,
           set->sli_count == 1 ? "" : "s", set->alert_count, set->alert_count == 1 ? "" : "s",
           set->notify.receiver_count, set->notify.receiver_count == 1 ? "" : "s");
    rule_set_unref(set);
    return EXIT_FINE;
}

/* ---- recorded data ---- */

struct test {
    struct server server;
    struct admissions admissions;
    struct rules *rules;
    const char *tenant;
    struct seen_alert {
        char id[ALERT_ID_BYTES];
        enum alert_state state;
    } * seen;
    size_t seen_count, seen_capacity;
    double *low, *high; /* of each SLI */
    uint64_t *values;
    struct table table;
};

static void write_time(int64_t ns, char text[40])
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(text, 40, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static bool has_changed(struct test *test, const struct alert *alert)
{
    for (size_t i = 0; i < test->seen_count; i++) {
        struct seen_alert *seen = &test->seen[i];
        if (strcmp(seen->id, alert->id))
            continue;
        bool changed = seen->state != alert->state;
        seen->state = alert->state;
        return changed;
    }
    array_reserve(test->seen, test->seen_capacity, test->seen_count + 1);
    struct seen_alert *seen = &test->seen[test->seen_count++];
    memcpy(seen->id, alert->id, sizeof(seen->id));
    seen->state = alert->state;
    return true;
}

static void note_round(struct test *test, int64_t time_ns)
{
    struct rules *rules = test->rules;
    char when[40];
    write_time(time_ns, when);
    for (size_t i = 0; i < rules->alerts.count; i++) {
        const struct alert *alert = &rules->alerts.list[i];
        _cleanup_buffer_ struct buffer labels = {0};
        if (strcmp(alert->tenant, test->tenant) || !has_changed(test, alert))
            continue;
        labels_write(&labels, &alert->labels);
        struct cell cells[] = {cell_text(when), cell_text(alert_state_names[alert->state]),
                               cell_text(alert->name), cell_text(buffer_text(&labels)),
                               cell_text(alert->state == ALERT_RESOLVED ? alert->reason
                                                                        : alert->summary)};
        table_add(&test->table, cells);
    }
    for (size_t i = 0; i < rules->state_count; i++)
        for (size_t k = 0; k < rules->set->sli_count; k++) {
            const struct sli_values *values = &rules->states[i].values[k];
            for (size_t n = 0; n < values->count && !strcmp(rules->states[i].tenant, test->tenant);
                 n++) {
                double value = values->list[n].value;
                test->low[k] = test->values[k] ? MIN(test->low[k], value) : value;
                test->high[k] = test->values[k] ? MAX(test->high[k], value) : value;
                test->values[k]++;
            }
        }
}

/* To standard error: the table is the result. */
static void say_slis(const struct test *test)
{
    const struct rules *rules = test->rules;
    for (size_t k = 0; k < rules->set->sli_count; k++) {
        const char *name = rules->set->slis[k].name, *reason = "";
        for (size_t i = 0; i < rules->state_count; i++)
            if (!strcmp(rules->states[i].tenant, test->tenant))
                reason = rules->states[i].values[k].reason;
        if (test->values[k])
            fprintf(stderr, "%s: %llu values from %.6g to %.6g\n", name,
                    (unsigned long long)test->values[k], test->low[k], test->high[k]);
        else
            fprintf(stderr, "%s: no values: %s\n", name, *reason ? reason : "no data");
    }
}

static int run_rounds(struct test *test, int64_t from_ns, int64_t to_ns, struct error *error)
{
    struct rule_set *set = test->rules->set;
    if ((to_ns - from_ns) / set->interval_ns > ROUNDS_MAX)
        return error_set(error, -E2BIG,
                         "The range has more than %d intervals: choose a shorter one with --from "
                         "and --to.",
                         ROUNDS_MAX);
    for (int64_t at = from_ns; at <= to_ns; at += set->interval_ns)
        if (rules_round(test->rules, at + set->delay_ns))
            note_round(test, test->rules->last_ns);
    return 0;
}

/* All that there is, unless the flags say less. */
static int read_range(const struct rules_flags *flags, struct store *store, int64_t *from_ns,
                      int64_t *to_ns, struct error *error)
{
    struct store_stats stats;
    int64_t now_ns = clock_ns(CLOCK_REALTIME);
    int r = store_stats(store, &stats, error);
    if (r < 0)
        return r;
    *from_ns = stats.first_ns[STORE_RAW];
    *to_ns = stats.last_ns[STORE_RAW] + 600000000000ll;
    if (!*from_ns && !flags->from)
        return error_set(error, -ENOENT, "There is no data in %s.", flags->data);
    if (flags->from)
        r = query_time(flags->from, now_ns, from_ns, error);
    if (!r && flags->to)
        r = query_time(flags->to, now_ns, to_ns, error);
    return r;
}

static int open_test(struct test *test, const struct rules_flags *flags, struct error *error)
{
    struct store_options options = {.directory = flags->data,
                                    .read_only = true,
                                    .budget = &test->admissions.memory};
    admissions_init(&test->admissions, MEMORY_BYTES);
    atomic_store(&test->admissions.query_memory_bytes, MEMORY_BYTES / 8);
    test->server.admissions = &test->admissions;
    if (access(flags->data, F_OK) < 0)
        return error_set_errno(error, -errno, "Failed to open %s", flags->data);
    int r = store_open_embedded(&options, &test->server.store, error);
    return r < 0 ? r : rules_open(&test->server, NULL, &test->rules, error);
}

static int run_test(struct test *test, const struct rules_flags *flags, struct rule_set *set,
                    struct error *error)
{
    int64_t from_ns, to_ns;
    int r = open_test(test, flags, error);
    if (r < 0) {
        rule_set_unref(set);
        return r;
    }
    rules_set(test->rules, set);
    test->low = memory_zalloc(set->sli_count + 1, sizeof(double));
    test->high = memory_zalloc(set->sli_count + 1, sizeof(double));
    test->values = memory_zalloc(set->sli_count + 1, sizeof(uint64_t));
    r = read_range(flags, test->server.store, &from_ns, &to_ns, error);
    return r < 0 ? r : run_rounds(test, from_ns, to_ns, error);
}

static int test_rules(const struct rules_flags *flags, const char *path, enum table_format format)
{
    static const struct column columns[] = {{"time", "time", COLUMN_NAME},
                                            {"state", "state", COLUMN_NAME},
                                            {"alert", "alert", COLUMN_NAME},
                                            {"labels", "labels", COLUMN_NAME},
                                            {"what", "what", COLUMN_NAME}};
    _cleanup_buffer_ struct buffer out = {0};
    struct test *test = memory_zalloc(1, sizeof(*test));
    struct error error = {0};
    struct rule_set *set = read_file(path);
    if (!set) {
        free(test);
        return EXIT_FAILED;
    }
    test->tenant = flags->tenant ? flags->tenant : "anonymous";
    table_init(&test->table, columns, ARRAY_LENGTH(columns), "count");
    int code = run_test(test, flags, set, &error) < 0 ? fail(&error) : EXIT_FINE;
    if (code == EXIT_FINE) {
        table_write(&test->table, format, terminal_colour(), &out);
        print_buffer(&out);
        say_slis(test);
    }
    table_release(&test->table);
    rules_close(test->rules);
    store_close(test->server.store);
    admissions_release(&test->admissions);
    free(test->seen);
    free(test->low);
    free(test->high);
    free(test->values);
    free(test);
    return code;
}

int command_rules(int argc, char **argv)
{
    struct rules_flags flags = {0};
    enum table_format format;
    const struct option own[] = {
        {"Recorded data", .kind = OPTION_GROUP},
        {"data", 'd', OPTION_TEXT, "DIR", "of test: data directory of a store", &flags.data},
        {"tenant", 0, OPTION_TEXT, "T", "of test: the tenant (anonymous)", &flags.tenant},
        {"from", 0, OPTION_TEXT, "TIME", "of test: from this time on (all data)", &flags.from},
        {"to", 0, OPTION_TEXT, "TIME", "of test: before this time", &flags.to},
        {"Output", .kind = OPTION_GROUP},
        {"format", 'f', OPTION_TEXT, "F", "text, json or csv", &flags.format},
        {0}};
    struct command_line line = {.command = "rules",
                                .arguments = "check|test FILE",
                                .summary = "Checks a file of SLIs and alerts, or runs it on "
                                           "recorded data.",
                                .options = own,
                                .least = 2,
                                .most = 2};
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    const char *action = line.values[0], *file = line.values[1];
    if (!table_format_parse(flags.format, &format))
        return options_wrong("rules", "--format must be text, json or csv, not \"%s\".",
                             flags.format);
    if (!strcmp(action, "check"))
        return check(file);
    if (strcmp(action, "test"))
        return options_wrong("rules", "The action must be check or test, not \"%s\".", action);
    if (!flags.data)
        return options_wrong("rules", "test needs --data, the data directory of a store.");
    return test_rules(&flags, file, format);
}
