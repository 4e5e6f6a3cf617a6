/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the program of sampled events and user space: `id` of a sample is the number of its
 * event, `value` how many events it stands for. */
#pragma once

#include "bpf/shared.h"

#define BPF_SAMPLED_EVENTS_MAX 8

/* The cookie of an attached event is its number, with this where the program chooses samples. */
#define BPF_EVENT_CHOSEN_HERE 256

/* Of one software event on one CPU, in the map event_paces. */
struct bpf_event_pace {
    unsigned long long passed;    /* events since the last sample */
    unsigned long long next;      /* how many make the next one */
    unsigned long long sample_ns; /* when the last one was */
};

struct bpf_event_settings {
    unsigned long long gap_ns; /* between two samples of an event on a CPU */
};
