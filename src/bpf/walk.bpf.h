/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walking a user stack in the kernel by unwind rows: the same steps as src/elf/unwind/unwind.c. Any
 * program that has the user's registers can call it:
 *
 *     walk->registers...; walk_begin(walk, pid); walk_run(walk);
 *
 * and finds the innermost frame in walk->leaf, its callers in walk->callers, their hash in
 * walk->hash and how it ended in walk->end. A struct walk is too large for the stack: it lives in a
 * map with one value per CPU.
 *
 * The step is a global function, which the verifier looks at once instead of once for each way
 * around the loop.
 */
#pragma once

#include "arch/x86_64/x86_64.bpf.h"
#include "bpf/shared.h"
#include "bpf/types.bpf.h"

#define WINDOW_BYTES 2048
#define WINDOW_BELOW 64 /* what is saved just below the first word that is asked for */

/* Where a walk is in the frames of an interpreter: see evaluation.bpf.h. */
struct evaluation_walk {
    __u32 kind;    /* enum bpf_runtime_kind; 0: the process has none */
    __u32 state;   /* how far it has got with the thread's state */
    __u32 pending; /* a call of the evaluation function: 1: it begins, 2: its frames are added */
    __u32 segment; /* of the evaluation function, once one has been met; else 0 */
    __u64 evaluate[2], cold[2];
    __u64 frame;     /* the interpreter's next one */
    __u64 low, high; /* the call's part of the C stack */
    __u64 native;    /* its frame, */
    int result;      /* and what the native step made of it */
    __u32 shown;     /* its frame has been added */
    __u8 bytes[BPF_PYTHON_FRAME_BYTES];
    __u8 code[BPF_PYTHON_CODE_BYTES];
};

/* Python alone: see python.bpf.h. */
struct python_walk {
    __u64 cframe;      /* the next one */
    __u32 saved_count; /* before the call's first frame */
    __u32 unused;
    __u64 saved_hash, saved_leaf, saved_frame;
};

/* Ruby alone: see ruby.bpf.h. */
struct ruby_walk {
    __u64 end; /* of the frames */
};

/* Where a walk is in the code cache of HotSpot: see hotspot.bpf.h. */
struct hotspot_walk {
    __u64 low, high;  /* the code cache; empty: the process has none */
    __u64 known_name; /* of a kind of code whose kind is known */
    __u32 known_kind;
    __u32 unused;
    __u8 code[32]; /* around the instruction pointer */
    __u8 bytes[BPF_HOTSPOT_BLOB_BYTES];
};

/* JavaScript functions: see v8.bpf.h. */
struct v8_walk {
    __u32 present; /* the process has V8 */
    __u32 unused;
    __u64 word; /* the frame of the function that was found last */
    __u64 map;  /* of functions: its type has been checked; 0: none */
    __u8 bytes[BPF_V8_BYTES];
};

struct walk {
    __u64 value[UNWIND_REGISTERS];
    __u32 known; /* a bit for each register */
    __u32 count; /* of frames, the leaf among them */
    __u32 end;
    __u8 exact, by_frame_pointer, signal_frames, in_system_call;

    /* The process's mappings, and the two that were hit last. */
    __u32 first, mapping_count, list, last, other;
    __u32 used; /* now, as slots note it; 0: this walk notes nothing */

    /* A copy of a piece of the stack. */
    __u64 window_address;
    __u32 window_length;
    __u64 word;    /* that was read beyond it */
    __u32 in_file; /* the code of the frame is in one */
    __u8 window[WINDOW_BYTES + 8];

    __u32 runtime; /* of the process: see struct bpf_process */
    __u32 context;
    struct evaluation_walk evaluation;
    struct python_walk python;
    struct ruby_walk ruby;
    struct hotspot_walk hotspot;
    struct v8_walk v8;

    __u64 hash;
    __u64 leaf;
    struct bpf_stack_event callers; /* frames follow */
    __u64 frames[BPF_FRAMES_MAX];
};

#define TABLE(map_name, value_type, key_count)                                                     \
    struct {                                                                                       \
        __uint(type, BPF_MAP_TYPE_ARRAY);                                                          \
        __uint(map_flags, BPF_F_MMAPABLE);                                                         \
        __uint(max_entries, 1);                                                                    \
        __uint(key_size, 4);                                                                       \
        __uint(value_size, sizeof(value_type) * (key_count));                                      \
    } map_name SEC(".maps")

TABLE(mappings, struct bpf_mapping, BPF_MAPPINGS_MAX);
TABLE(directory, __u32, BPF_DIRECTORY_MAX);
TABLE(slots_used, __u32, BPF_SLOTS_MAX);
TABLE(rules, struct unwind_rule, BPF_RULES_MAX);
TABLE(pool, struct unwind_row, BPF_SLOT_ROWS); /* its real size is set before it is loaded */

/* The step of a walk at a return address: a quarter of a line of the cache instead of a mapping, an
 * entry of the directory, and some rows. Lists have numbers of their own, and what a list says
 * never changes, so nothing has to be taken back. CPUs share the table without a lock: the check
 * tells an entry of which another one has written a part. */
struct walk_step {
    __u64 frame;
    __u64 check; /* of address, list, frame and rule; the low 16 bits are the rule's number */
};
TABLE(steps, struct walk_step, BPF_STEPS_MAX);

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BPF_PROCESSES_MAX);
    __type(key, __u32);
    __type(value, struct bpf_process);
} processes SEC(".maps");

#define RING_BYTES (4u << 20) /* unless user space says otherwise */

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, RING_BYTES);
} events SEC(".maps");

const volatile struct bpf_settings settings = {0};

/* Keeps the compiler from proving, and the verifier from forgetting, that a mask is needed. */
#define KEEP(number) asm volatile("" : "+r"(number))

/* ---- memory ---- */

static __always_inline int load_window(struct walk *walk, __u64 address)
{
    __u64 start = (address & ~7ull) - WINDOW_BELOW;
    __u32 length = WINDOW_BYTES;
    walk->window_address = start;
    if (bpf_probe_read_user(walk->window, WINDOW_BYTES, (void *)start)) {
        /* Perhaps the stack ends in this page, or begins in it. */
        start = address & ~7ull;
        length = 4096 - (start & 4095);
        if (length > WINDOW_BYTES)
            length = WINDOW_BYTES;
        KEEP(length);
        walk->window_address = start;
        if (length > WINDOW_BYTES || bpf_probe_read_user(walk->window, length, (void *)start)) {
            walk->window_length = 0;
            return -1;
        }
    }
    walk->window_length = length;
    return 0;
}

static __always_inline int word_in_window(const struct walk *walk, __u64 address, __u64 *ret_word)
{
    __u64 offset = address - walk->window_address;
    if (offset + 8 > walk->window_length || offset > WINDOW_BYTES)
        return -1;
    KEEP(offset);
    if (offset > WINDOW_BYTES)
        return -1;
    *ret_word = *(const __u64 *)(walk->window + offset);
    return 0;
}

/* A word beyond the window, into walk->word. A function of its own keeps the code of a step, which
 * reads words at many places, in a few lines of the cache. */
__noinline int read_far(struct walk *walk, __u64 address)
{
    if (!walk)
        return -1;
    if (!load_window(walk, address) && !word_in_window(walk, address, &walk->word))
        return 0;
    return (int)bpf_probe_read_user(&walk->word, 8, (void *)address);
}

static __always_inline int read_word(struct walk *walk, __u64 address, __u64 *ret_word)
{
    if (!word_in_window(walk, address, ret_word))
        return 0;
    if (read_far(walk, address))
        return -1;
    *ret_word = walk->word;
    return 0;
}

/* ---- tables ---- */

static __always_inline void *table(void *map)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(map, &zero);
}

/* The mapping that an address is in, by a search: its index, or -1. */
__noinline int walk_search_mapping(struct walk *walk, __u64 address)
{
    struct bpf_mapping *all = table(&mappings);
    if (!walk || !all)
        return -1;
    __u32 low = walk->first, high = walk->first + walk->mapping_count;
    for (int i = 0; i < 18 && low < high; i++) {
        __u32 middle = (low + high) / 2;
        __u32 at = middle;
        KEEP(at);
        at &= BPF_MAPPINGS_MAX - 1;
        if (address < all[at].start) {
            high = middle;
        } else if (address >= all[at].end) {
            low = middle + 1;
        } else {
            walk->other = walk->last;
            walk->last = at;
            return all[at].list == walk->list ? (int)at : -1;
        }
    }
    return -1;
}

/* Nearly always it is the same as a frame before, or the one before that. */
static __always_inline int find_mapping(struct walk *walk, const struct bpf_mapping *all,
                                        __u64 address)
{
    __u32 last = walk->last, other = walk->other;
    KEEP(last);
    last &= BPF_MAPPINGS_MAX - 1;
    if (all[last].list == walk->list && address >= all[last].start && address < all[last].end)
        return (int)last;
    KEEP(other);
    other &= BPF_MAPPINGS_MAX - 1;
    if (all[other].list == walk->list && address >= all[other].start && address < all[other].end) {
        walk->last = other;
        walk->other = last;
        return (int)other;
    }
    return walk_search_mapping(walk, address);
}

/* The number of the rule at a file's address, by the mapping of that number: what is below 0 is an
 * end of the walk. */
__noinline int walk_find_rule(struct walk *walk, __u32 number, __u64 address)
{
    struct bpf_mapping *all_mappings = table(&mappings);
    __u32 *all_pages = table(&directory), *used = table(&slots_used);
    struct unwind_row *rows = table(&pool);
    if (!walk || !all_mappings || !all_pages || !used || !rows)
        return -UNWIND_END_NO_TABLE;
    KEEP(number);
    const struct bpf_rows *found = &all_mappings[number & (BPF_MAPPINGS_MAX - 1)].rows;
    __u32 state = *(volatile unsigned int *)&found->state;
    if (state != BPF_SEGMENT_ROWS)
        return state == BPF_SEGMENT_NO_ROWS ? UNWIND_RULE_NONE : -UNWIND_END_NO_TABLE;
    __u64 page = (address >> UNWIND_PAGE_SHIFT) - found->first_page;
    if (page >= found->page_count)
        return UNWIND_RULE_NONE;
    __u32 at = found->directory + (__u32)page;
    KEEP(at);
    volatile __u32 *entry = &all_pages[at & (BPF_DIRECTORY_MAX - 1)];
    __u32 place = *entry, count = (place & BPF_GROUPS_MASK) * BPF_GROUP_ROWS;
    if (!count)
        return place == BPF_PAGE_NOT_LOADED ? -UNWIND_END_NO_TABLE : UNWIND_RULE_NONE;
    /* The last row that begins at or before the offset, without a branch that could be
     * mispredicted. A page's first row begins with it. */
    __u32 base = (place >> BPF_GROUPS_SHIFT) * BPF_GROUP_ROWS;
    __s32 offset = address & (UNWIND_PAGE_BYTES - 1);
    for (int i = 0; i < BPF_SLOT_SHIFT + 1 && count > 1; i++) {
        __u32 half = count / 2, row = base + half;
        KEEP(row);
        __s32 beyond = (offset - (__s32)rows[row & settings.row_mask].offset) >> 31; /* -1 or 0 */
        KEEP(beyond);
        base += half & ~(__u32)beyond;
        count -= half;
    }
    KEEP(base);
    int rule = rows[base & settings.row_mask].rule;
    if (*entry != place)
        return -UNWIND_END_NO_TABLE;
    if (walk->used) {
        __u32 slot = place >> (BPF_GROUPS_SHIFT + BPF_SLOT_SHIFT - 3);
        KEEP(slot);
        used[slot & (BPF_SLOTS_MAX - 1)] = walk->used;
    }
    return rule;
}

/* ---- a step ---- */

struct caller {
    __u64 ip, sp, fp, base;
    __u32 fp_known, base_known;
};

/* Otherwise an enum unwind_end. */
enum { STEP_DONE = -1, STEP_NATIVE = -2 /* a runtime's walk leaves it to the native one */ };

static __always_inline __u32 is_known(const struct walk *walk, __u32 number)
{
    return walk->known >> number & 1;
}

static __always_inline void become(struct walk *walk, const struct caller *caller)
{
    walk->value[REGISTER_IP] = caller->ip;
    walk->value[REGISTER_SP] = caller->sp;
    walk->value[REGISTER_FP] = caller->fp;
    walk->value[REGISTER_BASE] = caller->base;
    walk->known = 1u << REGISTER_IP | 1u << REGISTER_SP | caller->fp_known << REGISTER_FP |
                  caller->base_known << REGISTER_BASE;
}

static __always_inline int step_by_frame_pointer(struct walk *walk,
                                                 const struct bpf_mapping *all_mappings)
{
    /* Chains of frame pointers end with 0. It counts behind another frame of the chain: code that
     * has none uses the register, and words of the stack, for anything. */
    int may_end = walk->by_frame_pointer && walk->in_file;
    __u64 fp = walk->value[REGISTER_FP], sp = walk->value[REGISTER_SP];
    struct caller caller = {.fp_known = 1};
    if (may_end && is_known(walk, REGISTER_FP) && !fp)
        return UNWIND_END_COMPLETE;
    if (!is_known(walk, REGISTER_FP) || fp < sp || fp % 8 || fp > ~0ull - 16)
        return UNWIND_END_NO_ROWS;
    if (read_word(walk, fp, &caller.fp) || read_word(walk, fp + 8, &caller.ip))
        return fp - sp < (8u << 20) ? UNWIND_END_TRUNCATED : UNWIND_END_NO_ROWS;
    if (!caller.ip)
        return may_end ? UNWIND_END_COMPLETE : UNWIND_END_NO_ROWS;
    /* A chain that was good so far leads into code that was just mapped: the copy will tell. */
    if (find_mapping(walk, all_mappings, caller.ip - 1) < 0)
        return walk->by_frame_pointer ? UNWIND_END_NO_MAPPING : UNWIND_END_NO_ROWS;
    caller.sp = fp + 16;
    become(walk, &caller);
    walk->exact = 0;
    walk->by_frame_pointer = 1;
    return STEP_DONE;
}

static __always_inline int step_by_signal(struct walk *walk, const struct unwind_rule *rule)
{
    __u64 at = walk->value[REGISTER_SP] + (__s64)rule->cfa_offset;
    struct caller caller = {.fp_known = 1, .base_known = 1};
    if (read_word(walk, at - 40, &caller.fp) || read_word(walk, at - 32, &caller.base) ||
        read_word(walk, at, &caller.sp) || read_word(walk, at + 8, &caller.ip))
        return UNWIND_END_TRUNCATED;
    if (++walk->signal_frames > UNWIND_SIGNAL_FRAMES_MAX)
        return UNWIND_END_LOOP;
    become(walk, &caller);
    walk->exact = 1;
    walk->by_frame_pointer = 0;
    return STEP_DONE;
}

static __always_inline int find_cfa(struct walk *walk, const struct unwind_rule *rule,
                                    __u64 *ret_cfa)
{
    __s64 offset = rule->cfa_offset;
    __u64 sp = walk->value[REGISTER_SP], fp = walk->value[REGISTER_FP], word;
    __u32 cfa = rule->cfa, number = rule->argument;
    if (cfa == UNWIND_CFA_SP || cfa == UNWIND_CFA_IP_IN_REGISTER || cfa == UNWIND_CFA_CLONE) {
        *ret_cfa = sp + offset;
    } else if (cfa == UNWIND_CFA_FP || cfa == UNWIND_CFA_OTHER_STACK) {
        *ret_cfa = fp + offset;
        if (!is_known(walk, REGISTER_FP))
            return UNWIND_END_UNSUPPORTED;
    } else if (cfa == UNWIND_CFA_PLT) {
        *ret_cfa = sp + offset + ((walk->value[REGISTER_IP] & 15) >= number ? 8 : 0);
    } else if (cfa == UNWIND_CFA_REGISTER) {
        if (number >= UNWIND_REGISTERS || !is_known(walk, number))
            return UNWIND_END_UNSUPPORTED;
        *ret_cfa = walk->value[number] + offset;
    } else if (cfa == UNWIND_CFA_AT_SP || cfa == UNWIND_CFA_AT_FP) {
        if (cfa == UNWIND_CFA_AT_FP && !is_known(walk, REGISTER_FP))
            return UNWIND_END_UNSUPPORTED;
        if (read_word(walk, (cfa == UNWIND_CFA_AT_FP ? fp : sp) + offset, &word))
            return UNWIND_END_TRUNCATED;
        *ret_cfa = word + 8u * number;
    } else {
        return UNWIND_END_UNSUPPORTED;
    }
    return STEP_DONE;
}

static __always_inline int find_ip(struct walk *walk, const struct bpf_mapping *all_mappings,
                                   const struct unwind_rule *rule, struct caller *caller)
{
    __u64 sp = walk->value[REGISTER_SP];
    __u32 number = rule->argument;
    if (rule->cfa == UNWIND_CFA_IP_IN_REGISTER) {
        if (number >= UNWIND_REGISTERS || !is_known(walk, number))
            return UNWIND_END_UNSUPPORTED;
        caller->ip = walk->value[number];
        return caller->sp < sp ? UNWIND_END_LOOP : STEP_DONE;
    }
    if (rule->cfa == UNWIND_CFA_OTHER_STACK) {
        if (++walk->signal_frames > UNWIND_SIGNAL_FRAMES_MAX)
            return UNWIND_END_LOOP;
        return read_word(walk, caller->sp - 8, &caller->ip) ? UNWIND_END_TRUNCATED : STEP_DONE;
    }
    if (rule->cfa == UNWIND_CFA_CLONE) {
        int called = !read_word(walk, caller->sp - 8, &caller->ip) && caller->ip &&
                     find_mapping(walk, all_mappings, caller->ip - 1) >= 0;
        return called ? STEP_DONE : UNWIND_END_COMPLETE;
    }
    if (caller->sp <= sp)
        return UNWIND_END_LOOP;
    return read_word(walk, caller->sp - 8, &caller->ip) ? UNWIND_END_TRUNCATED : STEP_DONE;
}

static __always_inline int find_fp(struct walk *walk, const struct unwind_rule *rule,
                                   struct caller *caller)
{
    __u64 fp = walk->value[REGISTER_FP];
    __u32 where = UNWIND_SAVED_FP(rule->saved);
    __u64 slot = (__s64)rule->fp_slot * 8;
    caller->fp = fp;
    caller->fp_known = is_known(walk, REGISTER_FP);
    if (where == UNWIND_FP_SAME)
        return STEP_DONE;
    if (where == UNWIND_FP_AT_CFA) {
        slot += caller->sp;
    } else if (where == UNWIND_FP_AT_FP) {
        /* gcc says so an instruction too early and two too late, where fp is the caller's. */
        if (!caller->fp_known || fp >= caller->sp)
            return STEP_DONE;
        slot += fp;
    } else if (where == UNWIND_FP_AT_SP) {
        slot += walk->value[REGISTER_SP];
    } else {
        caller->fp_known = 0;
        return STEP_DONE;
    }
    if (!read_word(walk, slot, &caller->fp)) {
        caller->fp_known = 1;
        return STEP_DONE;
    }
    /* Below the stack pointer it was taken back, and is in the register again. */
    caller->fp = fp;
    return slot < walk->value[REGISTER_SP] ? STEP_DONE : UNWIND_END_TRUNCATED;
}

static __always_inline void find_base(struct walk *walk, const struct unwind_rule *rule,
                                      struct caller *caller)
{
    __u32 code = UNWIND_SAVED_BASE(rule->saved);
    __u64 slot = caller->sp - 8u * code;
    if (code == UNWIND_BASE_UNKNOWN)
        return;
    caller->base_known = code != UNWIND_BASE_SAME && !read_word(walk, slot, &caller->base);
    /* Still in the register or, as for fp, there again. */
    if (code == UNWIND_BASE_SAME || (!caller->base_known && slot < walk->value[REGISTER_SP])) {
        caller->base = walk->value[REGISTER_BASE];
        caller->base_known = is_known(walk, REGISTER_BASE);
    }
}

static __always_inline int apply(struct walk *walk, const struct bpf_mapping *all_mappings,
                                 const struct unwind_rule *rule)
{
    struct caller caller = {0};
    if (rule->cfa == UNWIND_CFA_NONE)
        return step_by_frame_pointer(walk, all_mappings);
    if (rule->cfa == UNWIND_CFA_LOST)
        return UNWIND_END_NO_ROWS;
    if (rule->cfa == UNWIND_CFA_END)
        return UNWIND_END_COMPLETE;
    if (rule->cfa == UNWIND_CFA_SIGNAL)
        return step_by_signal(walk, rule);
    int r = find_cfa(walk, rule, &caller.sp);
    if (r == STEP_DONE)
        r = find_ip(walk, all_mappings, rule, &caller);
    if (r == STEP_DONE)
        r = find_fp(walk, rule, &caller);
    if (r != STEP_DONE)
        return r;
    if (!caller.ip)
        return UNWIND_END_COMPLETE;
    find_base(walk, rule, &caller);
    become(walk, &caller);
    walk->exact = 0;
    walk->by_frame_pointer = 0;
    return STEP_DONE;
}

static __always_inline __u64 mix(__u64 hash, __u64 word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

static __always_inline void add_frame(struct walk *walk, __u64 frame)
{
    __u32 at = walk->count - 1;
    if (!walk->count) {
        walk->leaf = frame;
    } else {
        KEEP(at);
        walk->frames[at & (BPF_FRAMES_MAX - 1)] = frame;
        walk->hash = mix(walk->hash, frame);
    }
    walk->count++;
}

#include "bpf/runtimes/runtime.bpf.h"

#include "bpf/runtimes/evaluation.bpf.h"
#include "bpf/runtimes/hotspot.bpf.h"
#include "bpf/runtimes/v8.bpf.h"

/* ---- steps that were taken before ---- */

#define STEP_FACTOR 0x9e3779b97f4a7c15ull

/* Where the step at a return address would be; NULL where it can't be one that is known. Walks that
 * note which rows are in use look at these, and so do those through interpreters. */
static __always_inline struct walk_step *step_place(const struct walk *walk, __u64 ip)
{
    struct walk_step *all =
        walk->exact || walk->used || walk->runtime || !walk->count ? NULL : table(&steps);
    __u64 page =
        ((ip >> BPF_STEPS_CODE_SHIFT) + walk->list) * STEP_FACTOR >> (64 - BPF_STEPS_PAGES_SHIFT);
    __u64 place = page * BPF_STEPS_PAGE + (ip * STEP_FACTOR >> 32) % BPF_STEPS_PAGE;
    KEEP(place);
    return all ? &all[place & (BPF_STEPS_MAX - 1)] : NULL;
}

static __always_inline __u64 step_check(const struct walk *walk, __u64 ip, __u64 frame, __u32 rule)
{
    return (((ip * 31 + frame) * 31 + rule) * STEP_FACTOR + (__u64)walk->list * 65599) << 16 | rule;
}

/* The number of its rule; 0: the step is not known. */
static __always_inline __u32 recall_step(const struct walk *walk, const struct walk_step *step,
                                         __u64 ip, __u64 *ret_frame)
{
    if (!step)
        return 0;
    __u64 frame = *(volatile const __u64 *)&step->frame;
    __u64 check = *(volatile const __u64 *)&step->check;
    __u32 rule = check & 0xffff;
    *ret_frame = frame;
    return check == step_check(walk, ip, frame, rule) ? rule : 0;
}

static __always_inline void note_step(const struct walk *walk, struct walk_step *step, __u64 ip,
                                      __u64 frame, __u32 rule)
{
    *(volatile __u64 *)&step->frame = frame;
    *(volatile __u64 *)&step->check = step_check(walk, ip, frame, rule);
}

/* Adds the frame that the registers are in, and goes on to its caller. */
__noinline int walk_step(struct walk *walk)
{
    struct bpf_mapping *all_mappings = table(&mappings);
    struct unwind_rule *all_rules = table(&rules);
    if (!walk || !all_mappings || !all_rules)
        return UNWIND_END_NO_TABLE;
    __u64 ip = walk->value[REGISTER_IP], frame = 0;
    struct walk_step *step = step_place(walk, ip);
    __u32 known = recall_step(walk, step, ip, &frame);
    if (known && walk->count <= BPF_FRAMES_MAX) {
        walk->in_file = 1;
        add_frame(walk, frame);
        return apply(walk, all_mappings, &all_rules[known & (BPF_RULES_MAX - 1)]);
    }
    __u32 behind = !walk->exact || (!walk->count && walk->in_system_call);
    __u64 lookup = ip - (behind ? 1 : 0);
    int at = find_mapping(walk, all_mappings, lookup);
    if (at < 0 && walk->count)
        return UNWIND_END_NO_MAPPING;
    if (walk->count > BPF_FRAMES_MAX)
        return UNWIND_END_LIMIT;
    if (at < 0) {
        add_frame(walk, BPF_FRAME_RAW | ip);
        return UNWIND_END_NO_MAPPING;
    }
    const struct bpf_mapping *mapping = &all_mappings[at & (BPF_MAPPINGS_MAX - 1)];
    __u32 segment = mapping->segment;
    walk->in_file = segment != 0;
    int number =
        segment ? walk_find_rule(walk, (__u32)at, lookup - mapping->bias) : UNWIND_RULE_NONE;
    __u32 back = !walk->exact;
    /* The first function of a coroutine: its start, with no code right before it, was planted as a
     * return address, and behind it is nothing. */
    if (number == UNWIND_RULE_NONE && back && segment &&
        walk_find_rule(walk, (__u32)at, ip - mapping->bias) > UNWIND_RULE_NONE) {
        number = UNWIND_RULE_END;
        back = 0;
    }
    if (number >= BPF_RULES_MAX)
        number = UNWIND_RULE_UNSUPPORTED;
    const struct unwind_rule *rule = &all_rules[number & (BPF_RULES_MAX - 1)];
    /* The call is meant, not what is behind it; but a signal's trampoline is never called. */
    if (number > 0 && rule->cfa == UNWIND_CFA_SIGNAL)
        back = 0;
    frame = segment ? (__u64)segment << BPF_FRAME_SEGMENT_SHIFT |
                          ((ip - back - mapping->offset) & BPF_FRAME_OFFSET_MASK)
                    : BPF_FRAME_RAW | (ip - back);
    /* After all of the mapping has been read: it was this list's if it still is. */
    if (*(volatile unsigned int *)&mapping->list != walk->list)
        return UNWIND_END_NO_TABLE;
    __u64 low = walk->value[REGISTER_SP];
    int evaluates = segment && number >= 0 && evaluates_at(walk, lookup);
    /* V8's own code around a function says nothing, but for what runs now. */
    int script = number == UNWIND_RULE_NONE && walk->v8.present && v8_find(walk);
    int hidden = script && (!segment || (walk->count && !settings.interpreter));
    if (!evaluates && !hidden && !evaluation_hides(walk, segment, lookup))
        add_frame(walk, frame);
    if (script)
        add_frame(walk, walk->v8.word);
    if (step && number > UNWIND_RULE_UNSUPPORTED)
        note_step(walk, step, ip, frame, (__u32)number);
    int r = number < 0 ? -number : apply(walk, all_mappings, rule);
    return evaluates ? begin_evaluation(walk, mapping, low, r) : r;
}

/* False when the walk has ended. */
static __always_inline int walk_turn(struct walk *walk)
{
    int r = STEP_NATIVE;
    if (walk->evaluation.pending)
        r = evaluation_step(walk);
    else if (hotspot_covers(walk))
        r = hotspot_step(walk);
    if (r == STEP_NATIVE)
        r = walk_step(walk);
    if (r == STEP_DONE)
        return 1;
    walk->end = (__u32)r;
    return 0;
}

static long walk_again(__u32 index, void *context)
{
    struct walk **walk = context;
    return !walk_turn(*walk);
}

/* Kernels before 5.17 have no bpf_loop. The verifier follows each turn of a plain loop, so it looks
 * at some turns at once, in a function of its own. Whichever of the two ways isn't used is known to
 * be dead when the program is loaded, so it may call what the kernel doesn't have. */
#define HAS_LOOP                                                                                   \
    (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop) && !settings.plain_loops)
#define TURNS_AT_ONCE 64

__noinline int walk_some(struct walk *walk)
{
    if (!walk)
        return 0;
    for (__u32 i = 0; i < TURNS_AT_ONCE; i++)
        if (!walk_turn(walk))
            return 0;
    return 1;
}

/* ---- for programs ---- */

/* Slots are marked as used by one walk in so many: each mark is a line of the cache. */
#define USED_EVERY 8

/* Which program of which process this is: another process with the same pid was started at another
 * time, and each program that a process executes has another number. */
static __always_inline __u64 program_of(const struct task_struct *leader)
{
    return leader->start_time + leader->self_exec_id;
}

static __always_inline __u64 process_started(void)
{
    return program_of(bpf_get_current_task_btf()->group_leader);
}

/* False when nothing is known of the process. */

static __always_inline int walk_begin(struct walk *walk, __u32 pid, __u64 time_ns)
{
    struct bpf_process *process = bpf_map_lookup_elem(&processes, &pid);
    walk->known = REGISTERS_ALL;
    walk->count = 0;
    walk->hash = 0;
    walk->leaf = 0;
    walk->end = UNWIND_END_NO_TABLE;
    walk->exact = 1;
    walk->by_frame_pointer = 0;
    walk->signal_frames = 0;
    walk->window_address = 0;
    walk->window_length = 0;
    walk->used = 0;
    walk->list = 0;
    walk->runtime = 0;
    walk->context = 0;
    walk->v8.present = 0;
    if (!process)
        return 0;
    /* Ends of processes are not always followed, and user space may be late: the pid may be another
     * one's by now, or have executed another program. */
    if (process->started && process->started != process_started())
        return 0;
    if ((time_ns >> 12) % USED_EVERY == 0)
        walk->used = (__u32)(time_ns >> BPF_USED_SHIFT) | 1;
    walk->first = process->first;
    walk->last = process->hint;
    walk->other = process->first;
    walk->mapping_count = process->count;
    walk->list = process->list;
    walk->runtime = process->runtime;
    walk->context = process->context;
    evaluation_begin(walk);
    hotspot_begin(walk);
    walk->v8.present = runtime_of(walk, BPF_RUNTIME_V8) != NULL;
    walk->v8.map = 0;
    /* Walks of one process mostly begin where the last one did. */
    struct bpf_mapping *all = table(&mappings);
    int at = all ? find_mapping(walk, all, walk->value[REGISTER_IP]) : -1;
    if (at >= 0 && process->hint != (__u32)at)
        process->hint = (__u32)at;
    return 1;
}

static __always_inline void walk_run(struct walk *walk)
{
    walk->end = UNWIND_END_LIMIT;
    /* More turns than frames: calls between an interpreter's functions are walked and not kept. */
    if (HAS_LOOP) {
        bpf_loop(5 * BPF_FRAMES_MAX, walk_again, &walk, 0);
    } else {
        for (__u32 i = 0; i < 5 * BPF_FRAMES_MAX / TURNS_AT_ONCE; i++)
            if (!walk_some(walk))
                break;
    }
    if (walk->hash)
        walk->hash = mix(walk->hash, walk->end + 1);
}
