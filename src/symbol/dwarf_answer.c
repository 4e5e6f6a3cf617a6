// SPDX-License-Identifier: Apache-2.0
// Writing, checking and keeping what is said about addresses: see dwarf_answer.h.

#include "symbol/dwarf_answer.h"

#define FLUSH_BYTES 32768

/* ---- writing ---- */

static void put(struct dwarf_writer *writer, char letter, const uint32_t *numbers, size_t count)
{
    if (writer->buffer.length >= FLUSH_BYTES) {
        writer->write(writer->buffer.data, writer->buffer.length);
        writer->buffer.length = 0;
    }
    buffer_add_char(&writer->buffer, letter);
    buffer_add(&writer->buffer, numbers, count * sizeof(*numbers));
}

static uint64_t hash_text(const char *text, size_t length)
{
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ull;
    return hash_word(hash);
}

uint32_t dwarf_write_string(struct dwarf_writer *writer, const char *text)
{
    if (!text || !text[0])
        return 0;
    size_t length = strnlen(text, DWARF_STRING_MAX);
    uint64_t hash = hash_text(text, length);
    struct id_probe probe = id_probe_start(hash);
    uint32_t id;
    while ((id = id_table_next(&writer->index, &probe)) != ID_NONE)
        if (!strncmp(writer->strings[id], text, length) && !writer->strings[id][length])
            return id + 1;
    uint32_t number = (uint32_t)length;
    put(writer, 'S', &number, 1);
    buffer_add(&writer->buffer, text, length);
    array_reserve(writer->strings, writer->string_capacity, (size_t)writer->string_count + 1);
    writer->strings[writer->string_count] = arena_strndup(&writer->arena, text, length);
    id_table_insert(&writer->index, hash, writer->string_count);
    return ++writer->string_count;
}

uint32_t dwarf_write_function(struct dwarf_writer *writer, uint32_t name, uint32_t system_name,
                              uint32_t start_line)
{
    uint32_t numbers[] = {name, system_name, start_line};
    put(writer, 'F', numbers, 3);
    return ++writer->function_count;
}

void dwarf_write_address(struct dwarf_writer *writer, uint32_t index,
                         const struct dwarf_frame *frames, uint32_t count)
{
    uint32_t numbers[] = {index, count};
    put(writer, 'A', numbers, 2);
    buffer_add(&writer->buffer, frames, count * sizeof(*frames));
}

void dwarf_write_end(struct dwarf_writer *writer)
{
    put(writer, 'E', NULL, 0);
    writer->write(writer->buffer.data, writer->buffer.length);
    writer->buffer.length = 0;
}

void dwarf_writer_release(struct dwarf_writer *writer)
{
    buffer_release(&writer->buffer);
    id_table_release(&writer->index);
    arena_release(&writer->arena);
    free(writer->strings);
}

/* ---- checking ---- */

struct answer_function {
    const char *name, *system_name;
    uint32_t start_line;
};

struct answer_reader {
    struct dwarf_names *names;
    const uint8_t *at, *end;
    size_t address_count;
    const uint64_t *addresses;
    bool *answered; /* by index */
    const char **strings;
    size_t string_count, string_capacity;
    struct answer_function *functions;
    size_t function_count, function_capacity;
};

static bool take(struct answer_reader *reader, uint32_t *ret_numbers, size_t count)
{
    if ((size_t)(reader->end - reader->at) < count * sizeof(*ret_numbers))
        return false;
    memcpy(ret_numbers, reader->at, count * sizeof(*ret_numbers));
    reader->at += count * sizeof(*ret_numbers);
    return true;
}

static bool take_string(struct answer_reader *reader)
{
    uint32_t length;
    if (!take(reader, &length, 1) || !length || length > DWARF_STRING_MAX ||
        length > (size_t)(reader->end - reader->at) || memchr(reader->at, '\0', length))
        return false;
    array_reserve(reader->strings, reader->string_capacity, reader->string_count + 1);
    reader->strings[reader->string_count++] =
        arena_strndup(&reader->names->arena, (const char *)reader->at, length);
    reader->at += length;
    return true;
}

static bool string_of(const struct answer_reader *reader, uint32_t number, const char **ret_text)
{
    if (number > reader->string_count)
        return false;
    *ret_text = number ? reader->strings[number - 1] : NULL;
    return true;
}

static bool take_function(struct answer_reader *reader)
{
    uint32_t numbers[3];
    struct answer_function function;
    if (!take(reader, numbers, 3) || !numbers[0] ||
        !string_of(reader, numbers[0], &function.name) ||
        !string_of(reader, numbers[1], &function.system_name))
        return false;
    function.start_line = numbers[2];
    array_reserve(reader->functions, reader->function_capacity, reader->function_count + 1);
    reader->functions[reader->function_count++] = function;
    return true;
}

static bool take_address(struct answer_reader *reader)
{
    struct dwarf_names *names = reader->names;
    uint32_t numbers[3];
    if (!take(reader, numbers, 2))
        return false;
    uint32_t index = numbers[0], count = numbers[1];
    if (index >= reader->address_count || reader->answered[index] || !count ||
        count > SYMBOL_FRAMES_MAX || names->frame_count > UINT32_MAX - count)
        return false;
    reader->answered[index] = true;
    array_reserve(names->chains, names->chain_capacity, names->chain_count + 1);
    names->chains[names->chain_count++] = (struct dwarf_chain){
        .address = reader->addresses[index], .first = (uint32_t)names->frame_count, .count = count};
    array_reserve(names->frames, names->frame_capacity, names->frame_count + count);
    for (uint32_t i = 0; i < count; i++) {
        struct symbol_frame frame = {0};
        if (!take(reader, numbers, 3) || numbers[0] > reader->function_count ||
            (!numbers[0] && count > 1) || !string_of(reader, numbers[1], &frame.file))
            return false;
        if (numbers[0]) {
            const struct answer_function *function = &reader->functions[numbers[0] - 1];
            frame.name = function->name;
            frame.system_name = function->system_name;
            frame.start_line = function->start_line;
        }
        frame.line = numbers[2];
        names->frames[names->frame_count++] = frame;
    }
    return true;
}

static bool take_answer(struct answer_reader *reader)
{
    while (reader->at < reader->end) {
        char letter = (char)*reader->at++;
        bool fine = letter == 'S'   ? take_string(reader)
                    : letter == 'F' ? take_function(reader)
                    : letter == 'A' ? take_address(reader)
                                    : false;
        if (letter == 'E')
            return reader->at == reader->end;
        if (!fine)
            return false;
    }
    return false;
}

int dwarf_names_add(struct dwarf_names *names, const uint64_t *addresses, size_t count,
                    const void *answer, size_t length, struct error *error)
{
    size_t chains = names->chain_count, frames = names->frame_count;
    struct answer_reader reader = {.names = names,
                                   .at = answer,
                                   .end = (const uint8_t *)answer + length,
                                   .addresses = addresses,
                                   .address_count = count};
    reader.answered = memory_zalloc(count + 1, sizeof(*reader.answered));
    bool fine = take_answer(&reader);
    size_t offset = (size_t)(reader.at - (const uint8_t *)answer);
    if (fine) {
        for (size_t i = 0; i < count; i++) {
            if (reader.answered[i])
                continue;
            array_reserve(names->chains, names->chain_capacity, names->chain_count + 1);
            names->chains[names->chain_count++] = (struct dwarf_chain){.address = addresses[i]};
        }
        for (size_t i = chains; i < names->chain_count; i++)
            id_table_insert(&names->index, hash_word(names->chains[i].address), (uint32_t)i);
    } else {
        names->chain_count = chains;
        names->frame_count = frames;
    }
    free(reader.answered);
    free(reader.strings);
    free(reader.functions);
    if (!fine)
        return error_set(error, -EBADMSG,
                         "The answer about debug information makes no sense at byte %zu.", offset);
    return 0;
}

/* ---- keeping ---- */

const struct dwarf_chain *dwarf_names_find(const struct dwarf_names *names, uint64_t address)
{
    struct id_probe probe = id_probe_start(hash_word(address));
    uint32_t id;
    while ((id = id_table_next(&names->index, &probe)) != ID_NONE)
        if (names->chains[id].address == address)
            return &names->chains[id];
    return NULL;
}

void dwarf_names_release(struct dwarf_names *names)
{
    free(names->chains);
    free(names->frames);
    id_table_release(&names->index);
    arena_release(&names->arena);
    *names = (struct dwarf_names){0};
}

size_t dwarf_names_bytes(const struct dwarf_names *names)
{
    return names->chain_capacity * sizeof(*names->chains) +
           names->frame_capacity * sizeof(*names->frames) + names->arena.total_bytes +
           (names->index.slots ? (names->index.mask + 1) * sizeof(*names->index.slots) : 0);
}
