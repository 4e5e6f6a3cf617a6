// SPDX-License-Identifier: Apache-2.0
// Checks the token, role and origin of a request: see authorize.h.

#include "http/access/authorize.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/base64.h"

#define PASSWORD_BYTES 256

int authorize_basic(const char *encoded, char *ret_password, size_t room)
{
    unsigned held = 0, bits = 0;
    size_t length = 0;
    bool password = false;
    for (; *encoded && *encoded != '='; encoded++) {
        int digit = base64_digit(*encoded);
        if (digit < 0)
            return -1;
        held = (held << 6 | (unsigned)digit) & 0xffff;
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        char c = (char)(held >> bits);
        if (!password) {
            password = c == ':';
            continue;
        }
        if (!c || length + 1 >= room)
            return -1;
        ret_password[length++] = c;
    }
    if (!password || strspn(encoded, "=") != strlen(encoded))
        return -1;
    ret_password[length] = 0;
    return (int)length;
}

int authorize_token(struct tokens *tokens, const char *header, int64_t now, struct token *ret_token)
{
    size_t scheme = strcspn(header, " ");
    const char *rest = header + scheme;
    rest += strspn(rest, " ");
    if (scheme == 6 && !strncasecmp(header, "Bearer", scheme))
        return tokens_check(tokens, rest, strlen(rest), now, ret_token);
    if (scheme != 5 || strncasecmp(header, "Basic", scheme))
        return -EACCES;
    char password[PASSWORD_BYTES];
    int length = authorize_basic(rest, password, sizeof(password));
    int r = length < 0 ? -EACCES : tokens_check(tokens, password, (size_t)length, now, ret_token);
    explicit_bzero(password, sizeof(password));
    return r;
}

bool authorize_host(const char *host, const char *const *names, size_t count)
{
    char name[256];
    size_t length = strlen(host);
    const char *end = host + length;
    if (host[0] == '[') {
        const char *bracket = strchr(host, ']');
        struct in6_addr address;
        if (!bracket || (size_t)(bracket - host - 1) >= sizeof(name) ||
            (bracket[1] && bracket[1] != ':'))
            return false;
        memcpy(name, host + 1, (size_t)(bracket - host - 1));
        name[bracket - host - 1] = 0;
        return inet_pton(AF_INET6, name, &address) == 1;
    }
    const char *colon = strchr(host, ':');
    if (colon)
        end = colon;
    if (end > host && end[-1] == '.')
        end--;
    length = (size_t)(end - host);
    if (length >= sizeof(name))
        return false;
    memcpy(name, host, length);
    name[length] = 0;
    struct in_addr address;
    if (inet_pton(AF_INET, name, &address) == 1 || !strcasecmp(name, "localhost") ||
        (length > 10 && !strcasecmp(name + length - 10, ".localhost")))
        return true;
    for (size_t i = 0; i < count; i++)
        if (!strcasecmp(names[i], name))
            return true;
    return false;
}

bool authorize_gzip(const char *accept_encoding)
{
    for (const char *at = accept_encoding; *at;) {
        at += strspn(at, " \t,");
        size_t length = strcspn(at, ","), name = strcspn(at, " \t;,");
        bool gzip = (name == 4 && !strncasecmp(at, "gzip", 4)) ||
                    (name == 6 && !strncasecmp(at, "x-gzip", 6)) || (name == 1 && *at == '*');
        if (gzip) {
            const char *q = memchr(at, ';', length);
            if (q)
                q += 1 + strspn(q + 1, " \t");
            /* q=0 and q=0.000 say no. */
            return !(q && (q[0] | 0x20) == 'q' && q[1] == '=' && strtod(q + 2, NULL) <= 0);
        }
        at += length;
    }
    return false;
}
