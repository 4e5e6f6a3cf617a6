// SPDX-License-Identifier: Apache-2.0
// Goroutines in memory: see goroutines.h.

#include "runtime/go/goroutines.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define G_BYTES 192        /* of a goroutine, as far as it is read */
#define STACK_BYTES 4096   /* of its stack, at one read */
#define STACK_READS_MAX 16 /* of one stack */
#define SCANNED 0x1000u    /* the garbage collector looks at it */
#define FRAME_BYTES_MAX (1u << 30)

/* Where versions have what is read. */
struct go_layout {
    unsigned minor_first, minor_last;
    uint16_t sp, pc, bp;                         /* of one that was stopped */
    uint16_t syscall_sp, syscall_pc, syscall_bp; /* of one in a system call; bp 0: as `bp` */
    uint16_t status, id, reason;
};

static const struct go_layout layouts[] = {
    {17, 22, 56, 64, 104, 112, 120, 0, 144, 152, 176},
    {23, 24, 56, 64, 104, 112, 120, 128, 152, 160, 184},
    {25, 26, 56, 64, 96, 104, 112, 120, 144, 152, 176},
};

static bool read_text(const struct runtime_memory *memory, uint64_t at, char *text, size_t room)
{
    uint64_t where[2];
    memset(text, 0, room);
    if (!runtime_read(memory, at, where, sizeof(where)))
        return false;
    size_t length = MIN((size_t)where[1], room - 1);
    return !length || runtime_read(memory, where[0], text, length);
}

static const struct go_layout *find_layout(const char *version)
{
    unsigned minor;
    if (sscanf(version, "go1.%3u", &minor) != 1)
        return NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(layouts); i++)
        if (minor >= layouts[i].minor_first && minor <= layouts[i].minor_last)
            return &layouts[i];
    return NULL;
}

bool go_attach(const struct go_binary *binary, uint64_t bias, const struct runtime_memory *memory,
               struct go_process *ret_process, const char **ret_reason)
{
    *ret_process = (struct go_process){.binary = *binary};
    struct go_binary *own = &ret_process->binary;
    own->goroutines += bias;
    own->version += bias;
    own->reasons += bias;
    *ret_reason = "its memory can't be read";
    if (!read_text(memory, own->version, ret_process->version, sizeof(ret_process->version)))
        return false;
    *ret_reason = "this version of Go is not supported (1.17 to 1.26 are)";
    ret_process->layout = find_layout(ret_process->version);
    if (!ret_process->layout)
        return false;
    for (unsigned i = 0; i < own->reason_count && i < GO_REASONS_MAX; i++)
        read_text(memory, own->reasons + (uint64_t)i * 16, ret_process->reasons[i],
                  sizeof(ret_process->reasons[i]));
    return true;
}

size_t go_list(const struct go_process *process, const struct runtime_memory *memory,
               uint64_t *ret_list)
{
    uint64_t slice[2];
    if (!runtime_read(memory, process->binary.goroutines, slice, sizeof(slice)) ||
        slice[1] > GO_GOROUTINES_MAX)
        return 0;
    *ret_list = slice[0];
    return (size_t)slice[1];
}

/* A part of a stack. */
struct stack_part {
    uint64_t low, high; /* of the stack */
    uint64_t from, to;  /* what was read of it */
    unsigned reads;
    uint8_t bytes[STACK_BYTES];
};

static bool stack_words(const struct runtime_memory *memory, struct stack_part *part, uint64_t at,
                        uint64_t ret_words[2])
{
    if (at < part->low || at > part->high - 16 || at & 7)
        return false;
    if (at < part->from || at + 16 > part->to) {
        uint64_t length = MIN(part->high - at, (uint64_t)STACK_BYTES);
        if (++part->reads > STACK_READS_MAX ||
            !runtime_read(memory, at, part->bytes, (size_t)length))
            return false;
        part->from = at;
        part->to = at + length;
    }
    memcpy(ret_words, part->bytes + (at - part->from), 16);
    return true;
}

/* Frames are linked by their saved frame pointers, each beyond the one before it. */
static void walk(const struct runtime_memory *memory, uint64_t low, uint64_t high, uint64_t sp,
                 uint64_t pc, uint64_t bp, struct goroutine *goroutine)
{
    struct stack_part part = {.low = low, .high = high};
    uint64_t words[2];
    if (!pc || low >= high || high - low > FRAME_BYTES_MAX || high - low < 16 || sp < low ||
        sp > high)
        return;
    goroutine->addresses[goroutine->count++] = pc;
    for (uint64_t last = sp - 1; bp > last && stack_words(memory, &part, bp, words);
         bp = words[0]) {
        if (!words[1])
            return;
        if (goroutine->count == GO_FRAMES_MAX) {
            goroutine->cut = true;
            return;
        }
        goroutine->addresses[goroutine->count++] = words[1];
        last = bp;
    }
}

static uint64_t word_at(const uint8_t *bytes, uint16_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

bool go_read(const struct go_process *process, const struct runtime_memory *memory, uint64_t list,
             size_t at, struct goroutine *ret_goroutine)
{
    const struct go_layout *layout = process->layout;
    uint8_t bytes[G_BYTES];
    uint64_t address = runtime_read_word(memory, list + 8 * (uint64_t)at);
    if (!address || !runtime_read(memory, address, bytes, sizeof(bytes)))
        return false;
    unsigned status = (unsigned)word_at(bytes, layout->status) & 0xffff & ~SCANNED;
    unsigned reason = bytes[layout->reason];
    *ret_goroutine = (struct goroutine){
        .id = word_at(bytes, layout->id), .status = (enum go_status)status, .reason = ""};
    uint64_t low = word_at(bytes, 0), high = word_at(bytes, 8);
    uint64_t bp = word_at(bytes, layout->bp);
    if (status == GO_WAITING && reason < process->binary.reason_count)
        ret_goroutine->reason = process->reasons[reason];
    switch (status) {
    case GO_SYSCALL:
        walk(memory, low, high, word_at(bytes, layout->syscall_sp),
             word_at(bytes, layout->syscall_pc),
             layout->syscall_bp ? word_at(bytes, layout->syscall_bp) : bp, ret_goroutine);
        return true;
    case GO_RUNNABLE:
    case GO_WAITING:
    case GO_PREEMPTED:
        walk(memory, low, high, word_at(bytes, layout->sp), word_at(bytes, layout->pc), bp,
             ret_goroutine);
        return true;
    case GO_RUNNING:
        return true;
    default: /* it is about to begin, has ended, or its stack moves */
        return false;
    }
}

const char *go_state(const struct goroutine *goroutine)
{
    static const struct {
        const char *reason, *state; /* the beginning of the reason */
    } states[] = {
        {"chan ", "channel"},
        {"select", "channel"},
        {"sync.Mutex", "lock"},
        {"sync.RWMutex", "lock"},
        {"semacquire", "lock"},
        {"sync.Cond", "lock"},
        {"sync.WaitGroup", "lock"},
        {"IO wait", "network"},
        {"sleep", "sleep"},
        {"GC worker (idle)", "idle"},
        {"force gc (idle)", "idle"},
        {"GC sweep wait", "idle"},
        {"GC scavenge wait", "idle"},
        {"finalizer wait", "idle"},
        {"cleanup wait", "idle"},
        {"GOMAXPROCS updater (idle)", "idle"},
        {"wait for GC cycle", "idle"},
    };
    switch (goroutine->status) {
    case GO_RUNNING:
        return "running";
    case GO_RUNNABLE:
    case GO_PREEMPTED:
        return "runnable";
    case GO_SYSCALL:
        return "syscall";
    default:
        for (size_t i = 0; i < ARRAY_LENGTH(states); i++)
            if (!strncmp(goroutine->reason, states[i].reason, strlen(states[i].reason)))
                return states[i].state;
        return "other";
    }
}
