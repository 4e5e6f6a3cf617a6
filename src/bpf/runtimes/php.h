/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PHP's frames: what BPF programs and user space share. See php.bpf.h for the walk. */
#pragma once

#define BPF_PHP_CALL_BYTES 56     /* of a call (zend_execute_data), up to its caller */
#define BPF_PHP_FUNCTION_BYTES 32 /* what functions of PHP and built-in ones have in common */

/* Types of functions. */
#define BPF_PHP_BUILT_IN 1
#define BPF_PHP_USER 2
#define BPF_PHP_EVALUATED 4 /* the code of a file, or of a string */

/* Addresses are the process's, offsets are bytes. */
struct bpf_php {
    unsigned long long evaluate[2]; /* execute_ex(): from, to */
    unsigned long long cold[2];    /* and the part that the compiler has moved away; may be empty */
    unsigned long long current;    /* where the innermost call is kept */
    unsigned short function_bytes; /* of a function of PHP, up to the last of: */
    unsigned short function_last;  /* the number of its instructions */
    unsigned short function_instructions;
    unsigned short function_file;
    unsigned short function_first_line;
    unsigned short unused[3];
};

/* A frame's bpf_code_event: address: the function; file, name: strings; lines: its class. Unit: the
 * line. */
