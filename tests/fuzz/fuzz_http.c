// SPDX-License-Identifier: Apache-2.0
// The fuzzer of what the HTTP server and client take apart by hand: escapes in URLs, headers that
// say who asks and whom, the framing of requests, and the file of tokens. The first byte chooses.

#include <stdlib.h>
#include <string.h>

#include "http/access/authorize.h"
#include "http/client/client.h"
#include "http/server/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_unescape(char *text)
{
    size_t before = strlen(text), after = head_unescape(NULL, NULL, text);
    require(after <= before && strlen(text) == after);
}

static void check_basic(const char *text)
{
    char password[32];
    int got = authorize_basic(text, password, sizeof(password));
    require(got < (int)sizeof(password) && (got < 0 || strlen(password) == (size_t)got));
}

static void check_match(const char *path)
{
    const char *rest;
    size_t rest_length;
    if (head_match("/a/*/b", path, &rest, &rest_length))
        require(rest_length > 0 && rest == path + 3 &&
                strlen(path) == 3 + rest_length + strlen("/b"));
}

static void check_tokens(const char *text, size_t length)
{
    struct token_list tokens = {0};
    if (token_list_parse(text, length, "tokens", &tokens, NULL) < 0)
        require(!tokens.list);
    for (size_t i = 0; i < tokens.count; i++) {
        const struct token *token = &tokens.list[i];
        require(token->roles && token->name[0] && token->tenant[0] && strlen(token->id) == 11);
        require(strlen(token->name) < sizeof(token->name) &&
                strlen(token->tenant) < sizeof(token->tenant));
        require(!i || strcmp(tokens.list[i - 1].id, token->id) < 0);
    }
    token_list_release(&tokens);
}

/* The findings don't depend on where the bytes are cut, and nothing is written beyond the room.
 * Extensions of chunks are removed, so that there may be fewer bytes. */
static void check_framing(const char *bytes, size_t length)
{
    struct framing whole = {0}, pieces = {0};
    char *copy = memory_strndup(bytes, length);
    size_t passed = length ? framing_pass(&whole, copy, length, length) : 0;
    require(passed <= length);
    memcpy(copy, bytes, length);
    for (size_t at = 0, size = 1; at < length; at += size, size = MIN(size % 7 + 1, length - at))
        require(framing_pass(&pieces, copy + at, size, size) <= size);
    require(whole.state == pieces.state && whole.heads == pieces.heads &&
            whole.left == pieces.left && whole.bad_head == pieces.bad_head);
    require(whole.state != FRAMING_REFUSED || whole.bad_head);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
    if (!length)
        return 0;
    uint8_t choice = data[0];
    char *text = memory_strndup((const char *)data + 1, length - 1);
    static const char *const names[] = {"a.example"};
    switch (choice % 7) {
    case 0:
        check_unescape(text);
        break;
    case 1:
        check_basic(text);
        break;
    case 2:
        authorize_host(text, names, 1);
        authorize_gzip(text);
        break;
    case 3:
        check_match(text);
        break;
    case 4:
        check_tokens((const char *)data + 1, length - 1);
        break;
    case 5:
        require(http_parse_retry_after(text, 1700000000) >= -1);
        break;
    default:
        check_framing((const char *)data + 1, length - 1);
        break;
    }
    free(text);
    return 0;
}
