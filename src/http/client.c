// SPDX-License-Identifier: Apache-2.0
// The HTTP client: see client.h.

#include "http/client.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "http/client_wait.h"

#define POLL_MS 1000

struct http_client {
    CURL *easy;
    CURLM *multi;
    atomic_bool cancelled;
    unsigned timeout_ms;
    size_t answer_limit_bytes;
    /* Of the call that is under way. */
    const struct http_call *call;
    struct http_reply *reply;
    uint64_t body_sent;
    bool too_large;
    char cause[CURL_ERROR_SIZE];
};

void http_reply_release(struct http_reply *reply)
{
    buffer_release(&reply->body);
    *reply = (struct http_reply){0};
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *userdata)
{
    struct http_client *client = userdata;
    size_t length = size * count;
    if (length > client->answer_limit_bytes - client->reply->body.length) {
        client->too_large = true;
        return 0;
    }
    buffer_add(&client->reply->body, bytes, length);
    return length;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *userdata)
{
    struct http_client *client = userdata;
    size_t length = size * count;
    static const char retry_after[] = "Retry-After:";
    if (length > 5 && !strncmp(bytes, "HTTP/", 5)) {
        client->reply->retry_after_ms = -1; /* another answer: the one before was a redirect */
        client->reply->body.length = 0;
    }
    size_t name = sizeof(retry_after) - 1;
    if (length > name && length < name + 64 && !strncasecmp(bytes, retry_after, name)) {
        char value[64];
        memcpy(value, bytes + name, length - name);
        value[length - name] = 0;
        client->reply->retry_after_ms = http_parse_retry_after(value, time(NULL));
    }
    return length;
}

static size_t give_body(char *bytes, size_t size, size_t count, void *userdata)
{
    struct http_client *client = userdata;
    size_t room = size * count;
    size_t left = client->call->body_length - (size_t)client->body_sent;
    if (client->call->body_from_file) {
        ssize_t got =
            left ? pread(client->call->body_fd, bytes, MIN(room, left), (off_t)client->body_sent)
                 : 0;
        if (got < 0 || (left && !got)) /* the file is shorter than its length was */
            return CURL_READFUNC_ABORT;
        client->body_sent += (uint64_t)got;
        return (size_t)got;
    }
    size_t given = MIN(room, left);
    if (given)
        memcpy(bytes, (const char *)client->call->body + client->body_sent, given);
    client->body_sent += given;
    return given;
}

/* A kept connection turned out to be dead: the body is sent again over a new one. */
static int rewind_body(void *userdata, curl_off_t offset, int origin)
{
    struct http_client *client = userdata;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > client->call->body_length)
        return CURL_SEEKFUNC_FAIL;
    client->body_sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static void init_library(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void set_text(CURL *easy, CURLoption option, const char *text)
{
    if (text)
        curl_easy_setopt(easy, option, text);
}

static void set_options(struct http_client *client, const struct http_client_options *options)
{
    CURL *easy = client->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, options->redirects ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)options->redirects);
    curl_easy_setopt(easy, CURLOPT_PROXY, options->proxy ? options->proxy : "");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(options->connect_timeout_ms ? options->connect_timeout_ms : 10000));
    curl_easy_setopt(easy, CURLOPT_USERAGENT,
                     options->user_agent ? options->user_agent : "assay/" ASSAY_VERSION);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->cause);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, client);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, client);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, rewind_body);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, client);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, options->insecure ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, options->insecure ? 0L : 2L);
    set_text(easy, CURLOPT_CAINFO, options->ca_file);
    set_text(easy, CURLOPT_SSLCERT, options->certificate_file);
    set_text(easy, CURLOPT_SSLKEY, options->key_file);
    set_text(easy, CURLOPT_UNIX_SOCKET_PATH, options->unix_socket);
    if (options->bearer) {
        curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, options->bearer);
    } else if (options->user || options->password) {
        curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(easy, CURLOPT_USERNAME, options->user ? options->user : "");
        curl_easy_setopt(easy, CURLOPT_PASSWORD, options->password ? options->password : "");
    }
}

int http_client_new(const struct http_client_options *options, struct http_client **ret_client,
                    struct error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_library);
    const char *const files[] = {options->ca_file, options->certificate_file, options->key_file};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        if (files[i] && access(files[i], R_OK) < 0)
            return error_set_errno(error, -errno, "%s cannot be read", files[i]);
    if (options->bearer && (options->user || options->password))
        return error_set(error, -EINVAL,
                         "A request carries a bearer token or a user and password, not both.");
    struct http_client *client = memory_zalloc(1, sizeof(*client));
    client->easy = curl_easy_init();
    client->multi = curl_multi_init();
    client->timeout_ms = options->timeout_ms ? options->timeout_ms : 30000;
    client->answer_limit_bytes =
        options->answer_limit_bytes ? options->answer_limit_bytes : 64u << 20;
    if (!client->easy || !client->multi) {
        http_client_free(client);
        return error_set(error, -ENOMEM, "libcurl cannot be set up.");
    }
    set_options(client, options);
    *ret_client = client;
    return 0;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->easy);
    curl_multi_cleanup(client->multi);
    free(client);
}

void http_client_cancel(struct http_client *client)
{
    atomic_store(&client->cancelled, true);
    curl_multi_wakeup(client->multi);
}

int client_wait(struct http_client *client, unsigned wait_ms)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t until_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + wait_ms;
    for (;;) {
        if (atomic_load(&client->cancelled))
            return -ECANCELED;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t left_ms = until_ms - ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
        if (left_ms <= 0)
            return 0;
        curl_multi_poll(client->multi, NULL, 0, (int)MIN(left_ms, 60000), NULL);
    }
}

/* The URL without what may be secret in it: user, password and query. */
static const char *url_place(const char *url, char place[256])
{
    const char *after = strstr(url, "://");
    after = after ? after + 3 : url;
    size_t length = strcspn(after, "/?#");
    for (size_t i = length; i > 0; i--)
        if (after[i - 1] == '@') {
            after += i;
            length -= i;
            break;
        }
    snprintf(place, 256, "%.*s", (int)MIN(length, (size_t)255), after);
    return place;
}

static int failure(const struct http_client *client, CURLcode code, struct error *error)
{
    char place[256];
    url_place(client->call->url, place);
    const char *cause = client->cause[0] ? client->cause : curl_easy_strerror(code);
    size_t length = strlen(cause);
    while (length && (cause[length - 1] == '.' || cause[length - 1] == '\n'))
        length--;
    int shown = (int)length;
    if (client->too_large)
        return error_set(error, -E2BIG, "The answer of %s is larger than %zu bytes.", place,
                         client->answer_limit_bytes);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return error_set(error, -EHOSTUNREACH, "The name of %s has no address: %.*s.", place, shown,
                         cause);
    case CURLE_COULDNT_CONNECT:
        return error_set(error, -ECONNREFUSED, "%s cannot be reached: %.*s.", place, shown, cause);
    case CURLE_OPERATION_TIMEDOUT:
        return error_set(error, -ETIME, "%s didn't answer in time: %.*s.", place, shown, cause);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return error_set(error, -EPERM,
                         "The certificate of %s is not to be trusted: %.*s. If it is yours, give "
                         "the authority that signed it.",
                         place, shown, cause);
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (strstr(cause, "HTTP/0.9")) /* a connection, and no HTTP on it */
            return error_set(error, -EIO, "%s doesn't speak HTTP there.", place);
        /* fallthrough */
    case CURLE_URL_MALFORMAT:
        return error_set(error, -EINVAL, "The URL for %s is not one for http or https: %.*s.",
                         place, shown, cause);
    default:
        return error_set(error, -EIO, "Talking to %s failed: %.*s.", place, shown, cause);
    }
}

static struct curl_slist *make_headers(const struct http_call *call)
{
    struct curl_slist *headers = NULL;
    for (size_t i = 0; i < call->header_count; i++)
        headers = curl_slist_append(headers, call->headers[i]);
    /* Waiting for leave costs a round trip or a second. */
    return curl_slist_append(headers, "Expect:");
}

static void prepare(struct http_client *client, const struct http_call *call)
{
    CURL *easy = client->easy;
    bool body = call->body || call->body_from_file;
    const char *method = call->method ? call->method : body ? "POST" : "GET";
    client->cause[0] = 0;
    client->body_sent = 0;
    client->too_large = false;
    curl_easy_setopt(easy, CURLOPT_URL, call->url);
    /* A redirect may lead to https from anywhere, and to http only from http. */
    bool secure = !strncasecmp(call->url, "https:", 6);
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                     (long)(call->timeout_ms ? call->timeout_ms : client->timeout_ms));
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, call->keep_compressed ? NULL : "");
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL);
    if (body) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_length);
    } else if (!strcmp(method, "HEAD")) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 0L);
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    if (strcmp(method, body ? "POST" : "GET") && strcmp(method, "HEAD"))
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
}

/* Runs the transfer in a way that another thread can interrupt. */
static int perform(struct http_client *client, CURLcode *ret_code)
{
    int running = 1;
    *ret_code = CURLE_FAILED_INIT;
    if (curl_multi_add_handle(client->multi, client->easy) != CURLM_OK)
        return 0;
    while (!atomic_load(&client->cancelled)) {
        if (curl_multi_perform(client->multi, &running) != CURLM_OK || !running)
            break;
        curl_multi_poll(client->multi, NULL, 0, POLL_MS, NULL);
    }
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left));)
        if (message->msg == CURLMSG_DONE)
            *ret_code = message->data.result;
    curl_multi_remove_handle(client->multi, client->easy);
    return atomic_load(&client->cancelled) ? -ECANCELED : 0;
}

int http_client_call(struct http_client *client, const struct http_call *call,
                     struct http_reply *ret_reply, struct error *error)
{
    _cleanup_http_reply_ struct http_reply reply = {.retry_after_ms = -1};
    client->call = call;
    client->reply = &reply;
    prepare(client, call);
    struct curl_slist *headers = make_headers(call);
    curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, headers);
    CURLcode code;
    int r = perform(client, &code);
    curl_easy_setopt(client->easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    if (r < 0) {
        char place[256];
        return error_set(error, r, "The request to %s was cancelled.", url_place(call->url, place));
    }
    if (code != CURLE_OK)
        return failure(client, code, error);
    long status = 0;
    char *type = NULL;
    curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(client->easy, CURLINFO_CONTENT_TYPE, &type);
    reply.status = (unsigned)status;
    snprintf(reply.content_type, sizeof(reply.content_type), "%s", type ? type : "");
    *ret_reply = reply;
    reply = (struct http_reply){0};
    return 0;
}

int http_reply_error(const struct http_call *call, const struct http_reply *reply,
                     struct error *error)
{
    char place[256];
    _cleanup_buffer_ struct buffer message = {0};
    text_escape_terminal(&message, reply->body.data, MIN(reply->body.length, (size_t)300));
    while (message.length && message.data[message.length - 1] == '\n')
        message.length--;
    int code = reply->status == 401 || reply->status == 403   ? -EACCES
               : reply->status == 404                         ? -ENOENT
               : reply->status == 413                         ? -E2BIG
               : reply->status == 429 || reply->status == 503 ? -EAGAIN
                                                              : -EIO;
    return error_set(error, code, "%s answered %u%s%s", url_place(call->url, place), reply->status,
                     message.length ? ": " : ".", message.length ? buffer_text(&message) : "");
}
