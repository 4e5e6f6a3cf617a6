// SPDX-License-Identifier: Apache-2.0
// One transfer of libcurl's with our limits: see client_transfer.h.

#include "http/client/client_transfer.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "http/grpc/grpc.h"
#include "http/status.h"

static bool take_room(struct http_transfer *transfer, size_t length)
{
    if (!transfer->budget)
        return true;
    size_t left = atomic_load(transfer->budget);
    while (length <= left)
        if (atomic_compare_exchange_weak(transfer->budget, &left, left - length))
            return true;
    return false;
}

static void give_back_room(struct http_transfer *transfer)
{
    if (transfer->budget)
        atomic_fetch_add(transfer->budget, transfer->reply.body.length);
    transfer->reply.body.length = 0;
}

static bool has_taker(struct http_transfer *transfer)
{
    long status = 0;
    return transfer->call->take &&
           curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
           status == 200;
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *userdata)
{
    struct http_transfer *transfer = userdata;
    size_t length = size * count;
    if (has_taker(transfer)) {
        transfer->too_large = length > transfer->answer_limit_bytes - transfer->taken_bytes;
        if (transfer->too_large ||
            transfer->call->take(transfer->call->take_context, bytes, length) != 0)
            return 0;
        transfer->taken_bytes += length;
        return length;
    }
    if (length > transfer->answer_limit_bytes - transfer->reply.body.length) {
        transfer->too_large = true;
        return 0;
    }
    if (!take_room(transfer, length)) {
        transfer->no_room = true;
        return 0;
    }
    buffer_add(&transfer->reply.body, bytes, length);
    return length;
}

/* The value of a header if it has that name, without blanks around it; NULL: it has another. */
static const char *value_of(const char *bytes, size_t length, const char *name, size_t *ret_length)
{
    size_t at = strlen(name);
    if (length <= at || bytes[at] != ':' || strncasecmp(bytes, name, at))
        return NULL;
    for (at++; at < length && strchr(" \t", bytes[at]); at++)
        ;
    while (length > at && strchr(" \t\r\n", bytes[length - 1]))
        length--;
    *ret_length = length - at;
    return bytes + at;
}

static void take_grpc(struct http_reply *reply, const char *bytes, size_t length)
{
    size_t found;
    uint64_t number;
    const char *value = value_of(bytes, length, "grpc-status", &found);
    if (value && text_to_u64(value, found, &number) && number <= INT_MAX)
        reply->grpc_status = (int)number;
    if ((value = value_of(bytes, length, "grpc-message", &found))) {
        snprintf(reply->grpc_message, sizeof(reply->grpc_message), "%.*s", (int)MIN(found, 4096u),
                 value);
        grpc_message_decode(reply->grpc_message);
    }
    if ((value = value_of(bytes, length, "grpc-status-details-bin", &found)))
        reply->grpc_retry_ms = grpc_retry_ms(value, found);
}

static size_t take_header(char *bytes, size_t size, size_t count, void *userdata)
{
    struct http_transfer *transfer = userdata;
    size_t length = size * count;
    static const char retry_after[] = "Retry-After:", ours[] = HTTP_SERVER_HEADER ":";
    if (length > 5 && !strncmp(bytes, "HTTP/", 5)) {
        transfer->reply.retry_after_ms = -1; /* another answer: the one before was a redirect */
        transfer->reply.is_ours = false;
        give_back_room(transfer);
    }
    if (length > 5 && !strncasecmp(bytes, "grpc-", 5))
        take_grpc(&transfer->reply, bytes, length);
    if (length >= sizeof(ours) && !strncasecmp(bytes, ours, sizeof(ours) - 1))
        transfer->reply.is_ours = true;
    size_t name = sizeof(retry_after) - 1;
    if (length > name && length < name + 64 && !strncasecmp(bytes, retry_after, name)) {
        char value[64];
        memcpy(value, bytes + name, length - name);
        value[length - name] = 0;
        transfer->reply.retry_after_ms = http_parse_retry_after(value, time(NULL));
    }
    return length;
}

static size_t give_body(char *bytes, size_t size, size_t count, void *userdata)
{
    struct http_transfer *transfer = userdata;
    size_t room = size * count;
    size_t left = transfer->call->body_length - (size_t)transfer->body_sent;
    if (transfer->call->body_from_file || transfer->call->give) {
        ssize_t got = 0;
        if (left && transfer->call->give)
            got = transfer->call->give(transfer->call->give_context, transfer->body_sent, bytes,
                                       MIN(room, left));
        else if (left)
            got =
                pread(transfer->call->body_fd, bytes, MIN(room, left), (off_t)transfer->body_sent);
        if (got < 0 || (left && !got)) /* the file is shorter than its length was */
            return CURL_READFUNC_ABORT;
        transfer->body_sent += (uint64_t)got;
        return (size_t)got;
    }
    size_t given = MIN(room, left);
    if (given)
        memcpy(bytes, (const char *)transfer->call->body + transfer->body_sent, given);
    transfer->body_sent += given;
    return given;
}

/* A kept connection turned out to be dead: the body is sent again over a new one. */
static int rewind_body(void *userdata, curl_off_t offset, int origin)
{
    struct http_transfer *transfer = userdata;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > transfer->call->body_length)
        return CURL_SEEKFUNC_FAIL;
    transfer->body_sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static void set_text(CURL *easy, CURLoption option, const char *text)
{
    if (text)
        curl_easy_setopt(easy, option, text);
}

static void set_options(struct http_transfer *transfer, const struct http_client_options *options)
{
    CURL *easy = transfer->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, options->redirects ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)options->redirects);
    curl_easy_setopt(easy, CURLOPT_PROXY, options->proxy ? options->proxy : "");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(options->connect_timeout_ms ? options->connect_timeout_ms : 10000));
    curl_easy_setopt(easy, CURLOPT_USERAGENT,
                     options->user_agent ? options->user_agent : "assay/" ASSAY_VERSION);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->cause);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, give_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, rewind_body);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer);
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

/* The URL without what may be secret in it: user, password and query. */
const char *http_url_place(const char *url, char place[256])
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

static int failure(const struct http_transfer *transfer, CURLcode code, struct error *error)
{
    char place[256];
    http_url_place(transfer->call->url, place);
    const char *cause = transfer->cause[0] ? transfer->cause : curl_easy_strerror(code);
    size_t length = strlen(cause);
    while (length && (cause[length - 1] == '.' || cause[length - 1] == '\n'))
        length--;
    int shown = (int)length;
    if (transfer->too_large)
        return error_set(error, -E2BIG, "The answer of %s is larger than %zu bytes.", place,
                         transfer->answer_limit_bytes);
    if (transfer->no_room)
        return error_set(error, -ENOBUFS, "Not enough memory for the answer of %s.", place);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return error_set(error, -EHOSTUNREACH, "Failed to resolve the name of %s: %.*s.", place,
                         shown, cause);
    case CURLE_COULDNT_CONNECT:
        return error_set(error, -ECONNREFUSED, "Failed to connect to %s: %.*s.", place, shown,
                         cause);
    case CURLE_OPERATION_TIMEDOUT:
        return error_set(error, -ETIME, "%s didn't answer in time: %.*s.", place, shown, cause);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return error_set(error, -EPERM,
                         "The certificate of %s is not trusted: %.*s. If it is yours, configure "
                         "the authority that signed it.",
                         place, shown, cause);
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (strstr(cause, "HTTP/0.9") || strstr(cause, "HTTP response")) /* it isn't HTTP */
            return error_set(error, -EIO, "%s didn't answer with HTTP.", place);
        /* fallthrough */
    case CURLE_URL_MALFORMAT:
        return error_set(error, -EINVAL, "The URL for %s is not an http or https URL: %.*s.", place,
                         shown, cause);
    default:
        return error_set(error, -EIO, "The request to %s failed: %.*s.", place, shown, cause);
    }
}

/* Connects to the URL's host, but under another name: what TLS asks for and checks. */
static int rename_host(struct http_transfer *transfer, struct error *error)
{
    char place[256];
    CURLU *url = curl_url();
    char *host = NULL, *port = NULL, *whole = NULL;
    _cleanup_buffer_ struct buffer text = {0};
    if (!url || curl_url_set(url, CURLUPART_URL, transfer->call->url, 0) ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) ||
        curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ||
        curl_url_set(url, CURLUPART_HOST, transfer->server_name, 0) ||
        curl_url_get(url, CURLUPART_URL, &whole, 0)) {
        error_set(error, -EINVAL, "The URL for %s can't be used with the name \"%.100s\".",
                  http_url_place(transfer->call->url, place), transfer->server_name);
    } else {
        buffer_printf(&text, "%s:%s:%s:%s", transfer->server_name, port, host, port);
        transfer->connect_to = curl_slist_append(NULL, buffer_text(&text));
        text.length = 0;
        buffer_printf(&text, "Host: %s:%s", host, port);
        transfer->headers = curl_slist_append(transfer->headers, buffer_text(&text));
        curl_easy_setopt(transfer->easy, CURLOPT_URL, whole);
    }
    bool done = transfer->connect_to != NULL;
    curl_free(host);
    curl_free(port);
    curl_free(whole);
    curl_url_cleanup(url);
    return done ? 0 : -EINVAL;
}

static void set_method(struct http_transfer *transfer)
{
    CURL *easy = transfer->easy;
    const struct http_call *call = transfer->call;
    bool body = call->body || call->body_from_file || call->give;
    const char *method = call->method ? call->method : body ? "POST" : "GET";
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

/* libcurl 7.88 fails on a kept connection of prior knowledge (curl bug 10634): there each call
 * has its own. */
static void set_http2(CURL *easy, bool secure)
{
    bool fails = curl_version_info(CURLVERSION_NOW)->version_num < 0x080000;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                     secure ? (long)CURL_HTTP_VERSION_2TLS
                            : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, !secure && fails ? 1L : 0L);
}

int http_transfer_begin(struct http_transfer *transfer, const struct http_call *call,
                        struct error *error)
{
    CURL *easy = transfer->easy;
    transfer->call = call;
    transfer->taken_bytes = 0;
    transfer->reply =
        (struct http_reply){.retry_after_ms = -1, .grpc_status = -1, .grpc_retry_ms = -1};
    transfer->cause[0] = 0;
    transfer->body_sent = 0;
    transfer->too_large = transfer->no_room = false;
    curl_easy_setopt(easy, CURLOPT_URL, call->url);
    /* A redirect may lead to https from anywhere, and to http only from http. */
    bool secure = !strncasecmp(call->url, "https:", 6);
    if (transfer->http2)
        set_http2(easy, secure);
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                     (long)(call->timeout_ms ? call->timeout_ms : transfer->timeout_ms));
    curl_easy_setopt(easy, CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)call->send_rate_bytes);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, call->keep_compressed ? NULL : "");
    set_method(transfer);
    for (size_t i = 0; i < call->header_count; i++)
        transfer->headers = curl_slist_append(transfer->headers, call->headers[i]);
    /* Waiting for leave costs a round trip or a second. */
    transfer->headers = curl_slist_append(transfer->headers, "Expect:");
    int r = transfer->server_name ? rename_host(transfer, error) : 0;
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, transfer->connect_to);
    return r;
}

static void forget_call(struct http_transfer *transfer)
{
    if (transfer->easy) {
        curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, NULL);
        curl_easy_setopt(transfer->easy, CURLOPT_CONNECT_TO, NULL);
    }
    curl_slist_free_all(transfer->headers);
    curl_slist_free_all(transfer->connect_to);
    transfer->headers = transfer->connect_to = NULL;
    give_back_room(transfer);
    http_reply_release(&transfer->reply);
}

int http_transfer_end(struct http_transfer *transfer, CURLcode code, struct http_reply *ret_reply,
                      struct error *error)
{
    int r = 0;
    if (code != CURLE_OK) {
        r = failure(transfer, code, error);
    } else {
        long status = 0;
        char *type = NULL;
        curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_TYPE, &type);
        transfer->reply.status = (unsigned)status;
        snprintf(transfer->reply.content_type, sizeof(transfer->reply.content_type), "%s",
                 type ? type : "");
        *ret_reply = transfer->reply;
        transfer->reply = (struct http_reply){0};
    }
    forget_call(transfer);
    return r;
}

static void init_library(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_transfer_init(struct http_transfer *transfer, const struct http_client_options *options,
                       struct error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_library);
    *transfer = (struct http_transfer){0};
    const char *const files[] = {options->ca_file, options->certificate_file, options->key_file};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        if (files[i] && access(files[i], R_OK) < 0)
            return error_set_errno(error, -errno, "%s cannot be read", files[i]);
    if (options->bearer && (options->user || options->password))
        return error_set(error, -EINVAL,
                         "A request can have a bearer token or a user and password, not both.");
    transfer->easy = curl_easy_init();
    transfer->http2 = options->http2;
    transfer->timeout_ms = options->timeout_ms ? options->timeout_ms : 30000;
    transfer->answer_limit_bytes =
        options->answer_limit_bytes ? options->answer_limit_bytes : 64u << 20;
    if (options->server_name && *options->server_name)
        transfer->server_name = memory_strdup(options->server_name);
    if (!transfer->easy)
        return error_set(error, -ENOMEM, "Failed to set up libcurl.");
    set_options(transfer, options);
    return 0;
}

void http_transfer_release(struct http_transfer *transfer)
{
    forget_call(transfer);
    curl_easy_cleanup(transfer->easy);
    free(transfer->server_name);
    *transfer = (struct http_transfer){0};
}
