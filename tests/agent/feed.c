// SPDX-License-Identifier: Apache-2.0
// The agent's spool and upload without the capture, so that tests can have hundreds of windows in
// seconds: feed [-k TOKEN-FILE] [-g] [-p] [-b BODY-FILE] [-r BATCHES-PER-SECOND] [-t TIMEOUT-MS]
// [-l LIMIT-BYTES]
// [-m MEMORY-BYTES] [-s BODY-BYTES] [-e FILE] URL FOLDER COUNT INTERVAL-MS. No more are put when
// the file exists; -p is gRPC. Prints "put ID" for every batch that is on disk and "memory ID" for
// one that is in memory alone, waits for the end of its standard input, and then prints the stats
// as JSON.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "agent/send/spool.h"
#include "agent/send/upload.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

static int fail(const struct error *error)
{
    fprintf(stderr, "%s\n", error->text);
    return 1;
}

/* A body that says which batch it is; what follows can't be compressed. Or a given one. */
static void make_body(const char *id, size_t bytes, const struct buffer *given, struct buffer *body)
{
    _cleanup_buffer_ struct buffer plain = {0};
    if (given->length)
        buffer_add(&plain, given->data, given->length);
    else
        buffer_printf(&plain, "%s\n", id);
    for (unsigned state = 1; !given->length && plain.length < bytes;
         state = state * 1103515245 + 12345)
        buffer_add_char(&plain, (char)(state >> 16));
    size_t room = ZSTD_compressBound(plain.length);
    body->length = ZSTD_compress(buffer_reserve(body, room), room, plain.data, plain.length, 1);
}

static void print_stats(struct spool *spool, const struct upload_stats *sent)
{
    struct spool_stats kept = spool_stats(spool);
    const struct {
        const char *name;
        uint64_t value;
    } list[] = {
        {"batches", kept.batches},
        {"bytes", kept.bytes},
        {"memory", kept.memory_batches},
        {"left", kept.left},
        {"put", kept.put},
        {"sent", kept.sent},
        {"dropped", kept.dropped},
        {"dropped_full", kept.dropped_full},
        {"dropped_old", kept.dropped_old},
        {"dropped_memory", kept.dropped_memory},
        {"damaged", kept.damaged},
        {"refused", kept.refused},
        {"requests", sent->requests},
        {"failures", sent->failures},
        {"throttled", sent->throttled},
        {"upload_refused", sent->refused},
        {"kept", sent->kept},
        {"skipped", sent->skipped},
        {"trouble", kept.trouble[0] != '\0'},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(list); i++)
        printf("%s\"%s\":%" PRIu64, i ? "," : "{", list[i].name, list[i].value);
    printf("}\n");
}

int main(int argc, char **argv)
{
    struct spool_options place = {0};
    struct upload_options options = {.first_retry_ms = 50,
                                     .longest_retry_ms = 400,
                                     .batches_per_second = 1000,
                                     .timeout_ms = 1000};
    _cleanup_buffer_ struct buffer given = {0};
    struct error error = {0};
    size_t body_bytes = 2000;
    const char *end_file = NULL;
    for (int option; (option = getopt(argc, argv, "k:gpb:r:t:l:m:s:e:")) != -1;) {
        switch (option) {
        case 'k':
            options.token_file = optarg;
            break;
        case 'g':
            options.compression = UPLOAD_GZIP;
            break;
        case 'p':
            options.protocol = UPLOAD_GRPC;
            break;
        case 'b':
            if (file_read(optarg, 1u << 20, &given, &error) < 0)
                return fail(&error);
            break;
        case 'r':
            options.batches_per_second = atof(optarg);
            break;
        case 't':
            options.timeout_ms = (unsigned)atoi(optarg);
            break;
        case 'l':
            place.limit_bytes = strtoull(optarg, NULL, 10);
            break;
        case 'm':
            place.memory_bytes = strtoull(optarg, NULL, 10);
            break;
        case 's':
            body_bytes = strtoull(optarg, NULL, 10);
            break;
        case 'e':
            end_file = optarg;
            break;
        default:
            return 2;
        }
    }
    if (argc - optind != 4)
        return 2;
    struct spool *spool;
    struct uploader *uploader;
    options.url = argv[optind];
    place.folder = argv[optind + 1];
    log_set_level(LOG_INFO);
    if (spool_open(&place, &spool, &error) < 0 ||
        uploader_start(&options, spool, &uploader, &error) < 0)
        return fail(&error);
    for (int i = 0; i < atoi(argv[optind + 2]) && (!end_file || access(end_file, F_OK)); i++) {
        _cleanup_buffer_ struct buffer body = {0};
        char id[SPOOL_ID_BYTES];
        snprintf(id, sizeof(id), "%016" PRIx64 "-%x", (uint64_t)clock_ns(CLOCK_REALTIME),
                 (unsigned)getpid());
        make_body(id, body_bytes, &given, &body);
        int r = spool_put(spool, id, body.data, body.length, &error);
        if (r < 0)
            return fail(&error);
        printf("%s %s\n", r ? "memory" : "put", id);
        fflush(stdout);
        usleep((unsigned)atoi(argv[optind + 3]) * 1000);
    }
    while (getchar() != EOF)
        ;
    struct upload_stats sent = uploader_stats(uploader);
    uploader_stop(uploader, 0);
    print_stats(spool, &sent);
    spool_close(spool);
    return 0;
}
