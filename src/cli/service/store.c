// SPDX-License-Identifier: Apache-2.0
// `assay store`: looks at a store's directory, carries what is in it elsewhere, and removes from it
// what should never have been stored.

#include "cli/service/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/table.h"
#include "http/access/tokens.h"
#include "server/audit/audit.h"
#include "spans/index.h"

static const char *const tiers[STORE_TIERS] = {"raw", "10 minutes", "hour", "day"};

int store_select(const struct store_flags *flags, struct store *store, struct query *query,
                 struct store_selection *ret_selection, struct error *error)
{
    struct store_selection selection = {.tenant = flags->tenant,
                                        .selector = &query->selector,
                                        .from_ns = INT64_MIN,
                                        .to_ns = INT64_MAX};
    int64_t now = clock_ns(CLOCK_REALTIME);
    struct store_selection typed;
    int r = query_parse(flags->query ? flags->query : "{}", query, error);
    if (!r && flags->from)
        r = query_time(flags->from, now, &selection.from_ns, error);
    if (!r && flags->to)
        r = query_time(flags->to, now, &selection.to_ns, error);
    if (!r && selection.from_ns >= selection.to_ns)
        r = error_set(error, -EINVAL, "The time range ends before it begins.");
    typed = selection;
    if (!typed.tenant)
        typed.tenant = TOKEN_DEFAULT_TENANT;
    if (!r && *query->type)
        r = query_resolve(query, store, &typed, error);
    if (r < 0)
        return r;
    selection.type = *query->type ? query->type : NULL;
    *ret_selection = selection;
    return 0;
}

bool store_is_url(const char *place)
{
    return !strncmp(place, "clickhouse:", 11);
}

int store_open_place(const char *place, bool read_only, struct store **ret_store,
                     struct error *error)
{
    /* How long things are kept is the server's business. */
    static const struct store_class for_ever = {.name = "default"};
    struct store_options options = {.directory = place,
                                    .classes = &for_ever,
                                    .class_count = 1,
                                    .commit_ms = 1,
                                    .read_only = read_only};
    return store_is_url(place) ? store_open(place, &options, ret_store, error)
                               : store_open_embedded(&options, ret_store, error);
}

void store_note(const char *directory, const char *tenant, const char *action, const char *target,
                const char *outcome)
{
    char actor[AUDIT_ACTOR_BYTES];
    struct audit *audit;
    struct error error = {0};
    if (audit_open(directory, &audit, &error) < 0) {
        fail(&error);
        return;
    }
    audit_write(audit, &(struct audit_entry){.actor = audit_local_actor(actor),
                                             .tenant = tenant,
                                             .action = action,
                                             .target = target,
                                             .outcome = outcome});
    audit_close(audit);
}

static int print_line(void *context, const char *text)
{
    (void)context;
    printf("%s\n", text);
    return 0;
}

/* ---- statistics: a line per tenant, class and tier ---- */

struct stats_line {
    char tenant[STORE_TENANT_BYTES_MAX + 1], class_name[65];
    enum store_tier tier;
    uint64_t files, bytes, blocks, fresh, windows, rows;
    int64_t first_ns, last_ns;
};

struct stats_list {
    struct stats_line *lines;
    size_t count, capacity;
};

/* Files come by tenant, class and tier. */
static int add_file(void *context, const struct store_file *file)
{
    struct stats_list *list = context;
    struct stats_line *line = list->count ? &list->lines[list->count - 1] : NULL;
    if (!line || line->tier != file->tier || strcmp(line->tenant, file->tenant) ||
        strcmp(line->class_name, file->class_name)) {
        array_reserve(list->lines, list->capacity, list->count + 1);
        line = &list->lines[list->count++];
        *line = (struct stats_line){.tier = file->tier};
        snprintf(line->tenant, sizeof(line->tenant), "%s", file->tenant);
        snprintf(line->class_name, sizeof(line->class_name), "%s", file->class_name);
    }
    line->files++;
    line->bytes += file->bytes;
    line->blocks += file->blocks;
    line->fresh += file->fresh_blocks;
    line->windows += file->windows;
    line->rows += file->rows;
    if (file->blocks) {
        line->first_ns = line->first_ns ? MIN(line->first_ns, file->first_ns) : file->first_ns;
        line->last_ns = MAX(line->last_ns, file->last_ns);
    }
    return 0;
}

static void time_text(int64_t time_ns, char text[32])
{
    time_t seconds = (time_t)(time_ns / 1000000000);
    struct tm tm;
    if (!time_ns || !gmtime_r(&seconds, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M", &tm))
        snprintf(text, 32, "-");
}

static void print_stats_table(const struct stats_list *list, enum table_format format)
{
    static const struct column columns[] = {
        {"tenant", "tenant", COLUMN_NAME},
        {"class", "class", COLUMN_NAME},
        {"tier", "tier", COLUMN_NAME},
        {"files", "files", COLUMN_COUNT},
        {"blocks", "blocks", COLUMN_COUNT},
        {"fresh", "fresh_blocks", COLUMN_COUNT},
        {"samples", "samples", COLUMN_COUNT},
        {"bytes", "bytes", COLUMN_COUNT},
        {"bytes each", "bytes_each", COLUMN_NAME},
        {"from", "first", COLUMN_NAME},
        {"to (UTC)", "last", COLUMN_NAME},
    };
    _cleanup_table_ struct table table = {0};
    _cleanup_buffer_ struct buffer out = {0};
    table_init(&table, columns, ARRAY_LENGTH(columns), "");
    for (size_t i = 0; i < list->count; i++) {
        const struct stats_line *line = &list->lines[i];
        char first[32], last[32], each[32] = "-";
        time_text(line->first_ns, first);
        time_text(line->last_ns, last);
        if (line->rows)
            snprintf(each, sizeof(each), "%.2f", (double)line->bytes / (double)line->rows);
        struct cell cells[] = {cell_text(line->tenant),
                               cell_text(line->class_name),
                               cell_text(tiers[line->tier]),
                               cell_number((int64_t)line->files),
                               cell_number((int64_t)line->blocks),
                               cell_number((int64_t)line->fresh),
                               cell_number((int64_t)line->rows),
                               cell_number((int64_t)line->bytes),
                               cell_text(each),
                               cell_text(first),
                               cell_text(last)};
        table_add(&table, cells);
    }
    table_write(&table, format, terminal_colour(), &out);
    if (format == TABLE_JSON)
        buffer_add_char(&out, '\n');
    print_buffer(&out);
}

static int print_stats(struct store *store, enum table_format format, struct error *error)
{
    struct store_stats stats;
    struct stats_list list = {0};
    int r = store_stats(store, &stats, error);
    if (!r)
        r = store_files(store, add_file, &list, error);
    if (!r && format == TABLE_TEXT) {
        uint64_t bytes = 0;
        for (int i = 0; i < STORE_TIERS; i++)
            bytes += stats.bytes[i];
        printf("%" PRIu64 " samples in %" PRIu64 " windows of %" PRIu64 " series and %" PRIu64
               " services, %.1f MiB.\n",
               stats.rows, stats.windows, stats.series, stats.services, (double)bytes / (1 << 20));
    }
    if (!r && (list.count || format != TABLE_TEXT))
        print_stats_table(&list, format);
    free(list.lines);
    return r < 0 || format != TABLE_TEXT ? r : store_problems(store, print_line, NULL, error);
}

static int print_audit(const struct store_flags *flags, const char *directory)
{
    _cleanup_buffer_ struct buffer lines = {0};
    struct error error = {0};
    if (audit_read(directory, flags->tenant, flags->limit ? flags->limit : SIZE_MAX, &lines,
                   &error) < 0)
        return fail(&error);
    print_buffer(&lines);
    return EXIT_FINE;
}

static int look(const char *place, bool checks, enum table_format format)
{
    struct error error = {0};
    struct store *store;
    struct store_options options = {.directory = place, .read_only = true};
    bool here = !store_is_url(place);
    int opened = here ? store_open_embedded(&options, &store, &error)
                      : store_open(place, &options, &store, &error);
    if (opened < 0)
        return fail(&error);
    int r =
        checks ? store_check(store, print_line, NULL, &error) : print_stats(store, format, &error);
    store_close(store);
    struct error spans_error = {0};
    int spans = checks && here ? span_index_check(place, print_line, NULL, &spans_error) : 0;
    if (r < 0 && spans < 0)
        fail(&error);
    if (spans < 0)
        return fail(&spans_error);
    if (r < 0)
        return fail(&error);
    if (checks)
        printf("No damage found.\n");
    return EXIT_FINE;
}

static int init(const struct store_flags *flags, const char *place)
{
    struct error error = {0};
    if (place || !flags->store)
        return options_wrong("store", "init requires --store URL.");
    if (store_init(flags->store, &error) < 0)
        return fail(&error);
    printf("The tables are up to date.\n");
    return EXIT_FINE;
}

static int run(const struct store_flags *flags, const struct command_line *line)
{
    const char *verb = line->values[0], *place = line->count > 1 ? line->values[1] : NULL;
    const char *file = line->count > 2 ? line->values[2] : NULL;
    bool compares = !strcmp(verb, "compare");
    bool moves = !strcmp(verb, "export") || !strcmp(verb, "import") || compares;
    enum table_format format;
    if (!table_format_parse(flags->format, &format))
        return options_wrong("store", "--format must be text, json or csv, not \"%s\".",
                             flags->format);
    if (!strcmp(verb, "init"))
        return init(flags, place);
    if (!strcmp(verb, "acknowledge")) {
        if (!place || file || !flags->reason || !*flags->reason)
            return options_wrong("store", "acknowledge requires a damaged file and --reason.");
        return store_acknowledge_command(flags, place);
    }
    if (!strcmp(verb, "retention")) {
        if (!place || strcmp(place, "resume") || !file == !flags->url)
            return options_wrong("store", "retention resume requires a directory or --url.");
        return store_resume_command(flags, file);
    }
    if (moves != (file != NULL))
        return options_wrong("store",
                             compares ? "%s requires two stores."
                             : moves  ? "%s requires a directory and a file (- is a pipe)."
                                      : "%s requires one directory.",
                             verb);
    if (!strcmp(verb, "delete")) {
        if (!place == !flags->url)
            return options_wrong("store", "delete requires a directory, or --url of a server.");
        if (!flags->query || !flags->from || !flags->to)
            return options_wrong("store", "delete requires --query, --from and --to.");
        return store_delete_command(flags, place);
    }
    if (!place)
        return options_wrong("store", "%s requires a directory.", verb);
    if (compares)
        return store_compare_command(flags, place, file);
    if (!strcmp(verb, "export"))
        return store_export_command(flags, place, file);
    if (!strcmp(verb, "import"))
        return store_import_command(flags, place, file);
    if (!strcmp(verb, "audit"))
        return print_audit(flags, place);
    if (!strcmp(verb, "check") || !strcmp(verb, "stats"))
        return look(place, !strcmp(verb, "check"), format);
    return options_wrong("store",
                         "Unknown action \"%s\": use init, check, stats, audit, delete, "
                         "acknowledge, retention, export, import or compare.",
                         verb);
}

int command_store(int argc, char **argv)
{
    struct store_flags flags = {0};
    const struct option own[] = {
        {"Selection for delete, export and compare", .kind = OPTION_GROUP},
        {"query", 0, OPTION_TEXT, "QUERY", "such as cpu{service=\"x\"}; {} is everything",
         &flags.query},
        {"from", 0, OPTION_TEXT, "T", "unix seconds, RFC 3339 or now-1h", &flags.from},
        {"to", 0, OPTION_TEXT, "T", "likewise", &flags.to},
        {"tenant", 0, OPTION_TEXT, "NAME", "tenant (default: anonymous for delete, otherwise all)",
         &flags.tenant},
        {"Deleting", .kind = OPTION_GROUP},
        {"dry-run", 0, OPTION_FLAG, NULL, "only print the amount", &flags.dry_run},
        {"yes", 'y', OPTION_FLAG, NULL, "don't ask for confirmation", &flags.yes},
        {"url", 'u', OPTION_TEXT, "URL", "use a running server; also unix:PATH", &flags.url},
        {"token-file", 0, OPTION_TEXT, "FILE", "file with an admin token; default: $ASSAY_TOKEN",
         &flags.token_file},
        {"ca", 0, OPTION_TEXT, "FILE", "certificate authority of the server, PEM", &flags.ca},
        {"reason", 0, OPTION_TEXT, "TEXT", "reason for the audit log; acknowledge requires it",
         &flags.reason},
        {"ClickHouse", .kind = OPTION_GROUP},
        {"store", 0, OPTION_TEXT, "URL", "for init: clickhouse://USER@HOST:PORT/DATABASE",
         &flags.store},
        {"Showing", .kind = OPTION_GROUP},
        {"format", 'f', OPTION_TEXT, "F", "output of stats: text, json or csv", &flags.format},
        {"limit", 'n', OPTION_COUNT, "N", "only the last lines of the audit log", &flags.limit},
        {0}};
    struct command_line line = {
        .command = "store",
        .arguments = "check|stats|audit|delete DIR, export|import DIR FILE, compare DIR DIR,\n"
                     "       acknowledge FILE, retention resume DIR, init --store URL",
        .summary =
            "Checks a store's directory, shows stats and the audit log, deletes, exports "
            "and\nimports data, acknowledges damaged files, and resumes retention after a "
            "clock\njump stopped it. compare compares the totals of two stores. init makes or "
            "updates\nthe tables of a store on ClickHouse, whose URL check, stats, export, import "
            "and\ncompare take instead of DIR. Commands that change the directory need "
            "exclusive "
            "access;\nwith a running server, use --url.",
        .options = own,
        .least = 1,
        .most = 3,
    };
    int r = options_parse(&line, argc, argv);
    return r >= 0 ? r : run(&flags, &line);
}
