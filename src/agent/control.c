// SPDX-License-Identifier: Apache-2.0
// The switch: combines the states that signals, a file and the server set for capture. See
// control.h.

#include "agent/control.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/control_parts.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"

#define STATE_FILE "control"
#define STATE_BYTES_MAX 4096

/* The last signal that is not handled yet: a signal handler can't do more. */
static _Atomic int signalled;
static atomic_bool hung_up;

static void note_signal(int number)
{
    if (number == SIGHUP)
        atomic_store(&hung_up, true);
    else
        atomic_store(&signalled, number);
}

void agent_control_catch_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* ---- saved state ---- */

/* The host's name, so that people recognise it, and something that no other host has. */
static void make_id(char id[CONTROL_ID_BYTES])
{
    char host[40] = "";
    gethostname(host, sizeof(host) - 1);
    for (char *at = host; *at; at++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-.", *at))
            *at = '-';
    snprintf(id, CONTROL_ID_BYTES, "%s-%08" PRIx32, *host ? host : "host", (uint32_t)random_bits());
}

void control_state_save(struct agent_control *control)
{
    struct buffer text = {0};
    struct error error = {0};
    buffer_printf(&text, "agent %s\n", control->id);
    if (control->by_signal)
        buffer_add_text(&text, "off signal\n");
    if (control->by_server)
        buffer_printf(&text, "off server %s\n", control->server_reason);
    if (control->sampling.given)
        buffer_printf(&text, "sampling %u %s %u %s\n", control->sampling.rate_hz,
                      !control->sampling.has_wall ? "-"
                      : control->sampling.wall    ? "on"
                                                  : "off",
                      control->sampling.wall_rate_hz, control->sampling.reason);
    if (file_write_atomic(control->state_path, text.data, text.length, &error) < 0)
        log_warning("Failed to store the capture state, which a restart of the agent will lose: %s",
                    error.text);
    buffer_release(&text);
}

/* A line that isn't one of ours is no order. */
static void read_sampling(struct sampling_order *order, const char *line, size_t length)
{
    struct sampling_order read = {.given = true};
    char text[SAMPLING_REASON_BYTES + 64], wall[4];
    int used = 0;
    snprintf(text, sizeof(text), "%.*s", (int)length, line);
    if (sscanf(text, "sampling %u %3s %u%n", &read.rate_hz, wall, &read.wall_rate_hz, &used) != 3 ||
        !used || read.rate_hz > AGENT_RATE_MAX || read.wall_rate_hz > AGENT_RATE_MAX)
        return;
    read.has_wall = strcmp(wall, "-") != 0;
    read.wall = !strcmp(wall, "on");
    snprintf(read.reason, sizeof(read.reason), "%s", text[used] ? text + used + 1 : "");
    *order = read;
}

static void read_line(struct agent_control *control, const char *line, size_t length)
{
    static const char agent[] = "agent ", server[] = "off server", sampling[] = "sampling ";
    if (length > strlen(agent) && !strncmp(line, agent, strlen(agent))) {
        snprintf(control->id, sizeof(control->id), "%.*s", (int)(length - strlen(agent)),
                 line + strlen(agent));
    } else if (length == strlen("off signal") && !strncmp(line, "off signal", length)) {
        control->by_signal = true;
    } else if (length > strlen(sampling) && !strncmp(line, sampling, strlen(sampling))) {
        read_sampling(&control->sampling, line, length);
    } else if (length >= strlen(server) && !strncmp(line, server, strlen(server))) {
        control->by_server = true;
        size_t skip = MIN(strlen(server) + 1, length);
        snprintf(control->server_reason, sizeof(control->server_reason), "%.*s",
                 (int)(length - skip), line + skip);
    }
}

int control_state_load(struct agent_control *control, struct error *error)
{
    _cleanup_buffer_ struct buffer text = {0};
    if (access(control->state_path, F_OK) == 0) {
        int r = file_read(control->state_path, STATE_BYTES_MAX, &text, error);
        if (r < 0)
            return r;
    }
    for (size_t at = 0; at < text.length;) {
        const char *line = text.data + at;
        const char *end = memchr(line, '\n', text.length - at);
        size_t length = end ? (size_t)(end - line) : text.length - at;
        read_line(control, line, length);
        at += length + 1;
    }
    if (!*control->id) {
        make_id(control->id);
        control_state_save(control);
    }
    return 0;
}

/* ---- the switch ---- */

static void look_around(struct agent_control *control)
{
    const char *file = control->agent->settings->off_file;
    int number = atomic_exchange(&signalled, 0);
    control->by_file = file && *file && access(file, F_OK) == 0;
    if (number && control->by_signal != (number == SIGUSR1)) {
        control->by_signal = number == SIGUSR1;
        control_state_save(control);
    }
}

bool agent_control_off(struct agent_control *control)
{
    pthread_mutex_lock(&control->lock);
    look_around(control);
    bool off = control->by_signal || control->by_file || control->by_server;
    pthread_mutex_unlock(&control->lock);
    return off;
}

static void write_reason(const struct agent_control *control,
                         char reason[AGENT_CONTROL_REASON_BYTES])
{
    *reason = 0;
    if (control->by_file)
        snprintf(reason, AGENT_CONTROL_REASON_BYTES, "the file %s exists",
                 control->agent->settings->off_file);
    else if (control->by_signal)
        snprintf(reason, AGENT_CONTROL_REASON_BYTES,
                 "turned off by a signal (SIGUSR2 turns it on)");
    else if (control->by_server)
        snprintf(reason, AGENT_CONTROL_REASON_BYTES, "turned off by the server%s%s",
                 *control->server_reason ? ": " : "", control->server_reason);
    else if (control->is_off)
        snprintf(reason, AGENT_CONTROL_REASON_BYTES, "failed to turn it on; see the log");
}

void agent_control_reason(struct agent_control *control,
                          char ret_reason[AGENT_CONTROL_REASON_BYTES])
{
    pthread_mutex_lock(&control->lock);
    write_reason(control, ret_reason);
    pthread_mutex_unlock(&control->lock);
}

void agent_control_switched(struct agent_control *control, bool off)
{
    char reason[AGENT_CONTROL_REASON_BYTES];
    pthread_mutex_lock(&control->lock);
    bool changed = control->is_off != off;
    control->is_off = off;
    /* Usually nothing has changed: this runs many times a second. */
    if (changed) {
        control->urgent = true;
        pthread_cond_broadcast(&control->wake);
        write_reason(control, reason);
    }
    pthread_mutex_unlock(&control->lock);
    if (changed && off)
        log_info("Capture is off: %s.", reason);
    else if (changed)
        log_info("Capture is on.");
}

/* So that nothing in a reason becomes another line of the file. */
static void clean_text(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ')
            *text = ' ';
}

bool agent_control_reload(void)
{
    return atomic_exchange(&hung_up, false);
}

void agent_control_sampling(struct agent_control *control, struct sampling_order *ret_order)
{
    pthread_mutex_lock(&control->lock);
    *ret_order = control->sampling;
    pthread_mutex_unlock(&control->lock);
}

void control_server_samples(struct agent_control *control, const struct sampling_order *order)
{
    struct sampling_order clean = *order;
    clean_text(clean.reason);
    pthread_mutex_lock(&control->lock);
    const struct sampling_order *now = &control->sampling;
    bool same = now->given == clean.given && now->rate_hz == clean.rate_hz &&
                now->wall_rate_hz == clean.wall_rate_hz && now->has_wall == clean.has_wall &&
                now->wall == clean.wall && !strcmp(now->reason, clean.reason);
    if (!same) {
        control->sampling = clean;
        control_state_save(control);
    }
    pthread_mutex_unlock(&control->lock);
}

void control_server_says(struct agent_control *control, bool off, const char *reason)
{
    char clean[sizeof(control->server_reason)];
    snprintf(clean, sizeof(clean), "%s", off ? reason : "");
    clean_text(clean);
    pthread_mutex_lock(&control->lock);
    if (control->by_server != off || strcmp(control->server_reason, clean)) {
        control->by_server = off;
        memcpy(control->server_reason, clean, sizeof(clean));
        control_state_save(control);
    }
    pthread_mutex_unlock(&control->lock);
}

const char *agent_control_id(const struct agent_control *control)
{
    return control->id;
}

void agent_control_urge(struct agent_control *control)
{
    pthread_mutex_lock(&control->lock);
    control->urgent = true;
    pthread_cond_broadcast(&control->wake);
    pthread_mutex_unlock(&control->lock);
}

void agent_control_write(struct agent_control *control, struct json_writer *json)
{
    const struct agent_settings *settings = control->agent->settings;
    char reason[AGENT_CONTROL_REASON_BYTES];
    pthread_mutex_lock(&control->lock);
    write_reason(control, reason);
    bool off = control->is_off;
    pthread_mutex_unlock(&control->lock);
    json_member_text(json, "agent", control->id);
    json_member_text(json, "capture", off ? "off" : "on");
    json_member_text(json, "capture_reason", reason);
    json_write_key(json, "recordings");
    json_write_object(json);
    json_member_bool(json, "allowed", settings->recordings);
    json_member_unsigned(json, "rate_max", settings->recording_rate_max);
    json_member_unsigned(json, "seconds_max", settings->recording_seconds_max);
    json_member_unsigned(json, "at_once_max", settings->recordings_max);
    json_write_object_end(json);
}

/* ---- lifecycle ---- */

int agent_control_open(struct agent *agent, struct agent_control **ret_control, struct error *error)
{
    struct agent_control *control = memory_zalloc(1, sizeof(*control));
    struct buffer path = {0};
    control->agent = agent;
    buffer_printf(&path, "%s/" STATE_FILE, agent->settings->data);
    buffer_text(&path);
    control->state_path = path.data;
    pthread_mutex_init(&control->lock, NULL);
    pthread_cond_init(&control->wake, NULL);
    int r = control_state_load(control, error);
    if (r < 0) {
        agent_control_free(control);
        return r;
    }
    *ret_control = control;
    return 0;
}

int agent_control_start(struct agent_control *control, struct error *error)
{
    return control_link_start(control, error);
}

void agent_control_stop(struct agent_control *control)
{
    if (control)
        control_link_stop(control);
}

void agent_control_free(struct agent_control *control)
{
    if (!control)
        return;
    http_client_free(control->client);
    pthread_mutex_destroy(&control->lock);
    pthread_cond_destroy(&control->wake);
    free(control->state_path);
    free(control->report_url);
    free(control->orders_url);
    free(control);
}
