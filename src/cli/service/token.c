// SPDX-License-Identifier: Apache-2.0
// `assay token`: the tokens that a server lets in, by the file they are kept in.

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/table.h"
#include "config/quantity.h"
#include "http/access/tokens.h"
#include "server/audit/audit.h"

struct token_options {
    const char *file, *roles, *tenant, *expires, *format, *data;
};

/* In the audit log of --data, or of the directory that the file is in when there is one. */
static void note(const struct token_options *options, const char *action, const char *name,
                 const char *tenant, const char *outcome)
{
    char folder[PATH_MAX], log[PATH_MAX + 16], actor[AUDIT_ACTOR_BYTES];
    struct audit *audit;
    struct error error = {0};
    const char *slash = strrchr(options->file, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - options->file) : 1,
             slash ? options->file : ".");
    snprintf(log, sizeof(log), "%s/" AUDIT_FILE, folder);
    if (!options->data && access(log, F_OK) < 0)
        return;
    if (audit_open(options->data ? options->data : folder, &audit, &error) < 0) {
        fail(&error);
        return;
    }
    audit_write(audit, &(struct audit_entry){.actor = audit_local_actor(actor),
                                             .tenant = tenant,
                                             .action = action,
                                             .target = name,
                                             .outcome = outcome});
    audit_close(audit);
}

static void day_text(int64_t seconds, const char *otherwise, char text[32])
{
    time_t time = (time_t)seconds;
    struct tm tm;
    if (!seconds || !gmtime_r(&time, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M", &tm))
        snprintf(text, 32, "%s", otherwise);
}

static int create(const struct token_options *options, const char *name)
{
    unsigned roles;
    int64_t lifetime = 0;
    char text[TOKEN_TEXT_BYTES];
    struct token token;
    struct error error = {0};
    if (options->expires && !quantity_duration(options->expires, &lifetime))
        return options_wrong("token", "--expires must be a duration such as 90d, not \"%s\".",
                             options->expires);
    if (token_roles_parse(options->roles, &roles, &error) < 0)
        return fail(&error);
    int64_t expires = lifetime ? (int64_t)time(NULL) + lifetime / 1000000000 : 0;
    if (token_create(options->file, name, roles, options->tenant, expires, text, &token, &error) <
        0)
        return fail(&error);
    char outcome[96], role_text[32];
    snprintf(outcome, sizeof(outcome), "id %s, roles %s", token.id,
             token_roles_text(roles, role_text));
    note(options, "token create", name, options->tenant, outcome);
    printf("%s\n", text);
    fprintf(stderr, "assay: the token is shown only once; its id is %s.\n", token.id);
    return EXIT_FINE;
}

static int list(const struct token_options *options)
{
    static const struct column columns[] = {
        {"id", "id", COLUMN_NAME},           {"name", "name", COLUMN_NAME},
        {"roles", "roles", COLUMN_NAME},     {"tenant", "tenant", COLUMN_NAME},
        {"created", "created", COLUMN_NAME}, {"expires", "expires", COLUMN_NAME},
    };
    _cleanup_token_list_ struct token_list tokens = {0};
    _cleanup_table_ struct table table = {0};
    _cleanup_buffer_ struct buffer out = {0};
    struct error error = {0};
    enum table_format format;
    if (!table_format_parse(options->format, &format))
        return options_wrong("token", "--format must be text, json or csv, not \"%s\".",
                             options->format);
    if (token_list_read(options->file, &tokens, &error) < 0)
        return fail(&error);
    table_init(&table, columns, ARRAY_LENGTH(columns), "");
    for (size_t i = 0; i < tokens.count; i++) {
        const struct token *token = &tokens.list[i];
        char roles[32], created[32], expires[32];
        day_text(token->created, "", created);
        day_text(token->expires, "never", expires);
        struct cell cells[] = {cell_text(token->id),
                               cell_text(token->name),
                               cell_text(token_roles_text(token->roles, roles)),
                               cell_text(token->tenant),
                               cell_text(created),
                               cell_text(expires)};
        table_add(&table, cells);
    }
    table_write(&table, format, terminal_colour(), &out);
    if (format == TABLE_JSON)
        buffer_add_char(&out, '\n');
    print_buffer(&out);
    return EXIT_FINE;
}

int command_token(int argc, char **argv)
{
    struct token_options options = {
        .file = "tokens", .roles = "ingest", .tenant = TOKEN_DEFAULT_TENANT};
    const struct option own[] = {
        {"Tokens", .kind = OPTION_GROUP},
        {"file", 0, OPTION_TEXT, "FILE", "token file (tokens), as with --tokens of the server",
         &options.file},
        {"roles", 'r', OPTION_TEXT, "ROLES", "roles: ingest, read, admin or several (ingest)",
         &options.roles},
        {"tenant", 0, OPTION_TEXT, "NAME", "tenant whose data it can read and send (anonymous)",
         &options.tenant},
        {"expires", 0, OPTION_TEXT, "TIME", "lifetime, such as 90d (default: unlimited)",
         &options.expires},
        {"data", 0, OPTION_TEXT, "DIR", "the server's data directory, for the audit log",
         &options.data},
        {"format", 'f', OPTION_TEXT, "F", "output of list: text, json or csv", &options.format},
        {0}};
    struct command_line line = {
        .command = "token",
        .arguments = "create NAME | list | revoke NAME",
        .summary = "Creates, lists and revokes tokens for requests to a server.",
        .options = own,
        .least = 1,
        .most = 2,
    };
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    const char *verb = line.values[0];
    if (!strcmp(verb, "list") && line.count == 1)
        return list(&options);
    if (line.count == 2 && !strcmp(verb, "create"))
        return create(&options, line.values[1]);
    if (line.count != 2 || strcmp(verb, "revoke"))
        return options_wrong("token", "Use create NAME, list, or revoke NAME.");
    struct error error = {0};
    if (token_revoke(options.file, line.values[1], &error) < 0)
        return fail(&error);
    note(&options, "token revoke", line.values[1], "", "done");
    return EXIT_FINE;
}
