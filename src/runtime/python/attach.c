// SPDX-License-Identifier: Apache-2.0
// Finding an interpreter's threads: see attach.h. The interpreter lists its thread states, each
// with the thread's pthread_self(), which on x86-64 is the thread pointer. The C library keeps the
// address of the state in the thread's specific data; where exactly, is found by looking for it.

#include "runtime/python/attach.h"

#include <string.h>

#include "base/memory.h"

#define INTERPRETERS_MAX 16
#define THREADS_MAX 64 /* that are looked at: enough to tell chance from rule */
/* glibc has the first 32 keys in the thread's descriptor, musl an array behind a pointer in it. */
#define DESCRIPTOR_BYTES 0x520
#define POINTERS_BYTES 0x100
#define ARRAY_BYTES 1024

struct thread {
    uint64_t state, pointer;
};

static uint64_t word_at(const uint8_t *bytes, size_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

/* The threads of all interpreters. False when the lists are not as they should be. */
static bool list_threads(const struct python_offsets *offsets, const struct runtime_memory *memory,
                         uint64_t runtime, struct thread ret_threads[THREADS_MAX],
                         size_t *ret_count)
{
    size_t count = 0, looked_at = 0;
    uint64_t interpreter = runtime_read_word(memory, runtime + offsets->runtime_interpreters);
    for (unsigned i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
        uint64_t state = runtime_read_word(memory, interpreter + offsets->interpreter_threads);
        while (state && looked_at++ < THREADS_MAX) {
            if (runtime_read_word(memory, state + offsets->thread_interpreter) != interpreter)
                return false;
            uint64_t pointer = runtime_read_word(memory, state + offsets->thread_id);
            if (pointer)
                ret_threads[count++] = (struct thread){.state = state, .pointer = pointer};
            state = runtime_read_word(memory, state + offsets->thread_next);
        }
        interpreter = runtime_read_word(memory, interpreter + offsets->interpreter_next);
    }
    *ret_count = count;
    return true;
}

uint64_t python_thread_state(const struct python_process *python,
                             const struct runtime_memory *memory, uint64_t thread_pointer)
{
    const struct bpf_python *walk = &python->offsets.walk;
    uint64_t word = runtime_read_word(memory, thread_pointer + (uint64_t)(int64_t)walk->tsd_offset);
    if (walk->tsd_indirect && word)
        word = runtime_read_word(memory, word + (uint64_t)(int64_t)walk->tsd_second);
    return word;
}

bool python_holds_lock(const struct python_process *python, const struct runtime_memory *memory,
                       uint64_t thread_pointer)
{
    const struct python_offsets *offsets = &python->offsets;
    uint64_t thread = python_thread_state(python, memory, thread_pointer), word;
    uint32_t number;
    if (!thread)
        return false;
    if (offsets->runtime_holder != BPF_PYTHON_NONE)
        return runtime_read_word(memory, python->runtime + offsets->runtime_holder) == thread;
    if (offsets->interpreter_lock == BPF_PYTHON_NONE)
        return false;
    word = runtime_read_word(memory, thread + offsets->thread_interpreter);
    word = word ? runtime_read_word(memory, word + offsets->interpreter_lock) : 0;
    if (!word ||
        (offsets->lock_enabled != BPF_PYTHON_NONE &&
         (!runtime_read(memory, word + offsets->lock_enabled, &number, sizeof(number)) || !number)))
        return false;
    /* Who held it last is left in place when it is given up; negative: it was never held. */
    return runtime_read(memory, word + offsets->lock_held, &number, sizeof(number)) &&
           number == 1 && runtime_read_word(memory, word + offsets->lock_holder) == thread;
}

/* How many threads have their state there. */
static size_t count_right(const struct python_process *python, const struct runtime_memory *memory,
                          const struct thread *threads, size_t count)
{
    size_t right = 0;
    for (size_t i = 0; i < count; i++)
        right += python_thread_state(python, memory, threads[i].pointer) == threads[i].state;
    return right;
}

/* Several interpreters of one thread have a state each, of which one is the thread's; and a thread
 * may be about to begin or end. So most have to be right. */
static bool is_place(const struct python_process *python, const struct runtime_memory *memory,
                     const struct thread *threads, size_t count)
{
    return 2 * count_right(python, memory, threads, count) > count;
}

static bool find_place(struct python_process *python, const struct runtime_memory *memory,
                       const struct thread *threads, size_t count, const struct thread *thread)
{
    struct bpf_python *walk = &python->offsets.walk;
    uint8_t descriptor[DESCRIPTOR_BYTES], array[ARRAY_BYTES];
    size_t length = DESCRIPTOR_BYTES;
    if (!runtime_read(memory, thread->pointer, descriptor, length)) {
        length = POINTERS_BYTES;
        if (!runtime_read(memory, thread->pointer, descriptor, length))
            return false;
    }
    walk->tsd_indirect = 0;
    for (size_t at = 0; at + 8 <= length; at += 8) {
        walk->tsd_offset = (int)at;
        if (word_at(descriptor, at) == thread->state && is_place(python, memory, threads, count))
            return true;
    }
    walk->tsd_indirect = 1;
    for (size_t at = 0; at + 8 <= POINTERS_BYTES; at += 8) {
        uint64_t pointer = word_at(descriptor, at);
        if (pointer < 4096 || pointer % 8 || !runtime_read(memory, pointer, array, sizeof(array)))
            continue;
        for (size_t second = 0; second + 8 <= sizeof(array); second += 8) {
            walk->tsd_offset = (int)at;
            walk->tsd_second = (int)second;
            if (word_at(array, second) == thread->state && is_place(python, memory, threads, count))
                return true;
        }
    }
    return false;
}

enum python_attach python_attach(const struct python_binary *binary, uint64_t bias,
                                 const struct runtime_memory *memory,
                                 struct python_process *ret_python, const char **ret_reason)
{
    struct python_process python = {0};
    struct thread threads[THREADS_MAX];
    size_t count;
    uint64_t runtime = binary->runtime + bias;
    if (!python_offsets_get(binary, memory, runtime, &python.offsets, ret_reason))
        return PYTHON_REFUSED;
    struct bpf_python *walk = &python.offsets.walk;
    python.runtime = runtime;
    python.tail_calls = binary->tail_calls;
    walk->code_type = binary->code_type + bias;
    for (int i = 0; i < 2; i++) {
        walk->evaluate[i] = binary->evaluate[i] + bias;
        walk->cold[i] = binary->cold[i] ? binary->cold[i] + bias : 0;
    }
    memcpy(python.version, binary->version, sizeof(python.version));
    *ret_reason = "the interpreter's lists of threads cannot be read";
    if (!list_threads(&python.offsets, memory, runtime, threads, &count))
        return PYTHON_NOT_YET;
    if (!count)
        return PYTHON_NOT_YET;
    for (size_t i = 0; i < MIN(count, 4u); i++)
        if (find_place(&python, memory, threads, count, &threads[i])) {
            *ret_python = python;
            return PYTHON_ATTACHED;
        }
    *ret_reason = "the interpreter's thread states cannot be found in its threads";
    return PYTHON_NOT_YET;
}
