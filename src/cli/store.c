// SPDX-License-Identifier: Apache-2.0
// `assay store`: looks at a store's folder, and removes from it what should never have been stored.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "query/query.h"
#include "store/store.h"

struct store_flags {
    const char *query, *from, *to, *tenant;
};

static int print_line(void *context, const char *text)
{
    (void)context;
    printf("%s\n", text);
    return 0;
}

static int print_stats(struct store *store, struct error *error)
{
    static const char *const tiers[STORE_TIERS] = {"raw", "10 minutes", "hour", "day"};
    struct store_stats stats;
    int r = store_stats(store, &stats, error);
    if (r < 0)
        return r;
    printf("samples     %" PRIu64 "\nwindows     %" PRIu64 "\nseries      %" PRIu64
           "\nuncompacted %" PRIu64 " blocks\n",
           stats.rows, stats.windows, stats.series, stats.fresh_blocks);
    for (int i = 0; i < STORE_TIERS; i++)
        printf("%-11s %" PRIu64 " files, %" PRIu64 " blocks, %" PRIu64 " bytes\n", tiers[i],
               stats.files[i], stats.blocks[i], stats.bytes[i]);
    return store_problems(store, print_line, NULL, error);
}

static int delete (struct store *store, const struct store_flags *flags, struct error *error)
{
    _cleanup_query_ struct query query = {0};
    struct store_selection selection = {.tenant = flags->tenant, .selector = &query.selector};
    uint64_t windows = 0;
    int64_t now = clock_ns(CLOCK_REALTIME);
    int r = query_parse(flags->query, &query, error);
    if (!r)
        r = query_time(flags->from, now, &selection.from_ns, error);
    if (!r)
        r = query_time(flags->to, now, &selection.to_ns, error);
    if (!r && *query.type)
        r = query_resolve(&query, store, flags->tenant, selection.from_ns, selection.to_ns, error);
    if (r < 0)
        return r;
    selection.type = *query.type ? query.type : NULL;
    r = store_delete(store, &selection, &windows, error);
    printf("%" PRIu64 " windows were deleted.\n", windows);
    return r;
}

int command_store(int argc, char **argv)
{
    struct store_flags flags = {.tenant = "anonymous"};
    const struct option own[] = {
        {"What to delete", .kind = OPTION_GROUP},
        {"query", 0, OPTION_TEXT, "QUERY", "such as cpu{service=\"x\"}; {} is everything",
         &flags.query},
        {"from", 0, OPTION_TEXT, "T", "unix seconds, RFC 3339 or now-1h", &flags.from},
        {"to", 0, OPTION_TEXT, "T", "likewise", &flags.to},
        {"tenant", 0, OPTION_TEXT, "NAME", "whose data (anonymous)", &flags.tenant},
        {0}};
    struct command_line line = {
        .command = "store",
        .arguments = "check DIR | stats DIR | delete DIR",
        .summary =
            "Checks the folder of a store, counts what is in it, or deletes some of it. A store\n"
            "can be deleted from while no server has it.",
        .options = own,
        .least = 2,
        .most = 2,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    const char *verb = line.values[0];
    bool deletes = !strcmp(verb, "delete"), checks = !strcmp(verb, "check");
    if (!deletes && !checks && strcmp(verb, "stats"))
        return options_wrong("store", "Say check, stats or delete, not \"%s\".", verb);
    if (deletes && (!flags.query || !flags.from || !flags.to))
        return options_wrong("store", "delete wants --query, --from and --to.");
    struct error error = {0};
    struct store *store;
    struct store_options options = {.directory = line.values[1], .read_only = !deletes};
    if (store_open_embedded(&options, &store, &error) < 0)
        return fail(&error);
    r = deletes  ? delete (store, &flags, &error)
        : checks ? store_check(store, print_line, NULL, &error)
                 : print_stats(store, &error);
    store_close(store);
    if (r < 0)
        return fail(&error);
    if (checks)
        printf("All of it is in order.\n");
    return EXIT_FINE;
}
