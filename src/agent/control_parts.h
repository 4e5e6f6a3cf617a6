/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the agent's control. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "agent/agent.h"
#include "agent/control.h"
#include "http/client/client.h"

#define CONTROL_JOBS_MAX 8
#define CONTROL_ID_BYTES 65

/* ---- recordings ---- */

/* As an order of the server's says it. */
struct recording_order {
    char id[24], name[65], service[257], state[16];
    uint64_t rate_hz, seconds;
    bool stop;
};

enum job_state { JOB_NONE, JOB_RUNNING, JOB_UPLOADING, JOB_DONE, JOB_REFUSED, JOB_FAILED };

struct recording_job {
    struct agent_control *control;
    struct recording_order order;
    struct targets targets; /* of its own: captures number processes for themselves */
    struct capture_loss losses[CAPTURE_LOSSES_MAX]; /* until its last window */
    size_t loss_count;
    int64_t bpf_ns;
    pthread_t thread;
    bool has_thread;
    atomic_bool stop;
    bool listed; /* among the last orders */
    /* Under the control's lock. */
    enum job_state state;
    char reason[256];
    uint64_t samples;
};

/* ---- all of it ---- */

struct agent_control {
    struct agent *agent;
    char id[CONTROL_ID_BYTES];
    char *state_path;

    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t wake;
    bool by_signal, by_file, by_server;
    char server_reason[257];
    struct sampling_order sampling; /* that the server wants */
    bool is_off;                    /* as the capturing thread has it */
    bool urgent;                    /* something has changed that the server wants to know */
    bool ends;
    struct recording_job jobs[CONTROL_JOBS_MAX];

    /* The thread's. */
    pthread_t thread;
    bool started;
    struct http_client *client; /* another one after its token was replaced; see `lock` */
    char *report_url, *orders_url;
    char version[80]; /* of the orders that are known, as an If-None-Match header */
    int64_t reported_ns;
    unsigned failures; /* in a row */
};

/* Writes the state to disk; the lock is held. Failures are logged. */
void control_state_save(struct agent_control *control);
int control_state_load(struct agent_control *control, struct error *error);

/* The server's word on capture. */
void control_server_says(struct agent_control *control, bool off, const char *reason);
/* Its order for rates and collectors; one that isn't `given` ends the last. */
void control_server_samples(struct agent_control *control, const struct sampling_order *order);

/* ---- control_link.c ---- */

int control_link_start(struct agent_control *control, struct error *error);
void control_link_stop(struct agent_control *control);
/* The body of a report. */
void control_write_report(struct agent_control *control, struct buffer *out);
/* Does what an answer says: never fails, but may find nothing in it to do. */
int control_take_orders(struct agent_control *control, const char *text, size_t length,
                        struct error *error);

/* ---- control_recording.c; for the link's thread ---- */

#define RECORDING_PIDS_MAX 1024

/* Up to RECORDING_PIDS_MAX processes of the job's service. A process is looked for several times:
 * one that has just started another program has no environment for a moment, and a service can
 * consist of short-lived processes. Fails with -ESRCH. */
int recording_find_pids(struct recording_job *job, pid_t *pids, size_t *ret_count,
                        struct error *error);

const char *job_state_name(enum job_state state);
void jobs_apply(struct agent_control *control, const struct recording_order *orders, size_t count);
void jobs_stop(struct agent_control *control);
/* ,"recordings":[...] */
void jobs_write(struct agent_control *control, struct json_writer *json);
