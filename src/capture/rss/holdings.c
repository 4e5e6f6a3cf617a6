// SPDX-License-Identifier: Apache-2.0
// What a process holds: see holdings.h.

#include "capture/rss/holdings.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define FILE_BYTES 8192 /* a status is some 1,500 */
#define KIB_MAX (UINT64_MAX >> 20)

static const struct {
    const char *name;
    enum holding kind;
} lines[] = {
    {"RssAnon:", HOLDING_ANON},      {"RssFile:", HOLDING_FILE},
    {"RssShmem:", HOLDING_SHARED},   {"Pss_Anon:", HOLDING_PSS_ANON},
    {"Pss_File:", HOLDING_PSS_FILE}, {"Pss_Shmem:", HOLDING_PSS_SHARED},
    {"VmSwap:", HOLDING_SWAP},       {"VmPTE:", HOLDING_PAGE_TABLES},
    {"HugetlbPages:", HOLDING_HUGE},
};

/* "  1234 kB" */
static bool parse_kib(const char *at, const char *end, uint64_t *ret_bytes)
{
    uint64_t number = 0;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    const char *digits = at;
    for (; at < end && *at >= '0' && *at <= '9' && number <= KIB_MAX / 10; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    if (at == digits || end - at != 3 || memcmp(at, " kB", 3) != 0)
        return false;
    *ret_bytes = number << 10;
    return true;
}

static void parse_line(struct holdings *holdings, const char *line, const char *end)
{
    for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
        size_t length = strlen(lines[i].name);
        uint64_t bytes;
        if ((size_t)(end - line) < length || memcmp(line, lines[i].name, length) != 0)
            continue;
        if (parse_kib(line + length, end, &bytes)) {
            holdings->bytes[lines[i].kind] = bytes;
            holdings->known |= 1u << lines[i].kind;
        }
        return;
    }
}

void holdings_parse(struct holdings *holdings, const char *text, size_t length)
{
    const char *end = text + length;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        if (!newline)
            return; /* the rest of the line may be missing */
        parse_line(holdings, text, newline);
        text = newline + 1;
    }
}

static bool read_file(struct holdings *holdings, const char *proc, uint32_t pid, const char *name)
{
    char path[96], content[FILE_BYTES];
    size_t length = 0;
    ssize_t got;
    snprintf(path, sizeof(path), "%.48s/%u/%s", proc, pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (length < sizeof(content) &&
           (got = read(fd, content + length, sizeof(content) - length)) > 0)
        length += (size_t)got;
    close(fd);
    uint32_t before = holdings->known;
    holdings->known = 0;
    holdings_parse(holdings, content, length);
    bool found = holdings->known;
    holdings->known |= before;
    return found;
}

bool holdings_read_status(struct holdings *holdings, const char *proc, uint32_t pid)
{
    return read_file(holdings, proc, pid, "status");
}

bool holdings_read_rollup(struct holdings *holdings, const char *proc, uint32_t pid)
{
    return read_file(holdings, proc, pid, "smaps_rollup");
}

uint64_t holdings_resident(const struct holdings *holdings)
{
    return holdings->bytes[HOLDING_ANON] + holdings->bytes[HOLDING_FILE] +
           holdings->bytes[HOLDING_SHARED];
}
