// SPDX-License-Identifier: Apache-2.0
// CIEs and FDEs of .eh_frame and .debug_frame: see ehframe.h.

#include "elf/cfi/ehframe.h"

#include "base/memory.h"

/* How a pointer is written: low four bits the number's form, high four what it is relative to. */
enum {
    POINTER_ABSOLUTE = 0x00,
    POINTER_ULEB = 0x01,
    POINTER_U16 = 0x02,
    POINTER_U32 = 0x03,
    POINTER_U64 = 0x04,
    POINTER_SLEB = 0x09,
    POINTER_S16 = 0x0a,
    POINTER_S32 = 0x0b,
    POINTER_S64 = 0x0c,
    POINTER_FROM_HERE = 0x10,
    POINTER_FROM_DATA = 0x30,
    POINTER_INDIRECT = 0x80,
    POINTER_OMITTED = 0xff,
};

#define AUGMENTATION_MAX 16

void frame_reader_init(struct frame_reader *reader, const struct frame_section *section)
{
    /* Not all at once: the copies of programs are large and need no clearing. */
    reader->section = *section;
    reader->next = 0;
    reader->bad_entries = 0;
    memset(reader->cie_known, 0, sizeof(reader->cie_known));
}

/* ---- pointers ---- */

static uint64_t pointer_number(struct cursor *cursor, uint8_t form, uint8_t address_bytes)
{
    switch (form) {
    case POINTER_ABSOLUTE:
        return cursor_number(cursor, address_bytes);
    case POINTER_ULEB:
        return cursor_uleb(cursor);
    case POINTER_U16:
        return cursor_u16(cursor);
    case POINTER_U32:
        return cursor_u32(cursor);
    case POINTER_U64:
    case POINTER_S64:
        return cursor_u64(cursor);
    case POINTER_SLEB:
        return (uint64_t)cursor_sleb(cursor);
    case POINTER_S16:
        return (uint64_t)(int64_t)(int16_t)cursor_u16(cursor);
    case POINTER_S32:
        return (uint64_t)(int64_t)(int32_t)cursor_u32(cursor);
    default:
        cursor->bad = true;
        return 0;
    }
}

uint64_t frame_pointer(const struct frame_section *section, struct cursor *cursor, uint8_t encoding,
                       uint8_t address_bytes)
{
    uint64_t here = section->address + (uint64_t)(cursor->at - section->bytes);
    uint64_t value = pointer_number(cursor, encoding & 0x0f, address_bytes);
    switch (encoding & 0xf0) {
    case POINTER_ABSOLUTE:
        return value;
    case POINTER_FROM_HERE:
        return here + value;
    case POINTER_FROM_DATA:
        if (section->data_base)
            return section->data_base + value;
        break;
    }
    cursor->bad = true; /* indirect, or relative to something that only a loader knows */
    return 0;
}

/* ---- entries ---- */

struct entry {
    size_t offset;
    size_t next;      /* offset behind it */
    size_t id_offset; /* of the field that tells CIE from FDE */
    uint64_t id;
    bool wide;          /* 64-bit form */
    struct cursor body; /* behind the id */
};

#define ENTRY_HEAD_BYTES 20 /* length and id, at most */
#define CIE_BYTES_MAX (FRAME_CIE_PROGRAM_MAX + 1024)

/* Brings the bytes in, as far as the section goes; false when they can't be read. */
static bool is_here(const struct frame_section *section, size_t offset, size_t length)
{
    return !section->window ||
           frame_window_need(section->window, offset, MIN(length, section->length - offset));
}

/* 1, 0 for a terminator, -1 when the length makes no sense. The body is not brought in yet. */
static int entry_at(const struct frame_section *section, size_t offset, struct entry *ret_entry)
{
    if (offset >= section->length || !is_here(section, offset, ENTRY_HEAD_BYTES))
        return -1;
    struct cursor cursor = cursor_of(section->bytes + offset, section->length - offset);
    uint64_t length = cursor_u32(&cursor);
    bool wide = length == 0xffffffff;
    if (wide)
        length = cursor_u64(&cursor);
    if (cursor.bad || length > cursor_left(&cursor))
        return -1;
    if (!length)
        return 0;
    cursor.end = cursor.at + length;
    *ret_entry = (struct entry){
        .offset = offset,
        .next = (size_t)(cursor.end - section->bytes),
        .id_offset = (size_t)(cursor.at - section->bytes),
        .wide = wide,
    };
    /* In .eh_frame the id is short in the long form too. */
    size_t id_bytes = wide && section->is_debug_frame ? 8 : 4;
    ret_entry->id = cursor_number(&cursor, id_bytes);
    ret_entry->body = cursor;
    return cursor.bad ? -1 : 1;
}

static bool is_cie(const struct frame_section *section, const struct entry *entry)
{
    if (!section->is_debug_frame)
        return entry->id == 0;
    return entry->id == (entry->wide ? UINT64_MAX : UINT32_MAX);
}

/* ---- CIE ---- */

/* The augmentation's letters say which fields its data has, in their order. */
static bool read_augmentation(const char *letters, struct cursor *cursor, struct frame_cie *cie)
{
    if (!letters[0])
        return true;
    if (letters[0] != 'z')
        return false; /* "eh" of the nineties, or an unknown extension */
    cie->has_augmentation_data = true;
    uint64_t length = cursor_uleb(cursor);
    const uint8_t *start = cursor_take(cursor, length);
    if (cursor->bad)
        return false;
    struct cursor data = {.at = start, .end = cursor->at};
    for (const char *letter = letters + 1; *letter && !data.bad; letter++) {
        if (*letter == 'R') {
            cie->pointer_encoding = cursor_u8(&data);
        } else if (*letter == 'L') {
            cursor_u8(&data);
        } else if (*letter == 'P') {
            /* The personality is skipped: its form alone says how long it is. */
            uint8_t encoding = cursor_u8(&data);
            if (encoding != POINTER_OMITTED)
                pointer_number(&data, encoding & 0x0f, cie->address_bytes);
        } else if (*letter == 'S') {
            cie->signal_frame = true;
        } else if (*letter != 'B') {
            break; /* unknown, and so is the meaning of what follows; the length skips it */
        }
    }
    return !data.bad && cie->pointer_encoding != POINTER_OMITTED;
}

static bool read_cie(const struct frame_section *section, size_t offset, struct frame_cie *ret_cie)
{
    struct entry entry;
    if (entry_at(section, offset, &entry) <= 0 || !is_cie(section, &entry) ||
        entry.next - offset > CIE_BYTES_MAX || !is_here(section, offset, entry.next - offset))
        return false;
    struct cursor *cursor = &entry.body;
    struct frame_cie cie = {.offset = offset, .address_bytes = 8};
    uint8_t version = cursor_u8(cursor);
    if (version != 1 && version != 3 && version != 4)
        return false;
    const char *letters = (const char *)cursor->at;
    size_t letters_length = strnlen(letters, MIN(cursor_left(cursor), AUGMENTATION_MAX));
    if (!cursor_take(cursor, letters_length + 1) || letters[letters_length])
        return false;
    if (version == 4) {
        cie.address_bytes = cursor_u8(cursor);
        if (cursor_u8(cursor) || (cie.address_bytes != 8 && cie.address_bytes != 4))
            return false; /* segmented addresses, or not of this machine */
    }
    cie.code_alignment = cursor_uleb(cursor);
    cie.data_alignment = cursor_sleb(cursor);
    cie.return_register = version == 1 ? cursor_u8(cursor) : cursor_uleb(cursor);
    if (!read_augmentation(letters, cursor, &cie) || cursor->bad)
        return false;
    if (cursor_left(cursor) > FRAME_CIE_PROGRAM_MAX)
        return false;
    cie.program = *cursor;
    *ret_cie = cie;
    return true;
}

const struct frame_cie *frame_cie_at(struct frame_reader *reader, size_t offset)
{
    size_t slot = (offset ^ offset >> 6 ^ offset >> 12) % FRAME_CIES_KEPT;
    struct frame_cie *kept = &reader->cies[slot];
    if (reader->cie_known[slot] && kept->offset == offset)
        return kept;
    reader->cie_known[slot] = read_cie(&reader->section, offset, kept);
    if (!reader->cie_known[slot])
        return NULL;
    if (reader->section.window) {
        size_t length = cursor_left(&kept->program);
        memcpy(reader->cie_programs[slot], kept->program.at, length);
        kept->program = cursor_of(reader->cie_programs[slot], length);
    }
    return kept;
}

/* ---- FDE ---- */

static bool cie_offset_of(const struct frame_section *section, const struct entry *entry,
                          size_t *ret_offset)
{
    if (section->is_debug_frame)
        *ret_offset = (size_t)entry->id;
    else if (entry->id <= entry->id_offset)
        *ret_offset = entry->id_offset - (size_t)entry->id; /* a distance back from the id */
    else
        return false;
    return *ret_offset < section->length;
}

static bool read_fde(struct frame_reader *reader, const struct entry *entry,
                     struct frame_fde *ret_fde)
{
    const struct frame_section *section = &reader->section;
    struct frame_fde fde = {.offset = entry->offset};
    if (!cie_offset_of(section, entry, &fde.cie_offset))
        return false;
    const struct frame_cie *cie = frame_cie_at(reader, fde.cie_offset);
    if (!cie || !is_here(section, entry->offset, entry->next - entry->offset))
        return false;
    struct cursor cursor = entry->body;
    fde.start = frame_pointer(section, &cursor, cie->pointer_encoding, cie->address_bytes);
    uint64_t length = pointer_number(&cursor, cie->pointer_encoding & 0x07, cie->address_bytes);
    if (cie->has_augmentation_data)
        cursor_take(&cursor, cursor_uleb(&cursor));
    if (cursor.bad || length > UINT64_MAX - fde.start)
        return false;
    fde.end = fde.start + length;
    fde.program = cursor;
    *ret_fde = fde;
    return true;
}

bool frame_fde_at(struct frame_reader *reader, size_t offset, struct frame_fde *ret_fde)
{
    struct entry entry;
    return entry_at(&reader->section, offset, &entry) > 0 && !is_cie(&reader->section, &entry) &&
           read_fde(reader, &entry, ret_fde);
}

int frame_reader_next(struct frame_reader *reader, struct frame_fde *ret_fde)
{
    const struct frame_section *section = &reader->section;
    while (reader->next < section->length) {
        struct entry entry;
        int r = entry_at(section, reader->next, &entry);
        if (r == 0 && !section->open_ended) {
            /* Linkers that join sections leave terminators in the middle. */
            reader->next += 4;
            continue;
        }
        if (r <= 0) {
            reader->bad_entries += r < 0;
            reader->next = section->length;
            return 0;
        }
        reader->next = entry.next;
        if (is_cie(section, &entry))
            continue;
        struct frame_fde fde;
        if (!read_fde(reader, &entry, &fde)) {
            reader->bad_entries++;
            continue;
        }
        if (fde.start && fde.start < fde.end) {
            *ret_fde = fde;
            return 1;
        }
    }
    return 0;
}
