// SPDX-License-Identifier: Apache-2.0
// One dynamic symbol by name, through DT_GNU_HASH: see file.h. A file without the symbol is nearly
// always told by one word of its Bloom filter. Old files have DT_HASH alone.

#include <string.h>

#include "elf/file.h"

#define BUCKETS_MAX (1u << 22)
#define CHAIN_MAX 4096 /* real ones have a dozen links */
#define NAME_MAX_BYTES 128

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash;
}

struct hash_table {
    uint32_t bucket_count, first_symbol, bloom_words, bloom_shift;
    uint64_t bloom, buckets, chains; /* addresses */
};

static bool open_table(struct elf_file *file, uint64_t address, struct hash_table *table)
{
    uint32_t header[4];
    if (!address || elf_read_address(file, address, header, sizeof(header)) < 0 || !header[0] ||
        header[0] > BUCKETS_MAX || !header[2] || header[2] > BUCKETS_MAX || header[3] > 31)
        return false;
    *table = (struct hash_table){.bucket_count = header[0],
                                 .first_symbol = header[1],
                                 .bloom_words = header[2],
                                 .bloom_shift = header[3],
                                 .bloom = address + sizeof(header)};
    table->buckets = table->bloom + 8ull * table->bloom_words;
    table->chains = table->buckets + 4ull * table->bucket_count;
    return true;
}

static bool may_have(struct elf_file *file, const struct hash_table *table, uint32_t hash)
{
    uint64_t word, at = table->bloom + 8ull * (hash / 64 % table->bloom_words);
    if (elf_read_address(file, at, &word, sizeof(word)) < 0)
        return false;
    return word >> hash % 64 & word >> (hash >> table->bloom_shift) % 64 & 1;
}

static bool is_named(struct elf_file *file, const struct elf_dynamic *dynamic,
                     const Elf64_Sym *symbol, const char *name)
{
    char text[NAME_MAX_BYTES];
    size_t length = strlen(name) + 1;
    if (length > sizeof(text) || symbol->st_name > dynamic->string_bytes)
        return false;
    return elf_read_address(file, dynamic->string_table + symbol->st_name, text, length) == 0 &&
           !memcmp(text, name, length);
}

static bool read_symbol(struct elf_file *file, const struct elf_dynamic *dynamic, uint32_t number,
                        const char *name, struct elf_symbol *ret_symbol)
{
    Elf64_Sym symbol;
    if (elf_read_address(file, dynamic->symbol_table + (uint64_t)number * sizeof(symbol), &symbol,
                         sizeof(symbol)) < 0 ||
        symbol.st_shndx == SHN_UNDEF || !is_named(file, dynamic, &symbol, name))
        return false;
    *ret_symbol = (struct elf_symbol){.address = symbol.st_value,
                                      .size_bytes = symbol.st_size,
                                      .number = number,
                                      .is_thread_local = ELF64_ST_TYPE(symbol.st_info) == STT_TLS};
    return true;
}

static uint32_t old_hash(const char *name)
{
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (uint8_t)*name;
        hash = (hash ^ (hash & 0xf0000000) >> 24) & ~0xf0000000;
    }
    return hash;
}

static bool find_by_old_hash(struct elf_file *file, const struct elf_dynamic *dynamic,
                             const char *name, struct elf_symbol *ret_symbol)
{
    uint32_t header[2], number; /* buckets, symbols */
    if (!dynamic->hash || elf_read_address(file, dynamic->hash, header, sizeof(header)) < 0 ||
        !header[0] || header[0] > BUCKETS_MAX)
        return false;
    uint64_t buckets = dynamic->hash + sizeof(header), chains = buckets + 4ull * header[0];
    uint64_t at = buckets + 4ull * (old_hash(name) % header[0]);
    for (unsigned i = 0; i < CHAIN_MAX; i++) {
        if (elf_read_address(file, at, &number, sizeof(number)) < 0 || !number ||
            number >= header[1])
            return false;
        if (read_symbol(file, dynamic, number, name, ret_symbol))
            return true;
        at = chains + 4ull * number;
    }
    return false;
}

bool elf_dynamic_symbol(struct elf_file *file, const char *name, struct elf_symbol *ret_symbol)
{
    struct elf_dynamic dynamic;
    struct hash_table table;
    uint32_t hash = gnu_hash(name), number, link;
    if (!elf_dynamic(file, &dynamic))
        return false;
    if (!dynamic.gnu_hash)
        return find_by_old_hash(file, &dynamic, name, ret_symbol);
    if (!open_table(file, dynamic.gnu_hash, &table) || !may_have(file, &table, hash) ||
        elf_read_address(file, table.buckets + 4ull * (hash % table.bucket_count), &number,
                         sizeof(number)) < 0 ||
        number < table.first_symbol)
        return false;
    for (unsigned i = 0; i < CHAIN_MAX; i++, number++) {
        if (elf_read_address(file, table.chains + 4ull * (number - table.first_symbol), &link,
                             sizeof(link)) < 0)
            return false;
        if ((link | 1) == (hash | 1) && read_symbol(file, &dynamic, number, name, ret_symbol))
            return true;
        if (link & 1)
            return false;
    }
    return false;
}
