// SPDX-License-Identifier: Apache-2.0
// Both sides of the child that disassembles: see disassembly.h.

#include "symbol/disassembly.h"

#include <string.h>

#include "arch/x86_64/disassemble.h"
#include "base/memory.h"

/* The request: this, and the code behind it. */
struct disassembly_request {
    uint64_t address;
    uint8_t code[];
};

/* The answer, an instruction after the other: this, and the text with its NUL. */
struct disassembly_piece {
    uint64_t target;
    uint8_t length;
    uint8_t text_length; /* without the NUL */
    char text[];
} __attribute__((packed));

#define PIECE_BYTES sizeof(struct disassembly_piece)

/* ---- in the child ---- */

static void put_piece(void *context, const struct x86_64_line *line)
{
    struct disassembly_piece piece = {
        .target = line->target,
        .length = line->length,
        .text_length = (uint8_t)strlen(line->text),
    };
    buffer_add(context, &piece, PIECE_BYTES);
    buffer_add(context, line->text, piece.text_length + 1u);
}

static int run(const struct confined_input *input)
{
    const struct disassembly_request *request = input->request;
    struct buffer out = {0};
    if (input->request_bytes < sizeof(*request) ||
        !x86_64_disassemble(request->code, input->request_bytes - sizeof(*request),
                            request->address, put_piece, &out))
        return -1;
    if (out.length)
        confined_write(out.data, out.length);
    return 0; /* the process ends now, and everything with it */
}

const struct confined_program disassembly_program = {
    .name = "disassembly",
    .run = run,
    .memory_bytes = 512u << 20,
    .cpu_seconds = 20,
    .deadline_ms = 60000,
    .output_max_bytes =
        (size_t)DISASSEMBLY_BYTES_MAX * (PIECE_BYTES + sizeof(".byte 0x00") + sizeof(uint64_t)),
};

/* ---- in the parent ---- */

void disassembly_release(struct disassembly *disassembly)
{
    free(disassembly->instructions);
    buffer_release(&disassembly->answer);
    *disassembly = (struct disassembly){0};
}

int disassembly_read(struct buffer *output, size_t length, uint64_t address,
                     struct disassembly *ret_disassembly, struct error *error)
{
    _cleanup_(disassembly_release) struct disassembly made = {0};
    size_t capacity = 0, covered = 0;
    for (size_t at = 0; at < output->length;) {
        struct disassembly_piece piece;
        size_t left = output->length - at;
        if (left >= PIECE_BYTES)
            memcpy(&piece, output->data + at, PIECE_BYTES);
        if (left < PIECE_BYTES || left - PIECE_BYTES <= piece.text_length || !piece.length ||
            piece.length > length - covered ||
            output->data[at + PIECE_BYTES + piece.text_length] != '\0')
            return error_set(error, -EBADMSG, "The disassembler's answer is damaged.");
        array_reserve(made.instructions, capacity, made.count + 1);
        made.instructions[made.count++] =
            (struct instruction){.address = address + covered,
                                 .target = piece.target,
                                 .length = piece.length,
                                 .text = output->data + at + PIECE_BYTES};
        covered += piece.length;
        at += PIECE_BYTES + piece.text_length + 1u;
    }
    if (covered != length)
        return error_set(error, -EBADMSG, "The disassembler's answer is incomplete.");
    made.answer = *output;
    *output = (struct buffer){0};
    *ret_disassembly = made;
    made = (struct disassembly){0};
    return 0;
}

struct disassembling {
    const void *code;
    size_t length;
    uint64_t address;
    bool started;
    enum confined_end end;
    struct buffer output;
};

static bool next_job(void *context, struct confined_job *job)
{
    struct disassembling *work = context;
    struct disassembly_request request = {.address = work->address};
    if (work->started)
        return false;
    work->started = true;
    job->program = &disassembly_program;
    buffer_add(&job->request, &request, sizeof(request));
    buffer_add(&job->request, work->code, work->length);
    return true;
}

static void take_output(void *context, struct confined_job *job)
{
    struct disassembling *work = context;
    work->end = job->end;
    work->output = job->output;
    job->output = (struct buffer){0};
}

int disassembly_make(const void *code, size_t length, uint64_t address,
                     struct disassembly *ret_disassembly, struct error *error)
{
    struct disassembling work = {.code = code, .length = length, .address = address};
    if (!length || length > DISASSEMBLY_BYTES_MAX)
        return error_set(error, -E2BIG, "The function has %zu bytes of code; the limit is %u.",
                         length, DISASSEMBLY_BYTES_MAX);
    confined_run(&(struct confined_jobs){next_job, take_output, &work, NULL});
    int r = work.end == CONFINED_FINE
                ? disassembly_read(&work.output, length, address, ret_disassembly, error)
                : error_set(error, -EIO, "The process that disassembles %s.",
                            work.end == CONFINED_LATE       ? "took too long"
                            : work.end == CONFINED_TOO_LONG ? "wrote too much"
                            : work.end == CONFINED_DIED     ? "crashed"
                                                            : "failed");
    buffer_release(&work.output);
    return r;
}
