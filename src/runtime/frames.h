/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which native frames of an interpreter say nothing about the program: those through which one
 * function of the program calls another, and those that start the program. Functions that the
 * program itself called, such as list.sort(), are innermost and stay.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum runtime_frame {
    RUNTIME_FRAME_OTHER,
    RUNTIME_FRAME_PROGRAM,     /* of the program: of an interpreted language */
    RUNTIME_FRAME_EVALUATE,    /* native: the evaluation function */
    RUNTIME_FRAME_INTERPRETER, /* native: of a file with the interpreter */
    RUNTIME_FRAME_START,       /* native: of the C library, which starts programs and threads */
    RUNTIME_FRAME_HIDDEN,
};

/* Turns those into RUNTIME_FRAME_HIDDEN. Frames are innermost first. */
void runtime_frames_hide(uint8_t *kinds, size_t count);

/* The kind of a file's frames by its path. */
enum runtime_frame runtime_frame_of_path(const char *path);
