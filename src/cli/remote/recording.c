// SPDX-License-Identifier: Apache-2.0
// `assay recording`: has agents look closely at a service for a while.

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/remote/control.h"
#include "cli/table.h"
#include "io/json_write.h"

#define LOOK_MS 500

struct recording_options {
    struct server_link link;
    const char *service, *name, *selector;
    struct option_list hosts;
    uint64_t rate, seconds, wait_seconds;
    bool wait, json;
};

static const struct column list_columns[] = {{"samples", "samples", COLUMN_COUNT},
                                             {"Hz", "rate", COLUMN_COUNT},
                                             {"seconds", "seconds", COLUMN_COUNT},
                                             {"state", "state", COLUMN_NAME},
                                             {"agents", "agents", COLUMN_NAME},
                                             {"age", "age", COLUMN_NAME},
                                             {"id", "id", COLUMN_NAME},
                                             {"service", "service", COLUMN_NAME},
                                             {"name", "name", COLUMN_NAME}};

static const struct column part_columns[] = {{"samples", "samples", COLUMN_COUNT},
                                             {"state", "state", COLUMN_NAME},
                                             {"host", "host", COLUMN_NAME},
                                             {"agent", "agent", COLUMN_NAME},
                                             {"reason", "reason", COLUMN_NAME}};

struct recording_answer {
    char id[24], name[80], service[260], state[16], counts[128];
    double rate, seconds, created, samples;
    struct table *parts; /* NULL: they aren't wanted */
};

/* ---- answers ---- */

static int read_counts(struct json *json, char *text, size_t room)
{
    struct json_string key;
    size_t used = 0;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        char state[16];
        double count = 0;
        snprintf(state, sizeof(state), "%.*s", (int)MIN(key.length, sizeof(state) - 1), key.data);
        r = answer_number(json, &count);
        if (used < room)
            used += (size_t)snprintf(text + used, room - used, "%s%.0f %s", used ? ", " : "", count,
                                     state);
    }
    return r;
}

static int read_parts(struct json *json, struct table *table)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        char agent[80] = "", host[256] = "", state[16] = "", reason[300] = "";
        double samples = 0;
        struct json_string key;
        r = json_object(json);
        while (r >= 0 && (r = json_next_key(json, &key)) > 0)
            if (json_is(&key, "agent"))
                r = answer_text(json, agent, sizeof(agent));
            else if (json_is(&key, "host"))
                r = answer_text(json, host, sizeof(host));
            else if (json_is(&key, "state"))
                r = answer_text(json, state, sizeof(state));
            else if (json_is(&key, "reason"))
                r = answer_text(json, reason, sizeof(reason));
            else if (json_is(&key, "samples"))
                r = answer_number(json, &samples);
        const struct cell cells[] = {cell_number((int64_t)samples), cell_text(state),
                                     cell_text(host), cell_text(agent), cell_text(reason)};
        if (r >= 0)
            table_add(table, cells);
    }
    return r;
}

static int read_recording(struct json *json, void *context)
{
    struct recording_answer *answer = context;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "id"))
            r = answer_text(json, answer->id, sizeof(answer->id));
        else if (json_is(&key, "name"))
            r = answer_text(json, answer->name, sizeof(answer->name));
        else if (json_is(&key, "service"))
            r = answer_text(json, answer->service, sizeof(answer->service));
        else if (json_is(&key, "state"))
            r = answer_text(json, answer->state, sizeof(answer->state));
        else if (json_is(&key, "rate"))
            r = answer_number(json, &answer->rate);
        else if (json_is(&key, "seconds"))
            r = answer_number(json, &answer->seconds);
        else if (json_is(&key, "created"))
            r = answer_number(json, &answer->created);
        else if (json_is(&key, "samples"))
            r = answer_number(json, &answer->samples);
        else if (json_is(&key, "agents_by_state"))
            r = read_counts(json, answer->counts, sizeof(answer->counts));
        else if (json_is(&key, "agents") && answer->parts)
            r = read_parts(json, answer->parts);
    return r;
}

static int read_list(struct json *json, void *context)
{
    struct table *table = context;
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        struct recording_answer answer = {0};
        char age[24];
        r = read_recording(json, &answer);
        const struct cell cells[] = {cell_number((int64_t)answer.samples),
                                     cell_number((int64_t)answer.rate),
                                     cell_number((int64_t)answer.seconds),
                                     cell_text(answer.state),
                                     cell_text(answer.counts),
                                     cell_text(answer_age(answer.created, age)),
                                     cell_text(answer.id),
                                     cell_text(answer.service),
                                     cell_text(answer.name)};
        if (r >= 0)
            table_add(table, cells);
    }
    return r;
}

static bool is_over(const char *state)
{
    return strcmp(state, "pending") && strcmp(state, "running") && strcmp(state, "uploading");
}

/* Returns an exit code: a recording that came to nothing is a failure to whoever waited for it. */
static int show_one(const struct buffer *text, bool over)
{
    struct error error = {0};
    _cleanup_table_ struct table table;
    _cleanup_buffer_ struct buffer out = {0};
    table_init(&table, part_columns, ARRAY_LENGTH(part_columns), "");
    struct recording_answer answer = {.parts = &table};
    if (server_link_read(text, read_recording, &answer, &error) < 0)
        return fail(&error);
    buffer_printf(&out, "%s: \"%s\", %s at %.0f Hz for %.0f s, is %s with %.0f samples.\n",
                  answer.id, answer.name, answer.service, answer.rate, answer.seconds, answer.state,
                  answer.samples);
    table_write(&table, TABLE_TEXT, false, &out);
    if (over && !strcmp(answer.state, "done"))
        buffer_printf(&out, "Query it with: assay query top 'cpu{recording=\"%s\"}'\n", answer.id);
    print_buffer(&out);
    return over && strcmp(answer.state, "done") ? EXIT_FAILED : EXIT_FINE;
}

/* ---- what can be done ---- */

static int ask_one(struct server_link *link, const char *method, const char *id,
                   struct buffer *answer, struct error *error)
{
    char path[80];
    for (const char *at = id; *at; at++)
        if (!isalnum((unsigned char)*at) || strlen(id) > 23)
            return error_set(error, -EINVAL, "\"%.40s\" is not a recording id.", id);
    snprintf(path, sizeof(path), "/api/v1/recordings/%s", id);
    answer->length = 0;
    return server_link_call(link, method, path, NULL, answer, error);
}

static int wait_for(struct recording_options *options, struct buffer *text)
{
    char said[160] = "";
    for (;;) {
        struct error error = {0};
        struct recording_answer answer = {0};
        char line[sizeof(said)];
        if (server_link_read(text, read_recording, &answer, &error) < 0)
            return fail(&error);
        snprintf(line, sizeof(line), "%s: %s", answer.id, answer.counts);
        if (strcmp(line, said) && !options->json)
            fprintf(stderr, "assay: %s\n", line);
        memcpy(said, line, sizeof(said));
        if (is_over(answer.state))
            return EXIT_FINE;
        usleep(LOOK_MS * 1000);
        if (ask_one(&options->link, "GET", answer.id, text, &error) < 0)
            return fail(&error);
    }
}

static int start(struct recording_options *options)
{
    struct error error = {0};
    _cleanup_buffer_ struct buffer body = {0}, answer = {0};
    struct json_writer json = json_writer(&body);
    json_write_object(&json);
    json_member_unsigned(&json, "rate", options->rate);
    json_member_unsigned(&json, "seconds", options->seconds);
    json_member_unsigned(&json, "wait_seconds", options->wait_seconds);
    json_member_text(&json, "service", options->service);
    json_member_text(&json, "name", options->name ? options->name : "");
    json_member_text(&json, "selector", options->selector ? options->selector : "");
    json_write_key(&json, "hosts");
    json_write_array(&json);
    for (size_t i = 0; i < options->hosts.count; i++)
        json_write_text(&json, options->hosts.values[i]);
    json_write_array_end(&json);
    json_write_object_end(&json);
    if (server_link_call(&options->link, "POST", "/api/v1/recordings", buffer_text(&body), &answer,
                         &error) < 0)
        return fail(&error);
    int code = options->wait ? wait_for(options, &answer) : EXIT_FINE;
    if (code)
        return code;
    if (!options->json)
        return show_one(&answer, options->wait);
    print_buffer(&answer);
    return EXIT_FINE;
}

static int list(struct recording_options *options)
{
    struct error error = {0};
    _cleanup_buffer_ struct buffer answer = {0}, out = {0};
    _cleanup_table_ struct table table;
    table_init(&table, list_columns, ARRAY_LENGTH(list_columns), "");
    int r = server_link_call(&options->link, "GET", "/api/v1/recordings", NULL, &answer, &error);
    if (!r && options->json) {
        print_buffer(&answer);
        return EXIT_FINE;
    }
    if (!r)
        r = server_link_read(&answer, read_list, &table, &error);
    if (r < 0)
        return fail(&error);
    if (table.row_count)
        table_write(&table, TABLE_TEXT, false, &out);
    else
        buffer_add_text(&out, "No recordings.\n");
    print_buffer(&out);
    return EXIT_FINE;
}

static int one(struct recording_options *options, const char *method, const char *id)
{
    struct error error = {0};
    _cleanup_buffer_ struct buffer answer = {0};
    if (ask_one(&options->link, method, id, &answer, &error) < 0)
        return fail(&error);
    if (!options->json)
        return show_one(&answer, false);
    print_buffer(&answer);
    return EXIT_FINE;
}

static int run(struct recording_options *options, const struct command_line *line)
{
    const char *word = line->values[0];
    bool starts = !strcmp(word, "start"), lists = !strcmp(word, "list");
    bool stops = !strcmp(word, "stop"), shows = !strcmp(word, "show");
    struct error error = {0};
    if (!starts && !lists && !stops && !shows)
        return options_wrong("recording", "Unknown action \"%s\": use start, list, show or stop.",
                             word);
    if ((starts || lists) != (line->count == 1))
        return options_wrong(
            "recording",
            starts || lists ? "%s accepts no id." : "%s requires the id of a recording.", word);
    if (starts && !options->service)
        return options_wrong("recording", "Specify the service to record with --service.");
    if (server_link_open(&options->link, &error) < 0)
        return fail(&error);
    int code = starts  ? start(options)
               : lists ? list(options)
                       : one(options, stops ? "DELETE" : "GET", line->values[1]);
    server_link_close(&options->link);
    return code;
}

int command_recording(int argc, char **argv)
{
    struct recording_options options = {
        .link = {.url = SERVER_LINK_URL}, .rate = 99, .seconds = 30, .wait_seconds = 60};
    const struct option own[] = {
        {"Recording", .kind = OPTION_GROUP},
        {"service", 0, OPTION_TEXT, "NAME", "service to record (its service_name)",
         &options.service},
        {"rate", 'r', OPTION_COUNT, "HZ", "samples per second on each CPU (99)", &options.rate},
        {"seconds", 'd', OPTION_COUNT, "N", "duration (30)", &options.seconds},
        {"name", 'n', OPTION_TEXT, "NAME", "name of the recording (default: service and time)",
         &options.name},
        {"host", 0, OPTION_LIST, "HOST", "only on this host; can be repeated", &options.hosts},
        {"agents", 'a', OPTION_TEXT, "SELECTOR", "only matching agents, such as '{region=\"eu\"}'",
         &options.selector},
        {"expires", 0, OPTION_COUNT, "N", "time limit for agents to start (60)",
         &options.wait_seconds},
        {"wait", 'w', OPTION_FLAG, NULL, "wait until it is finished", &options.wait},
        {"Server", .kind = OPTION_GROUP},
        SERVER_LINK_OPTIONS(options.link),
        {"json", 'j', OPTION_FLAG, NULL, "print the answer as JSON", &options.json},
        {0}};
    struct command_line line = {
        .command = "recording",
        .arguments = "start|list|show ID|stop ID",
        .summary = "Records a service in detail for a while, through its agents.",
        .options = own,
        .least = 1,
        .most = 2,
    };
    int r = options_parse(&line, argc, argv);
    return r >= 0 ? r : run(&options, &line);
}
