// SPDX-License-Identifier: Apache-2.0
// Trying requests again: see client.h.

#include <errno.h>
#include <time.h>

#include "base/limits/backoff.h"
#include "base/random.h"
#include "base/text.h"
#include "http/client/client.h"
#include "http/client/client_wait.h"

#define RETRY_AFTER_MAX_MS (24ll * 3600 * 1000)

int64_t http_parse_retry_after(const char *text, int64_t now)
{
    text += strspn(text, " \t");
    size_t length = strcspn(text, "\r\n");
    while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    uint64_t seconds;
    if (text_to_u64(text, length, &seconds))
        return seconds > RETRY_AFTER_MAX_MS / 1000 ? RETRY_AFTER_MAX_MS : (int64_t)seconds * 1000;
    struct tm date = {0};
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
    if (end != text + length)
        return -1;
    int64_t wait = (int64_t)timegm(&date) - now;
    return wait < 0 ? 0 : MIN(wait * 1000, (int64_t)RETRY_AFTER_MAX_MS);
}

bool http_may_retry(int code, unsigned status)
{
    if (code < 0)
        return code == -ECONNREFUSED || code == -EHOSTUNREACH || code == -ETIME || code == -EIO;
    return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

unsigned http_retry_wait_ms(const struct http_retry *retry, unsigned attempt,
                            int64_t retry_after_ms, uint64_t random)
{
    const struct backoff backoff = {.first_ms = retry->first_ms ? retry->first_ms : 500,
                                    .longest_ms = retry->longest_ms ? retry->longest_ms : 30000};
    return (unsigned)backoff_ms(&backoff, attempt, retry_after_ms, random);
}

int http_client_call_retrying(struct http_client *client, const struct http_call *call,
                              const struct http_retry *retry, struct http_reply *ret_reply,
                              struct error *error)
{
    unsigned attempts = retry->attempts ? retry->attempts : 5;
    for (unsigned attempt = 1;; attempt++) {
        struct http_reply reply = {0};
        int r = http_client_call(client, call, &reply, error);
        if (attempt >= attempts || !http_may_retry(r, reply.status)) {
            if (r == 0)
                *ret_reply = reply;
            return r;
        }
        int64_t after_ms = r == 0 ? reply.retry_after_ms : -1;
        http_reply_release(&reply);
        if (client_wait(client, http_retry_wait_ms(retry, attempt, after_ms, random_bits())) < 0)
            return error_set(error, -ECANCELED, "The retry was cancelled.");
    }
}
