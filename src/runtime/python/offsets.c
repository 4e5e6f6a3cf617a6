// SPDX-License-Identifier: Apache-2.0
// CPython's structures by version: see offsets.h. The numbers of the table are those of builds for
// x86-64 without --with-pydebug.

#include "runtime/python/offsets.h"

#include <string.h>

#include "base/memory.h"

#define NONE BPF_PYTHON_NONE

/* Up to 3.11 strings have a pointer more. */
#define TEXT_OLD .text_header = 48, .wide_header = 72
#define TEXT .text_header = 40, .wide_header = 56
#define OBJECTS .text_length = 16, .text_state = 32, .bytes_length = 16, .bytes_header = 32

/* 3.8 to 3.10 share these. */
#define OLD_CODE                                                                                   \
    .code_bytes = 128, .code_type_at = 8, .code_first_line = 40, .code_file = 104,                 \
    .code_name = 112, .code_lines = 120
#define OLD_FRAME                                                                                  \
    .entry = BPF_PYTHON_ENTRY_EACH, .thread_frame = 24, .cframe_frame = NONE, .frame_code = 32,    \
    .frame_previous = 24, .frame_instruction = NONE, .frame_entry = NONE
/* The lock, by whichever way a version doesn't have. */
#define NO_LOCK                                                                                    \
    .interpreter_lock = NONE, .lock_held = NONE, .lock_holder = NONE, .lock_enabled = NONE
#define OLD_LISTS                                                                                  \
    NO_LOCK, .runtime_interpreters = 32, .interpreter_next = 0, .interpreter_threads = 8,          \
             .thread_next = 8, .thread_interpreter = 16, .thread_id = 176,                         \
             .code_qualified_name = NONE, .code_first_unit = NONE

static const struct python_offsets offsets_of_minor[] = {
    [8] = {.walk = {OLD_FRAME, OLD_CODE, .thread_cframe = NONE, .cframe_previous = NONE,
                    .frame_bytes = 108, .frame_unit = 104, .unit_shift = 1},
           OLD_LISTS,
           .runtime_holder = 1368,
           TEXT_OLD,
           OBJECTS},
    [9] = {.walk = {OLD_FRAME, OLD_CODE, .thread_cframe = NONE, .cframe_previous = NONE,
                    .frame_bytes = 108, .frame_unit = 104, .unit_shift = 1},
           OLD_LISTS,
           .runtime_holder = 568,
           TEXT_OLD,
           OBJECTS},
    [10] = {.walk = {OLD_FRAME, OLD_CODE, .thread_cframe = 48, .cframe_previous = 8,
                     .frame_bytes = 100, .frame_unit = 96},
            OLD_LISTS,
            .runtime_holder = 568,
            TEXT_OLD,
            OBJECTS},
    [11] = {.walk = {.entry = BPF_PYTHON_ENTRY_FLAG,
                     .thread_cframe = 56,
                     .thread_frame = NONE,
                     .cframe_frame = 8,
                     .cframe_previous = 16,
                     .frame_bytes = 72,
                     .frame_code = 32,
                     .frame_previous = 48,
                     .frame_instruction = 56,
                     .frame_unit = NONE,
                     .frame_entry = 68,
                     .code_bytes = 144,
                     .code_type_at = 8,
                     .code_first_line = 72,
                     .code_file = 112,
                     .code_name = 120,
                     .code_lines = 136,
                     .code_instructions = 184},
            .runtime_interpreters = 40,
            .interpreter_next = 0,
            .interpreter_threads = 16,
            .thread_next = 8,
            .thread_interpreter = 16,
            .thread_id = 152,
            .code_qualified_name = 128,
            .code_first_unit = 168,
            NO_LOCK,
            .runtime_holder = 576,
            TEXT_OLD,
            OBJECTS},
    [12] = {.walk = {.entry = BPF_PYTHON_ENTRY_FRAME,
                     .thread_cframe = 56,
                     .thread_frame = NONE,
                     .cframe_frame = 0,
                     .cframe_previous = 8,
                     .frame_bytes = 72,
                     .frame_code = 0,
                     .frame_previous = 8,
                     .frame_instruction = 56,
                     .frame_unit = NONE,
                     .frame_entry = 70,
                     .code_bytes = 144,
                     .code_type_at = 8,
                     .code_first_line = 68,
                     .code_file = 112,
                     .code_name = 120,
                     .code_lines = 136,
                     .code_instructions = 192},
            .runtime_interpreters = 40,
            .interpreter_next = 0,
            .interpreter_threads = 72,
            .thread_next = 8,
            .thread_interpreter = 16,
            .thread_id = 136,
            .code_qualified_name = 128,
            .code_first_unit = 176,
            .runtime_holder = NONE,
            .interpreter_lock = 384,
            .lock_held = 16,
            .lock_holder = 8,
            .lock_enabled = NONE,
            TEXT,
            OBJECTS},
};

/* ---- what the interpreter says ---- */

#define COOKIE "xdebugpy"
#define WORDS_MAX 96

/* Where the parts begin, in words: each begins with the size of its structure. */
struct layout {
    uint8_t minor, interpreter_words, frame_words, code_words;
    uint8_t lock_word; /* of the interpreter's: the pointer to its lock, then the lock itself */
};
static const struct layout layouts[] = {
    {13, 13, 6, 10, 8},
    {14, 16, 8, 11, 9}, /* of the release, and of versions before it */
    {14, 16, 8, 10, 9},
    {14, 14, 7, 10, 9},
};
enum { RUNTIME_AT = 3, RUNTIME_WORDS = 3, THREAD_WORDS = 9 };

static bool fits(uint64_t offset, uint64_t bytes, uint64_t size, uint64_t limit)
{
    return size <= limit && offset <= size && size - offset >= bytes;
}

/* The lock of an interpreter, the one that it has room for: pointer, lock, and of the lock whether
 * there is one, whether it is held, and by whom. Without it, nobody is said to hold it. */
static void take_lock(const uint64_t *words, bool free_threaded, struct python_offsets *offsets)
{
    uint64_t pointer = words[0], lock = words[1], enabled = words[2], held = words[3],
             holder = words[4];
    offsets->runtime_holder = offsets->interpreter_lock = offsets->lock_enabled = NONE;
    if (enabled >= lock) /* 3.13 has the offset in the lock */
        enabled -= lock;
    if (pointer >= NONE || held - lock >= NONE || holder - lock >= NONE ||
        (free_threaded && enabled >= NONE))
        return;
    offsets->interpreter_lock = (uint16_t)pointer;
    offsets->lock_held = (uint16_t)(held - lock);
    offsets->lock_holder = (uint16_t)(holder - lock);
    if (free_threaded)
        offsets->lock_enabled = (uint16_t)enabled;
}

/* False when the words make no sense in this layout. */
static bool take_layout(const uint64_t *words, const struct layout *layout,
                        struct python_offsets *offsets)
{
    const uint64_t *runtime = words + RUNTIME_AT, *interpreter = runtime + RUNTIME_WORDS;
    const uint64_t *thread = interpreter + layout->interpreter_words;
    const uint64_t *frame = thread + THREAD_WORDS, *code = frame + layout->frame_words;
    const uint64_t *object = code + layout->code_words;
    bool sensible = fits(runtime[2], 8, runtime[0], UINT64_MAX) && runtime[2] < NONE &&
                    fits(interpreter[2], 8, interpreter[0], UINT64_MAX) && interpreter[2] < NONE &&
                    fits(interpreter[3], 8, interpreter[0], UINT64_MAX) && interpreter[3] < NONE &&
                    fits(thread[2], 8, thread[0], NONE) && fits(thread[3], 8, thread[0], NONE) &&
                    fits(thread[4], 8, thread[0], NONE) && fits(thread[5], 8, thread[0], NONE) &&
                    fits(frame[1], 8, frame[0], 512) && fits(frame[2], 8, frame[0], 512) &&
                    fits(frame[3], 8, frame[0], 512) && fits(frame[5], 1, frame[0], 512) &&
                    frame[1] != frame[2] && frame[5] < BPF_PYTHON_FRAME_BYTES - 8 &&
                    fits(code[1], 8, code[0], 1024) && fits(code[2], 8, code[0], 1024) &&
                    fits(code[3], 8, code[0], 1024) && fits(code[4], 8, code[0], 1024) &&
                    fits(code[5], 4, code[0], 1024) && fits(code[9], 0, code[0], 1024) &&
                    MAX(code[4], code[3]) <= BPF_PYTHON_CODE_BYTES - 8 && object[0] <= 64 &&
                    object[1] < 64 && object[1] % 8 == 0;
    if (!sensible)
        return false;
    *offsets = (struct python_offsets){
        .walk = {.entry = BPF_PYTHON_ENTRY_FRAME,
                 .tag_mask = layout->minor >= 14 ? 3 : 0,
                 .thread_frame = (uint16_t)thread[4],
                 .thread_cframe = NONE,
                 .cframe_frame = NONE,
                 .cframe_previous = NONE,
                 .frame_bytes =
                     (uint16_t)(MAX(MAX(frame[1], frame[2]) + 8, MAX(frame[3] + 8, frame[5] + 1))),
                 .frame_previous = (uint16_t)frame[1],
                 .frame_code = (uint16_t)frame[2],
                 .frame_instruction = (uint16_t)frame[3],
                 .frame_unit = NONE,
                 .frame_entry = (uint16_t)frame[5],
                 .code_bytes = (uint16_t)(MAX(MAX(code[1], code[2]), MAX(code[4], code[5])) + 8),
                 .code_type_at = (uint16_t)object[1],
                 .code_first_line = (uint16_t)code[5],
                 .code_file = (uint16_t)code[1],
                 .code_name = (uint16_t)code[2],
                 .code_lines = (uint16_t)code[4],
                 .code_instructions = (uint16_t)code[9]},
        .runtime_interpreters = (uint16_t)runtime[2],
        .interpreter_next = (uint16_t)interpreter[2],
        .interpreter_threads = (uint16_t)interpreter[3],
        .thread_next = (uint16_t)thread[2],
        .thread_interpreter = (uint16_t)thread[3],
        .thread_id = (uint16_t)thread[5],
        .code_qualified_name = (uint16_t)code[3],
        /* Two words before the instructions, in both versions. */
        .code_first_unit = (uint16_t)(code[9] >= 16 ? code[9] - 16 : NONE),
        .text_state_shift = words[2] && layout->minor >= 14 ? 6 : 0,
        .free_threaded = words[2] != 0,
    };
    take_lock(interpreter + layout->lock_word, words[2] != 0, offsets);
    /* Strings and bytes begin with an object's header, which free-threaded builds have a longer
     * one of, and go on as they have since 3.12. */
    uint16_t header = (uint16_t)object[0];
    offsets->text_length = offsets->bytes_length = header;
    offsets->text_state = (uint16_t)(header + 16);
    offsets->text_header = (uint16_t)(header + 24);
    offsets->wide_header = (uint16_t)(header + 40);
    offsets->bytes_header = (uint16_t)(header + 16);
    return true;
}

static bool read_layout(const struct python_binary *binary, const struct runtime_memory *memory,
                        uint64_t runtime, struct python_offsets *offsets)
{
    uint64_t words[WORDS_MAX];
    if (!runtime_read(memory, runtime, words, sizeof(words)) || memcmp(words, COOKIE, 8) ||
        (words[1] >> 16 & 255) != binary->minor)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(layouts); i++)
        if (layouts[i].minor == binary->minor && take_layout(words, &layouts[i], offsets))
            return true;
    return false;
}

bool python_offsets_get(const struct python_binary *binary, const struct runtime_memory *memory,
                        uint64_t runtime, struct python_offsets *ret_offsets,
                        const char **ret_reason)
{
    struct python_offsets offsets;
    if (binary->major != 3 || binary->minor < 8 || binary->minor > 14) {
        *ret_reason = "this version of Python is not supported (3.8 to 3.14 are)";
        return false;
    }
    if (binary->minor < ARRAY_LENGTH(offsets_of_minor)) {
        *ret_offsets = offsets_of_minor[binary->minor];
        ret_offsets->minor = binary->minor;
        return true;
    }
    if (!read_layout(binary, memory, runtime, &offsets)) {
        *ret_reason = "the interpreter's debug offsets cannot be read";
        return false;
    }
    offsets.minor = binary->minor;
    *ret_offsets = offsets;
    return true;
}
