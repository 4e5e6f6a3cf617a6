// SPDX-License-Identifier: Apache-2.0
// Notes of static probes: see usdt.h. The format is that of SystemTap's sys/sdt.h, version 3.

#include "elf/usdt/usdt.h"

#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/registers.h"
#include "base/memory.h"

#define NOTE_TYPE 3
#define OWNER "stapsdt"

/* "%REGISTER", "-16(%REGISTER)" or "$3", up to the next space. */
static bool parse_place(const char *text, size_t length, struct usdt_argument *argument)
{
    char *end = NULL;
    if (length > 1 && text[0] == '%') {
        argument->kind = USDT_REGISTER;
        return register_by_name(text + 1, length - 1, &argument->number);
    }
    if (length > 1 && text[0] == '$') {
        argument->kind = USDT_CONSTANT;
        argument->offset = strtoll(text + 1, &end, 0);
        return end == text + length;
    }
    const char *open = memchr(text, '(', length);
    if (!open || length < 4 || text[length - 1] != ')' || open[1] != '%')
        return false;
    argument->kind = USDT_MEMORY;
    argument->offset = open > text ? strtoll(text, &end, 0) : 0;
    return (open == text || end == open) &&
           register_by_name(open + 2, (size_t)(text + length - 1 - (open + 2)), &argument->number);
}

static bool parse_argument(const char *text, size_t length, struct usdt_argument *ret_argument)
{
    struct usdt_argument argument = {.is_signed = text[0] == '-'};
    char *end;
    long bytes = labs(strtol(text, &end, 10));
    if ((bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) || end >= text + length ||
        *end != '@' || !parse_place(end + 1, (size_t)(text + length - (end + 1)), &argument))
        return false;
    argument.bytes = (unsigned)bytes;
    *ret_argument = argument;
    return true;
}

bool usdt_parse_arguments(const char *text, struct usdt_probe *probe)
{
    probe->argument_count = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (length && (probe->argument_count == USDT_ARGUMENTS_MAX ||
                       !parse_argument(text, length, &probe->arguments[probe->argument_count++])))
            return false;
        text += length + (text[length] == ' ');
    }
    return true;
}

/* The string at `*at`, which moves behind it; NULL when there is no end. */
static const char *take_string(const char *bytes, size_t length, size_t *at)
{
    const char *text = bytes + *at;
    const char *end = *at < length ? memchr(text, '\0', length - *at) : NULL;
    if (!end)
        return NULL;
    *at += (size_t)(end - text) + 1;
    return text;
}

/* A note's content: three addresses and three strings. */
static bool parse_note(struct elf_file *file, const char *content, size_t length, uint64_t base,
                       const char *provider, const char *name, struct usdt_probe *ret_probe)
{
    uint64_t addresses[3]; /* of the probe, of the base as it was linked, of the semaphore */
    struct usdt_probe probe = {0};
    size_t at = sizeof(addresses);
    if (length < sizeof(addresses))
        return false;
    memcpy(addresses, content, sizeof(addresses));
    const char *its_provider = take_string(content, length, &at);
    const char *its_name = its_provider ? take_string(content, length, &at) : NULL;
    const char *arguments = its_name ? take_string(content, length, &at) : NULL;
    if (!arguments || strcmp(its_provider, provider) != 0 || strcmp(its_name, name) != 0 ||
        !usdt_parse_arguments(arguments, &probe))
        return false;
    uint64_t moved = base ? base - addresses[1] : 0;
    if (!elf_address_to_offset(file, addresses[0] + moved, &probe.offset) ||
        (addresses[2] && !elf_address_to_offset(file, addresses[2] + moved, &probe.semaphore)))
        return false;
    *ret_probe = probe;
    return true;
}

size_t usdt_find(struct elf_file *file, const char *provider, const char *name,
                 struct usdt_probe *ret_probes)
{
    struct elf_section notes, base = {0};
    _cleanup_buffer_ struct buffer content = {0};
    struct error ignored = {0};
    size_t count = 0;
    if (!elf_find_section(file, ".note.stapsdt", &notes) ||
        elf_read_section(file, &notes, USDT_NOTES_BYTES, &content, &ignored) < 0)
        return 0;
    elf_find_section(file, ".stapsdt.base", &base);
    const char *bytes = buffer_text(&content);
    size_t length = content.length;
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= length && count < USDT_PROBES_MAX;) {
        Elf64_Nhdr header;
        memcpy(&header, bytes + at, sizeof(header));
        at += sizeof(header);
        uint64_t name_bytes = ((uint64_t)header.n_namesz + 3) & ~3ull;
        uint64_t content_bytes = ((uint64_t)header.n_descsz + 3) & ~3ull;
        if (name_bytes > length - at || header.n_descsz > length - at - name_bytes)
            break;
        if (header.n_type == NOTE_TYPE && header.n_namesz == sizeof(OWNER) &&
            memcmp(bytes + at, OWNER, sizeof(OWNER)) == 0)
            count += parse_note(file, bytes + at + name_bytes, header.n_descsz, base.address,
                                provider, name, &ret_probes[count]);
        if (content_bytes > length - at - name_bytes)
            break;
        at += name_bytes + content_bytes;
    }
    return count;
}
