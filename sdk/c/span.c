// SPDX-License-Identifier: Apache-2.0
// Spans of threads: see assay.h. Each thread has one record, which its spans write in turn: it is
// marked as not valid while that happens. Only the thread itself writes it, and readers see the
// thread stopped or interrupted, so the compiler's order of writes is all that matters.

#include "c/assay.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "c/internal.h"
#include "c/record.h"

/* The symbol that readers look for, in the dynamic symbol table. */
__attribute__((visibility("default"))) __thread struct assay_record *otel_thread_ctx_v1;

struct thread_state {
    struct assay_record record;
    uint64_t random[2];
    unsigned generation; /* of the process: a fork's child has another */
    unsigned order;      /* of the span that was begun last */
};

static __thread struct thread_state *own_state;
static pthread_key_t end_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;
static unsigned generation;

#define COMPILER_FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

_Static_assert(sizeof(struct assay_record) == ASSAY_RECORD_BYTES, "as readers see it");
_Static_assert(sizeof(((struct assay_span *)0)->before) == ASSAY_RECORD_HEADER, "it is kept there");

/* ---- threads ---- */

static void end_thread(void *memory)
{
    struct thread_state *state = memory;
    otel_thread_ctx_v1 = NULL;
    COMPILER_FENCE();
    own_state = NULL;
    free(state);
}

static void begin_child(void)
{
    generation++;
    assay_fork_child();
}

static void begin_process(void)
{
    has_key = pthread_key_create(&end_key, end_thread) == 0;
    pthread_atfork(assay_fork_begin, assay_fork_parent, begin_child);
    assay_publish_begin();
}

void assay_prepare(void)
{
    pthread_once(&once, begin_process);
}

/* Without the system's random numbers, ids still differ by thread and by time. */
static void seed(struct thread_state *state)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (getrandom(state->random, sizeof(state->random), GRND_NONBLOCK) != sizeof(state->random)) {
        state->random[0] = (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)state;
        state->random[1] = (uint64_t)now.tv_sec << 32 ^ (uint64_t)(uintptr_t)&now;
    }
    state->random[0] |= 1;
    state->generation = generation;
}

static __attribute__((noinline)) struct thread_state *begin_thread(void)
{
    assay_prepare();
    struct thread_state *state = own_state;
    if (!state && has_key &&
        (state = aligned_alloc(64, sizeof(*state) + 64 - sizeof(*state) % 64))) {
        memset(state, 0, sizeof(*state));
        state->record.valid = 1;
        if (pthread_setspecific(end_key, state) != 0) {
            free(state);
            return NULL;
        }
        own_state = state;
        COMPILER_FENCE();
        otel_thread_ctx_v1 = &state->record;
    }
    if (state)
        seed(state);
    return state;
}

/* NULL: there is no memory for it, and the thread has no spans. */
static inline struct thread_state *get_thread(void)
{
    struct thread_state *state = own_state;
    return __builtin_expect(state && state->generation == generation, 1) ? state : begin_thread();
}

/* xoroshiro128+: ids have to differ, not to be secret. */
static inline uint64_t next_random(struct thread_state *state)
{
    uint64_t a = state->random[0], b = state->random[1], sum = a + b;
    b ^= a;
    state->random[0] = (a << 24 | a >> 40) ^ b ^ b << 16;
    state->random[1] = b << 37 | b >> 27;
    return sum | 1; /* an id of zeros is none */
}

/* ---- spans ---- */

static inline void begin_change(struct assay_record *record)
{
    *(volatile unsigned char *)&record->valid = 0;
    COMPILER_FENCE();
}

static inline void end_change(struct assay_record *record)
{
    COMPILER_FENCE();
    *(volatile unsigned char *)&record->valid = 1;
}

static inline void keep(struct assay_span *span, struct thread_state *state)
{
    memcpy(span->before, &state->record, ASSAY_RECORD_HEADER);
    span->order = ++state->order;
    span->thread = state;
}

static inline bool is_none(const unsigned char *id, size_t bytes)
{
    unsigned char any = 0;
    for (size_t i = 0; i < bytes; i++)
        any |= id[i];
    return !any;
}

static inline bool has_trace(const struct assay_record *record)
{
    uint64_t words[2];
    memcpy(words, record->trace_id, sizeof(words));
    return (words[0] | words[1]) != 0;
}

/* NULL: within the current trace. */
static inline void begin(struct assay_span *span, const unsigned char *trace_id, unsigned flags,
                         bool new_trace)
{
    struct thread_state *state = get_thread();
    if (!state) {
        span->thread = NULL;
        return;
    }
    struct assay_record *record = &state->record;
    uint64_t span_id = next_random(state);
    keep(span, state);
    begin_change(record);
    if (new_trace || !has_trace(record)) {
        uint64_t words[2] = {next_random(state), next_random(state)};
        memcpy(record->trace_id, trace_id ? (const void *)trace_id : words, sizeof(words));
        record->flags = (unsigned char)flags;
    }
    memcpy(record->span_id, &span_id, sizeof(span_id));
    end_change(record);
}

void assay_begin(struct assay_span *span)
{
    begin(span, NULL, ASSAY_SAMPLED, false);
}

void assay_begin_trace(struct assay_span *span, const unsigned char trace_id[ASSAY_TRACE_ID_BYTES],
                       unsigned flags)
{
    bool known = trace_id && !is_none(trace_id, ASSAY_TRACE_ID_BYTES);
    begin(span, known ? trace_id : NULL, flags, true);
}

void assay_attach(struct assay_span *span, const unsigned char trace_id[ASSAY_TRACE_ID_BYTES],
                  const unsigned char span_id[ASSAY_SPAN_ID_BYTES], unsigned flags)
{
    struct thread_state *state = get_thread();
    span->thread = NULL;
    if (!state || is_none(trace_id, ASSAY_TRACE_ID_BYTES) || is_none(span_id, ASSAY_SPAN_ID_BYTES))
        return;
    struct assay_record *record = &state->record;
    keep(span, state);
    begin_change(record);
    memcpy(record->trace_id, trace_id, sizeof(record->trace_id));
    memcpy(record->span_id, span_id, sizeof(record->span_id));
    record->flags = (unsigned char)flags;
    end_change(record);
}

/* Spans begun within this one and never ended end with it; one that has ended already is not
 * the thread's last. */
int assay_end(struct assay_span *span)
{
    struct thread_state *state = own_state;
    if (!state || span->thread != state || span->order > state->order)
        return -EPERM;
    begin_change(&state->record);
    memcpy(&state->record, span->before, ASSAY_RECORD_HEADER - 4);
    memcpy(&state->record.flags, span->before + offsetof(struct assay_record, flags), 3);
    end_change(&state->record);
    state->order = span->order - 1;
    span->thread = NULL;
    return 0;
}

int assay_set(int key, const char *value)
{
    struct thread_state *state = get_thread();
    size_t length = value ? strlen(value) : 0;
    if (key < 0 || key >= ASSAY_KEYS_MAX)
        return -EINVAL;
    if (!state)
        return -ENOMEM;
    struct assay_record *record = &state->record;
    if (length > 255 || record->attribute_bytes + 2 + length > sizeof(record->attributes))
        return -E2BIG;
    unsigned char *at = record->attributes + record->attribute_bytes;
    at[0] = (unsigned char)key;
    at[1] = (unsigned char)length;
    memcpy(at + 2, value ? value : "", length);
    COMPILER_FENCE();
    *(volatile uint16_t *)&record->attribute_bytes += (uint16_t)(2 + length);
    return 0;
}

int assay_current(unsigned char trace_id[ASSAY_TRACE_ID_BYTES],
                  unsigned char span_id[ASSAY_SPAN_ID_BYTES])
{
    const struct thread_state *state = own_state;
    if (!state || !has_trace(&state->record))
        return 0;
    memcpy(trace_id, state->record.trace_id, ASSAY_TRACE_ID_BYTES);
    memcpy(span_id, state->record.span_id, ASSAY_SPAN_ID_BYTES);
    return 1;
}

/* ---- W3C ---- */

static char *write_hex(char *text, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    return text;
}

/* Lower case alone is valid. */
static bool read_hex(const char *text, unsigned char *ret_bytes, size_t count)
{
    for (size_t i = 0; i < 2 * count; i++) {
        char digit = text[i];
        bool decimal = digit >= '0' && digit <= '9';
        if (!decimal && (digit < 'a' || digit > 'f'))
            return false;
        unsigned value = (unsigned)(decimal ? digit - '0' : digit - 'a' + 10);
        ret_bytes[i / 2] = (unsigned char)(i % 2 ? ret_bytes[i / 2] | value : value << 4);
    }
    return true;
}

void assay_traceparent(char text[ASSAY_TRACEPARENT_BYTES])
{
    const struct thread_state *state = own_state;
    if (!state || !has_trace(&state->record)) {
        text[0] = '\0';
        return;
    }
    const struct assay_record *record = &state->record;
    memcpy(text, "00-", 3);
    char *at = write_hex(text + 3, record->trace_id, sizeof(record->trace_id));
    *at++ = '-';
    at = write_hex(at, record->span_id, sizeof(record->span_id));
    *at++ = '-';
    *write_hex(at, &record->flags, 1) = '\0';
}

int assay_begin_traceparent(struct assay_span *span, const char *text)
{
    unsigned char version, trace_id[16], parent[8], flags;
    size_t length = text ? strnlen(text, ASSAY_TRACEPARENT_BYTES) : 0;
    bool valid = length >= 55 && text[2] == '-' && text[35] == '-' && text[52] == '-' &&
                 read_hex(text, &version, 1) && version != 0xff &&
                 (length == 55 || (version && text[55] == '-')) &&
                 read_hex(text + 3, trace_id, 16) && read_hex(text + 36, parent, 8) &&
                 read_hex(text + 53, &flags, 1) && !is_none(trace_id, sizeof(trace_id)) &&
                 !is_none(parent, sizeof(parent));
    assay_begin_trace(span, valid ? trace_id : NULL, valid ? flags : ASSAY_SAMPLED);
    return valid ? 0 : -EINVAL;
}
