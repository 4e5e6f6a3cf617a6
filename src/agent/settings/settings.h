/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration of the agent: from flags and a YAML file (docs/agent.md has the keys). */
#pragma once

#include "base/error.h"
#include "config/settings.h"
#include "label/glob.h"
#include "label/labels.h"
#include "label/rules/rules.h"

#define AGENT_RATE_DEFAULT 19
#define AGENT_RATE_MAX 999
#define AGENT_ORDERED_RATE_MAX 99 /* of the server's orders, by default */
#define AGENT_WINDOW_NS 10000000000ll
#define AGENT_RULES_MAX 1000
#define AGENT_OFF_FILE "/run/assay/off"
#define AGENT_RECORDING_SECONDS 300 /* of one recording, unless the settings say otherwise */
#define AGENT_VARIABLES_MAX 32      /* of the environment that one rule looks at */

/* Which processes: all conditions that are given have to hold; of a list, one entry. */
struct target_match {
    struct globs names, exes, cgroups, users, containers;
    struct {
        char *name;    /* as a label: "__meta_env_NAME" */
        char *pattern; /* of the value */
    } variables[AGENT_VARIABLES_MAX];
    size_t variable_count;
};

struct target_rule {
    struct target_match match;
    struct labels labels; /* of the processes that match; an empty set with `drop` */
    bool drop;            /* they are not sampled */
};

enum agent_symbolize { SYMBOLIZE_SERVER, SYMBOLIZE_HOST };

/* The part of a requested file to upload: symbols, all of it, nothing. */
enum agent_symbols_sent { SYMBOLS_DEBUG, SYMBOLS_WHOLE, SYMBOLS_NONE };

struct agent_settings {
    /* Texts are this struct's own. */
    char *server_url; /* NULL: not given */
    char *token_file, *ca_file, *certificate_file, *key_file;
    char *proxy;           /* NULL: no proxy, also if the environment has one */
    char *pod_labels_file; /* of a downward volume, of the agent's own pod; NULL: none */
    /* Where names of pods come from: see struct pods_options. All URLs NULL: pods have ids only. */
    char *kubelet, *api_server, *kubelet_read_only, *node;
    char *pods_token_file, *pods_ca_file;
    bool pods_insecure;
    char *data;   /* directory of the spool */
    char *status; /* where to listen: "unix:PATH"; "" for nowhere */

    uint64_t rate_hz;
    bool wall;               /* wall-clock time by state, where the kernel can measure it */
    uint64_t wall_rate_hz;   /* waits with their stacks, per second and CPU */
    bool faults;             /* growth of resident memory, where BPF is available */
    bool rss;                /* resident memory, likewise, */
    int64_t rss_interval_ns; /* so often */
    bool heap;               /* of processes that have memory probes, where BPF is available */
    bool sampling_allowed;   /* the server may change these three, up to: */
    uint64_t sampling_rate_max, sampling_wall_rate_max;
    bool kernel_frames;
    bool interpreter_frames; /* native frames of interpreters too */
    uint64_t unwind_pool_bytes;
    unsigned symbolize; /* enum agent_symbolize */
    unsigned symbols;   /* enum agent_symbols_sent */
    uint64_t symbols_file_bytes;
    uint64_t spool_bytes;
    int64_t spool_age_ns;
    unsigned compression; /* enum upload_compression */
    unsigned protocol;    /* enum upload_protocol */
    uint64_t catch_up;    /* how many times as fast as windows come a backlog may go out */

    double budget_cpu_percent; /* of all CPUs of the host together */
    uint64_t budget_memory_bytes;
    uint64_t budget_upload_bytes;  /* in a minute */
    uint64_t budget_symbols_bytes; /* in a minute, beside those */
    int64_t budget_patience_ns;    /* until what was taken away may come back */
    int64_t watchdog_ns;           /* 0: none */
    char *user;                    /* the user to run as; NULL: no change */
    bool confine;                  /* privileges are given up, system calls filtered */

    char *off_file;  /* while it is there, nothing is captured; NULL: no such file */
    bool recordings; /* that the server asks for are made, within: */
    uint64_t recording_rate_max, recording_seconds_max, recordings_max;

    struct labels external_labels; /* of everything: host, region, instance, ... */
    struct globs variables;        /* of the environment that may be looked at */
    struct target_match *select;   /* none: all processes */
    size_t select_count, select_capacity;
    struct target_rule *rules; /* the first that matches counts */
    size_t rule_count, rule_capacity;
    struct label_rules label_rules;
    bool has_label_rules;
};

void agent_settings_release(struct agent_settings *settings);

/* Defaults, then the values of the file. Adds its problems to `problems`. `root` may be NULL. */
void agent_settings_read(struct agent_settings *settings, const struct yaml_node *root,
                         struct problems *problems);

/* Whether the process that these facts are of is meant. */
struct process_facts;
bool target_matches(const struct target_match *match, const struct process_facts *facts);
