// SPDX-License-Identifier: Apache-2.0
// `assay push`: sends profiles from a pipeline to a server. Each file is a push with an id made of
// what is sent, so that running a step again stores nothing twice.

#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/remote/address.h"

#define FILE_BYTES_MAX (256u << 20)

struct push_command {
    struct server_link link;
    struct option_list labels;
    const char *service, *from, *to, *batch, *format;
};

static int check_label(const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals && equals != text && equals[1])
        return 0;
    return options_wrong("push", "--label takes KEY=VALUE, not \"%s\".", text);
}

static bool has_service(const struct push_command *command)
{
    for (size_t i = 0; i < command->labels.count; i++)
        if (!strncmp(command->labels.values[i], "service=", 8) ||
            !strncmp(command->labels.values[i], "service_name=", 13))
            return true;
    return command->service != NULL;
}

static void add_labels(const struct push_command *command, struct buffer *url)
{
    address_add_parameter(url, "service", command->service);
    for (size_t i = 0; i < command->labels.count; i++) {
        const char *text = command->labels.values[i], *equals = strchr(text, '=');
        char *name = memory_strndup(text, (size_t)(equals - text));
        address_add_parameter(url, name, equals + 1);
        free(name);
    }
    address_add_parameter(url, "from", command->from);
    address_add_parameter(url, "to", command->to);
    address_add_parameter(url, "format", command->format);
}

/* The same content with the same labels is the same push, whenever it is sent. */
static void make_batch_id(const struct push_command *command, const struct buffer *url,
                          const struct buffer *content, size_t index, char *header, size_t room)
{
    XXH128_hash_t body = XXH3_128bits(content->data, content->length);
    XXH128_hash_t address = XXH3_128bits_withSeed(url->data, url->length, body.low64);
    if (command->batch)
        snprintf(header, room, "X-Assay-Batch-Id: %.200s-%zu", command->batch, index);
    else
        snprintf(header, room, "X-Assay-Batch-Id: push-%016llx%016llx",
                 (unsigned long long)(body.high64 ^ address.high64),
                 (unsigned long long)address.low64);
}

struct stored {
    double windows, samples;
    bool repeated;
};

static int read_stored(struct json *json, void *context)
{
    struct stored *stored = context;
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0) {
        if (json_is(&key, "windows"))
            r = answer_number(json, &stored->windows);
        else if (json_is(&key, "samples"))
            r = answer_number(json, &stored->samples);
        else if (json_is(&key, "repeated"))
            r = answer_bool(json, &stored->repeated);
        else
            r = json_skip(json);
    }
    return r;
}

static int push_file(struct push_command *command, const char *path, size_t index)
{
    _cleanup_buffer_ struct buffer url = {0}, content = {0}, answer = {0};
    struct error error = {0};
    char header[256];
    if (file_read(path, FILE_BYTES_MAX, &content, &error) < 0)
        return fail(&error);
    if (!content.length) {
        log_error("%s is empty; nothing was sent.", path);
        return EXIT_FAILED;
    }
    address_begin(&url, &command->link, "/api/v1/push");
    add_labels(command, &url);
    make_batch_id(command, &url, &content, index, header, sizeof(header));
    const char *headers[] = {header, "Content-Type: application/octet-stream"};
    struct http_call call = {.method = "POST",
                             .url = buffer_text(&url),
                             .headers = headers,
                             .header_count = ARRAY_LENGTH(headers),
                             .body = content.data,
                             .body_length = content.length};
    if (address_call(&command->link, &call, &answer, &error) < 0) {
        error_prefix(&error, "%s", path);
        return fail(&error);
    }
    struct stored stored = {0};
    server_link_read(&answer, read_stored, &stored, NULL);
    if (stored.repeated)
        printf("%s: stored before\n", path);
    else
        printf("%s: %.0f windows, %.0f samples\n", path, stored.windows, stored.samples);
    return 0;
}

int command_push(int argc, char **argv)
{
    struct push_command command = {.link = {.url = SERVER_LINK_URL}};
    const struct option own[] = {
        {"What is sent", .kind = OPTION_GROUP},
        {"service", 0, OPTION_TEXT, "NAME", "the service that the profiles are of",
         &command.service},
        {"label", 'l', OPTION_LIST, "K=V", "a label, such as version=1.2; may be repeated",
         &command.labels},
        {"from", 0, OPTION_TEXT, "T", "when it began, where the file doesn't say", &command.from},
        {"to", 0, OPTION_TEXT, "T", "when it ended, where the file doesn't say", &command.to},
        {"format", 'f', OPTION_TEXT, "NAME", "its format, instead of detecting it",
         &command.format},
        {"batch-id", 0, OPTION_TEXT, "ID", "a name for this push; the same one is stored once",
         &command.batch},
        SERVER_URL_OPTIONS(command.link),
        {0}};
    struct command_line line = {
        .command = "push",
        .arguments = "FILE...",
        .summary = "Sends profiles to a server, with retries. A file that was sent before with the "
                   "same labels\nis not stored again.",
        .options = own,
        .least = 1,
        .most = -1,
    };
    struct error error = {0};
    int r = options_parse(&line, argc, argv);
    if (r >= 0)
        return r;
    r = 0;
    for (size_t i = 0; !r && i < command.labels.count; i++)
        r = check_label(command.labels.values[i]);
    if (!r && !has_service(&command))
        r = options_wrong("push",
                          "Say which service it is: --service NAME or --label service=NAME.");
    if (r)
        return r;
    if (server_link_open(&command.link, &error) < 0)
        return fail(&error);
    for (int i = 0; !r && i < line.count; i++)
        r = push_file(&command, line.values[i], (size_t)i);
    server_link_close(&command.link);
    return r;
}
