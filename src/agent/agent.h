/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: samples what runs on this host, ten seconds at a time, and has each window sent to a
 * server. The caller's thread captures and labels, one makes requests of windows, one sends them,
 * one sends symbols that the server asks for, one answers on the status socket.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "agent/control.h"
#include "agent/encoder.h"
#include "agent/guard/guard.h"
#include "agent/guard/watchdog.h"
#include "agent/levels.h"
#include "agent/naming.h"
#include "agent/sampling.h"
#include "agent/send/spool.h"
#include "agent/send/upload.h"
#include "agent/settings/settings.h"
#include "agent/symbols.h"
#include "agent/targets.h"
#include "agent/window.h"
#include "capture/capture.h"

/* Cost of the agent, measured once a second. */
struct agent_cost {
    int64_t cpu_ns; /* of this process, since it began */
    int64_t bpf_ns; /* of its BPF programs; -1: not known */
    uint64_t resident_bytes;
    double cpu_share; /* both, over the last second, of one CPU */
};

/* A copy of the state, for other threads. */
struct agent_stats {
    struct capture_stats capture; /* of all captures so far */
    struct capture_loss losses[CAPTURE_LOSSES_MAX];
    size_t loss_count;
    enum capture_backend backend; /* of the last one; CAPTURE_ANY: there was none */
    struct agent_cost cost;
    unsigned rate_hz;
    bool paused;
    int64_t rest_ns; /* in which nothing was sampled, since the guard wanted so */
    uint64_t targets, targets_dropped;
    uint64_t pod_containers; /* on the list of pods */
    struct encoder_stats encoder;
    struct capture_cost collectors[CAPTURE_COLLECTORS_MAX]; /* "cpu" first */
    size_t collector_count;
    struct guard_stats guard;
    char guard_why[GUARD_TEXT_BYTES]; /* of its last step down */
    struct sampling sampling;
    char sampling_text[SAMPLING_TEXT_BYTES];
    struct namer_stats names;
    struct capture_excess excess[CAPTURE_EXCESS_MAX]; /* who is not followed as others are */
    size_t excess_count;
};

struct agent {
    struct agent_settings *settings;
    struct targets targets;
    struct capture *capture; /* NULL: the switch is off (control.h) */
    struct agent_control *control;
    struct namer *namer;
    struct encoder *encoder;
    struct spool *spool;
    struct uploader *uploader;
    struct agent_symbols *symbols; /* NULL: none are sent */
    struct http_server *http;
    struct watchdog *watchdog;
    int measuring; /* has the kernel measure BPF programs; -1: it doesn't */
    char shortcoming[ERROR_TEXT_BYTES + 64]; /* of the capture; "": none */

    /* The capturing thread's. */
    struct window *window;
    int64_t window_end_ns;   /* by the wall clock */
    int64_t window_began_ns; /* by the steady one */
    struct agent_stats last; /* at the end of the last window */
    int64_t ticked_ns;
    struct sampling sampling;    /* without the guard */
    struct sampling_order order; /* the server's, that it comes from */
    char sampling_text[SAMPLING_TEXT_BYTES];
    unsigned loaded_modes; /* that the capture was asked for */
    unsigned rate_hz;
    unsigned collector_hz[CAPTURE_COLLECTORS_MAX]; /* of each collector; 0: off */
    bool paused;
    int64_t window_rest_ns; /* of the window, in which nothing was sampled */
    bool silent;            /* the capture is paused, for that or because the guard wants a rest */
    struct guard guard;
    char guard_why[GUARD_TEXT_BYTES];
    bool narrowed;                   /* to the busiest processes */
    int64_t chosen_ns;               /* when they were, or everybody was; 0: not yet */
    struct agent_stats ended;        /* of captures that the switch ended: capture and losses */
    int64_t retry_ns;                /* when capture is tried again that couldn't be turned on */
    int64_t switch_ns;               /* when the switch was last looked at; 0: never */
    atomic_bool off;                 /* the switch is */
    _Atomic int64_t recorded_bpf_ns; /* of recordings' BPF programs, until their last windows */

    atomic_bool stopping;
    pthread_mutex_t lock; /* over what follows */
    struct agent_stats stats;
    struct levels levels;
    struct target_service *services; /* processes that were sampled in the last window */
    size_t service_count, service_capacity;
};

/* Reads the settings again, for SIGHUP; says on stderr what is wrong with them, and returns 0 or a
 * negative code. */
typedef int (*agent_reload_fn)(void *context, struct agent_settings *ret_settings);

/* Settings stay the caller's and outlive it. When it returns 0, samples are taken. */
int agent_start(struct agent_settings *settings, struct agent **ret_agent, struct error *error);
/* Waits at most `grace_ms` until the samples are sent. Takes NULL. */
void agent_stop(struct agent *agent, unsigned grace_ms);

/* Captures until agent_interrupt() is called. `reload` may be NULL. */
int agent_run(struct agent *agent, agent_reload_fn reload, void *context, struct error *error);
void agent_interrupt(struct agent *agent); /* from any thread, and from signals' handlers */

/* The capturing thread's: no samples for a while. */
int agent_pause(struct agent *agent, bool pause, struct error *error);

struct agent_stats agent_stats(struct agent *agent);

/* ---- capture_host.c ---- */

/* How much of one CPU may go into what is learned once: names, or unwind rows. */
double agent_learning_share(const struct agent_settings *settings);

/* The most that can be looked at here: the host, or else the processes of this user. */
int agent_capture_new(const struct agent_settings *settings, const struct sampling *sampling,
                      struct targets *targets, struct capture **ret_capture, struct error *error);

/* ---- guard_apply.c: the capturing thread's, as agent_pause() is ---- */

void agent_guard_start(struct agent *agent);
/* Once a second, after the cost was measured. */
int agent_guard_tick(struct agent *agent, int64_t now_ns, struct error *error);
/* A new capture is as the guard wants it. */
int agent_guard_attach(struct agent *agent, struct error *error);
/* Other rates or collectors are wanted. */
int agent_guard_follow(struct agent *agent, struct error *error);
/* Says in a new window what of it is sampled, where that is not everything. */
void agent_guard_note(const struct agent *agent, struct window *window);

/* ---- status.c ---- */

/* Serves /status and /metrics at settings->status; nowhere when that is "". */
int agent_status_start(struct agent *agent, struct error *error);
/* Writes the contents of /status. */
void agent_status_json(struct agent *agent, struct buffer *out);
