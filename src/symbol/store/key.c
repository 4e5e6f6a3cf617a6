// SPDX-License-Identifier: Apache-2.0
// Keys of the symbol store: the build that a file or a profile names. See store.h.

#include <ctype.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/memory.h"
#include "elf/file.h"
#include "symbol/store/store.h"

#define HASH_PIECE 4096
#define HASH_BYTES 16

static bool is_hexadecimal(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isxdigit((unsigned char)text[i]))
            return false;
    return length >= 4 && length % 2 == 0;
}

static bool put_hexadecimal(const void *bytes, size_t length, char ret_key[SYMBOL_KEY_BYTES])
{
    if (length < 2 || 2 * length >= SYMBOL_KEY_BYTES)
        return false;
    hex_encode(bytes, length, ret_key);
    return true;
}

bool symbol_key(const char *build_id, char ret_key[SYMBOL_KEY_BYTES])
{
    size_t length = strlen(build_id);
    if (!is_hexadecimal(build_id, length))
        return put_hexadecimal(build_id, length, ret_key);
    if (length >= SYMBOL_KEY_BYTES)
        return false;
    for (size_t i = 0; i <= length; i++)
        ret_key[i] = (char)tolower((unsigned char)build_id[i]);
    return true;
}

/* The first and the last 4 KiB and the length, hashed, as OpenTelemetry's profiler does. */
static int hash_content(struct elf_file *file, char ret_key[SYMBOL_KEY_BYTES])
{
    uint8_t content[2 * HASH_PIECE + 8], digest[32];
    size_t piece = (size_t)MIN(file->size_bytes, HASH_PIECE);
    int r = elf_read(file, 0, content, piece);
    if (!r)
        r = elf_read(file, file->size_bytes - piece, content + piece, piece);
    for (int i = 0; i < 8; i++)
        content[2 * piece + (size_t)i] = (uint8_t)(file->size_bytes >> (56 - 8 * i));
    if (!r && gnutls_hash_fast(GNUTLS_DIG_SHA256, content, 2 * piece + 8, digest) < 0)
        r = -EIO;
    if (!r)
        put_hexadecimal(digest, HASH_BYTES, ret_key);
    return r;
}

static bool has_content(struct elf_file *file, const char *name)
{
    struct elf_section section;
    return elf_find_section(file, name, &section) && section.type != SHT_NOBITS;
}

/* A debug file has the sections of code, but nothing in them. */
static bool has_code(const struct elf_file *file)
{
    bool any = false;
    for (size_t i = 0; i < file->section_count; i++) {
        if (!(file->sections[i].flags & SHF_EXECINSTR))
            continue;
        if (file->sections[i].type != SHT_NOBITS)
            return true;
        any = true;
    }
    return !any && !file->section_count;
}

int symbol_identify(struct elf_file *file, struct symbol_identity *ret_identity,
                    struct error *error)
{
    struct symbol_identity identity = {0};
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t length;
    _cleanup_buffer_ struct buffer go = {0};
    if (elf_go_build_id(file, &go) && !put_hexadecimal(go.data, go.length, identity.other))
        identity.other[0] = '\0';
    if (!elf_build_id(file, id, &length) || !put_hexadecimal(id, length, identity.key)) {
        strcpy(identity.key, identity.other);
        identity.other[0] = '\0';
    }
    int r = *identity.key ? 0 : hash_content(file, identity.key);
    if (r < 0)
        return error_set_errno(error, r, "Failed to read the file");
    identity.has_code = has_code(file);
    identity.has_debug_information =
        has_content(file, ".debug_info") || has_content(file, ".zdebug_info");
    identity.is_package = has_content(file, ".debug_cu_index") && !identity.has_code;
    *ret_identity = identity;
    return 0;
}
