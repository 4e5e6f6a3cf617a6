// SPDX-License-Identifier: Apache-2.0
// Which build a file is: build IDs in notes, and the link to its separate debug file. See file.h.

#include "elf/cursor.h"
#include "elf/file.h"

#define NOTES_BYTES_MAX (1u << 20)
#define NOTE_GO_BUILD_ID 4

struct note {
    const char *name; /* with its NUL */
    size_t name_length;
    uint32_t type;
    const uint8_t *content;
    size_t content_length;
};

static bool next_note(struct cursor *cursor, size_t alignment, struct note *ret_note)
{
    if (cursor_left(cursor) < sizeof(Elf64_Nhdr))
        return false;
    const uint8_t *start = cursor->at;
    uint32_t name_length = cursor_u32(cursor), content_length = cursor_u32(cursor);
    ret_note->type = cursor_u32(cursor);
    ret_note->name = (const char *)cursor_take(cursor, name_length);
    ret_note->name_length = name_length;
    for (int part = 0; part < 2; part++) {
        /* The last note's padding may be missing. */
        size_t padding = (alignment - (size_t)(cursor->at - start) % alignment) % alignment;
        cursor_take(cursor, MIN(padding, cursor_left(cursor)));
        if (part == 0) {
            ret_note->content = cursor_take(cursor, content_length);
            ret_note->content_length = content_length;
        }
    }
    return !cursor->bad;
}

static bool find_in_notes(const struct buffer *notes, size_t alignment, const char *name,
                          uint32_t type, struct buffer *ret_content)
{
    struct cursor cursor = cursor_of(notes->data, notes->length);
    struct note note;
    size_t name_length = strlen(name) + 1;
    while (next_note(&cursor, alignment == 8 ? 8 : 4, &note)) {
        /* Go pads its name to a multiple of 4 and counts the padding. */
        if (note.type == type && note.content_length && note.name_length >= name_length &&
            note.name_length < name_length + 4 && !memcmp(note.name, name, name_length)) {
            ret_content->length = 0;
            buffer_add(ret_content, note.content, note.content_length);
            return true;
        }
    }
    return false;
}

static bool find_note(struct elf_file *file, const char *name, uint32_t type,
                      struct buffer *ret_content)
{
    _cleanup_buffer_ struct buffer notes = {0};
    uint64_t budget = NOTES_BYTES_MAX; /* over all of them: segments may overlap */
    for (size_t i = 0; i < file->segment_count && budget; i++) {
        const struct elf_segment *segment = &file->segments[i];
        if (segment->type != PT_NOTE)
            continue;
        uint64_t offset = file->layout == ELF_LAYOUT_MEMORY
                              ? segment->address - file->header_address
                              : segment->offset;
        notes.length = 0;
        if (elf_read_some(file, offset, MIN(segment->file_bytes, budget), &notes) == 0 &&
            find_in_notes(&notes, segment->alignment, name, type, ret_content))
            return true;
        budget -= notes.length;
    }
    for (size_t i = 0; i < file->section_count && budget; i++) {
        const struct elf_section *section = &file->sections[i];
        if (section->type != SHT_NOTE)
            continue;
        notes.length = 0;
        if (elf_read_some(file, section->offset, MIN(section->size_bytes, budget), &notes) == 0 &&
            find_in_notes(&notes, 4, name, type, ret_content))
            return true;
        budget -= notes.length;
    }
    return false;
}

bool elf_build_id(struct elf_file *file, uint8_t ret_id[ELF_BUILD_ID_MAX], size_t *ret_length)
{
    _cleanup_buffer_ struct buffer content = {0};
    if (!find_note(file, "GNU", NT_GNU_BUILD_ID, &content) || content.length > ELF_BUILD_ID_MAX)
        return false;
    memcpy(ret_id, content.data, content.length);
    *ret_length = content.length;
    return true;
}

bool elf_go_build_id(struct elf_file *file, struct buffer *ret_text)
{
    return find_note(file, "Go", NOTE_GO_BUILD_ID, ret_text);
}

bool elf_debug_link(struct elf_file *file, struct buffer *ret_name, uint32_t *ret_crc)
{
    struct elf_section section;
    _cleanup_buffer_ struct buffer content = {0};
    if (!elf_find_section(file, ".gnu_debuglink", &section) ||
        elf_read_section(file, &section, 65536, &content, NULL) < 0)
        return false;
    size_t name_length = strnlen(content.data ? content.data : "", content.length);
    size_t crc_at = (name_length + 4) & ~(size_t)3;
    if (!name_length || content.length < 4 || crc_at > content.length - 4)
        return false;
    struct cursor cursor = cursor_of(content.data + crc_at, 4);
    *ret_crc = cursor_u32(&cursor);
    ret_name->length = 0;
    buffer_add(ret_name, content.data, name_length);
    return true;
}
