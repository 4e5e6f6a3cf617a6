// SPDX-License-Identifier: Apache-2.0
// The thread that talks with the server: reports, and orders. Nothing listens on this host.

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/control_parts.h"
#include "agent/send/client.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/limits/backoff.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "io/json.h"
#include "io/json_write.h"

#define REPORT_NS 10000000000ll
#define ASK_MS 700      /* with what else it takes, the switch is off within a second */
#define URGENT_MS 50    /* so that several changes go into one report */
#define BACKOFF_MS 1000 /* after a failure, and twice as long after each more */
#define BACKOFF_MAX_MS 16000
#define ANSWER_BYTES_MAX (1u << 20)
#define ORDERS_MAX 64
#define CALL_MS 10000
#define FIRST_MS 500

/* ---- reports ---- */

void control_write_report(struct agent_control *control, struct buffer *out)
{
    struct agent *agent = control->agent;
    const struct labels *labels = &agent->settings->external_labels;
    const char *host = labels_get(labels, "host");
    pthread_mutex_lock(&control->lock);
    bool off = control->is_off;
    pthread_mutex_unlock(&control->lock);
    struct json_writer json = json_writer(out);
    json_write_object(&json);
    json_member_text(&json, "agent", control->id);
    json_member_text(&json, "host", host ? host : "");
    json_member_text(&json, "version", ASSAY_VERSION);
    json_member_fixed(&json, "sent_at", (double)clock_ns(CLOCK_REALTIME) / 1e9, 3);
    json_member_text(&json, "capture", off ? "off" : "on");
    json_write_key(&json, "labels");
    json_write_object(&json);
    for (size_t i = 0; i < labels->count; i++)
        json_member_text(&json, labels->list[i].name, labels->list[i].value);
    json_write_object_end(&json);
    jobs_write(control, &json);
    agent_symbols_write(agent->symbols, &json);
    json_write_key(&json, "status");
    agent_status_json(agent, out);
    json_write_object_end(&json);
}

/* ---- what is heard ---- */

static int read_text(struct json *json, char *to, size_t room)
{
    struct json_string text;
    int r = json_string(json, &text);
    if (r < 0)
        return r;
    if (text.length >= room || memchr(text.data, 0, text.length))
        return json_fail(json, "The server's orders have a string that is too long");
    memcpy(to, text.data, text.length);
    to[text.length] = 0;
    return 0;
}

static int read_order(struct json *json, struct recording_order *order)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "id"))
            r = read_text(json, order->id, sizeof(order->id));
        else if (json_is(&key, "name"))
            r = read_text(json, order->name, sizeof(order->name));
        else if (json_is(&key, "service"))
            r = read_text(json, order->service, sizeof(order->service));
        else if (json_is(&key, "state"))
            r = read_text(json, order->state, sizeof(order->state));
        else if (json_is(&key, "rate"))
            r = json_u64(json, &order->rate_hz);
        else if (json_is(&key, "seconds"))
            r = json_u64(json, &order->seconds);
        else if (json_is(&key, "stop"))
            r = json_bool(json, &order->stop);
    /* It becomes a part of batches' ids. */
    if (r >= 0 && (!*order->id ||
                   strspn(order->id, "0123456789abcdefghijklmnopqrstuvwxyz") != strlen(order->id)))
        return json_fail(json, "The server's orders have a recording without an id");
    return r;
}

static int read_orders(struct json *json, struct recording_order *orders, size_t *count)
{
    int r = json_array(json);
    while (r >= 0 && (r = json_next_element(json)) > 0) {
        if (*count == ORDERS_MAX)
            return json_leave(json);
        orders[*count] = (struct recording_order){0};
        r = read_order(json, &orders[(*count)++]);
    }
    return r;
}

/* Rates and collectors: a newer server's members that this agent doesn't know are skipped. */
static int read_sampling(struct json *json, struct sampling_order *order)
{
    struct json_string key;
    uint64_t rate = 0, wall_rate = 0;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "rate"))
            r = json_u64(json, &rate);
        else if (json_is(&key, "wall_rate"))
            r = json_u64(json, &wall_rate);
        else if (json_is(&key, "wall") && (r = json_bool(json, &order->wall)) >= 0)
            order->has_wall = true;
        else if (json_is(&key, "reason"))
            r = read_text(json, order->reason, sizeof(order->reason));
    order->rate_hz = (unsigned)MIN(rate, (uint64_t)AGENT_RATE_MAX);
    order->wall_rate_hz = (unsigned)MIN(wall_rate, (uint64_t)AGENT_RATE_MAX);
    order->given = true;
    return r;
}

struct answer {
    struct agent_symbols *symbols; /* told at once */
    char version[64], capture[8], reason[257];
    struct sampling_order sampling;
    struct recording_order orders[ORDERS_MAX];
    size_t order_count;
};

static int read_answer(struct json *json, struct answer *answer)
{
    struct json_string key;
    int r = json_object(json);
    while (r >= 0 && (r = json_next_key(json, &key)) > 0)
        if (json_is(&key, "version"))
            r = read_text(json, answer->version, sizeof(answer->version));
        else if (json_is(&key, "capture"))
            r = read_text(json, answer->capture, sizeof(answer->capture));
        else if (json_is(&key, "reason"))
            r = read_text(json, answer->reason, sizeof(answer->reason));
        else if (json_is(&key, "sampling"))
            r = read_sampling(json, &answer->sampling);
        else if (json_is(&key, "recordings"))
            r = read_orders(json, answer->orders, &answer->order_count);
        else if (json_is(&key, "symbols"))
            r = agent_symbols_read(answer->symbols, json);
    return r < 0 ? r : json_end(json);
}

int control_take_orders(struct agent_control *control, const char *text, size_t length,
                        struct error *error)
{
    _cleanup_free_ struct answer *answer = memory_zalloc(1, sizeof(*answer));
    struct source source;
    struct json json;
    answer->symbols = control->agent->symbols;
    int r =
        source_open_memory(&source, "the server's orders", text, length, ANSWER_BYTES_MAX, error);
    if (r < 0)
        return r;
    json_init(&json, &source, error);
    r = read_answer(&json, answer);
    json_release(&json);
    source_release(&source);
    if (r < 0)
        return r;
    for (const char *at = answer->version; *at; at++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyz-", *at))
            return error_set(error, -EBADMSG, "The server's orders have no version.");
    snprintf(control->version, sizeof(control->version), "If-None-Match: \"%s\"", answer->version);
    /* Only this one word turns capture off; unknown ones don't. */
    control_server_says(control, !strcmp(answer->capture, "off"), answer->reason);
    control_server_samples(control, &answer->sampling);
    jobs_apply(control, answer->orders, answer->order_count);
    return 0;
}

/* ---- the client ---- */

/* Tokens are replaced while agents run: who isn't known any more reads its own again. */
static void renew_client(struct agent_control *control)
{
    struct http_client *client, *old;
    struct error error = {0};
    if (agent_client_new(control->agent->settings, CALL_MS, ANSWER_BYTES_MAX, &client, &error) < 0)
        return; /* the last one goes on being used, and the server says what is wrong with it */
    pthread_mutex_lock(&control->lock);
    old = control->client;
    control->client = client;
    /* The thread that stops us has either cancelled the old one or will cancel this one. */
    if (control->ends)
        http_client_cancel(client);
    pthread_mutex_unlock(&control->lock);
    http_client_free(old);
}

/* ---- calls ---- */

static int call(struct agent_control *control, bool report, unsigned *ret_status,
                struct error *error)
{
    _cleanup_buffer_ struct buffer body = {0};
    _cleanup_http_reply_ struct http_reply reply = {0};
    const char *header = report ? "Content-Type: application/json" : control->version;
    struct http_call call = {.method = report ? "POST" : "GET",
                             .url = report ? control->report_url : control->orders_url,
                             .headers = &header,
                             .header_count = 1};
    if (report) {
        pthread_mutex_lock(&control->lock);
        control->urgent = false;
        pthread_mutex_unlock(&control->lock);
        control_write_report(control, &body);
        call.body = body.data;
        call.body_length = body.length;
    }
    int r = http_client_call(control->client, &call, &reply, error);
    if (r < 0)
        return r;
    *ret_status = reply.status;
    if (reply.status == 304)
        return 0;
    if (reply.status != 200)
        return http_reply_error(&call, &reply, error);
    return control_take_orders(control, reply.body.data, reply.body.length, error);
}

static void turn(struct agent_control *control, bool urgent)
{
    struct error error = {0};
    unsigned status = 0;
    int64_t now_ns = monotonic_ns();
    bool report = urgent || !*control->version || now_ns - control->reported_ns >= REPORT_NS;
    int r = call(control, report, &status, &error);
    if (!report && status == 404) { /* it has forgotten us */
        *control->version = 0;
        return;
    }
    if (status == 401 && control->agent->settings->token_file)
        renew_client(control);
    if (r < 0 && r != -ECANCELED && !control->failures)
        log_warning("Failed to poll the control server: %s", error.text);
    else if (!r && control->failures)
        log_info("Polling the control server works again.");
    control->failures = r < 0 ? control->failures + 1 : 0;
    if (!r && report)
        control->reported_ns = now_ns;
    else if (r < 0 && report)
        *control->version = 0;
}

/* Agents that began together, or lost their server together, don't ask together. */
static int64_t wait_ms(const struct agent_control *control)
{
    static const struct backoff backoff = {.first_ms = 2 * BACKOFF_MS,
                                           .longest_ms = BACKOFF_MAX_MS};
    return control->failures ? backoff_ms(&backoff, control->failures, -1, random_bits()) : ASK_MS;
}

/* There are stats by then. */
static int64_t first_wait_ms(void)
{
    return FIRST_MS + (int64_t)(random_bits() % ASK_MS);
}

static bool rest(struct agent_control *control, int64_t ms)
{
    int64_t until_ns = monotonic_ns() + ms * 1000000;
    pthread_mutex_lock(&control->lock);
    while (!control->ends && !(control->urgent && !control->failures))
        if (condition_wait_until(&control->wake, &control->lock, until_ns))
            break;
    bool ends = control->ends;
    pthread_mutex_unlock(&control->lock);
    return !ends;
}

static void *run(void *argument)
{
    struct agent_control *control = argument;
    bool urgent = false, more = rest(control, first_wait_ms());
    pthread_setname_np(pthread_self(), "control");
    while (more) {
        turn(control, urgent);
        more = rest(control, wait_ms(control));
        pthread_mutex_lock(&control->lock);
        urgent = control->urgent;
        pthread_mutex_unlock(&control->lock);
        if (urgent && more) {
            struct timespec moment = {.tv_nsec = URGENT_MS * 1000000};
            nanosleep(&moment, NULL);
        }
    }
    return NULL;
}

/* ---- lifecycle ---- */

int control_link_start(struct agent_control *control, struct error *error)
{
    const struct agent_settings *settings = control->agent->settings;
    struct buffer report = {0}, orders = {0};
    int r = agent_client_new(settings, CALL_MS, ANSWER_BYTES_MAX, &control->client, error);
    if (r < 0)
        return r;
    agent_url(settings, "/api/v1/agents/report", &report);
    agent_url(settings, "/api/v1/agents/orders?agent=", &orders);
    buffer_add_text(&orders, control->id);
    buffer_text(&report);
    buffer_text(&orders);
    control->report_url = report.data;
    control->orders_url = orders.data;
    r = pthread_create(&control->thread, NULL, run, control);
    if (r)
        return error_set_errno(error, -r, "Failed to start a thread");
    control->started = true;
    return 0;
}

void control_link_stop(struct agent_control *control)
{
    pthread_mutex_lock(&control->lock);
    control->ends = true;
    pthread_cond_broadcast(&control->wake);
    if (control->started)
        http_client_cancel(control->client);
    pthread_mutex_unlock(&control->lock);
    if (control->started) {
        pthread_join(control->thread, NULL);
        control->started = false;
    }
    jobs_stop(control);
}
