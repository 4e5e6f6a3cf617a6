// SPDX-License-Identifier: Apache-2.0
// Addresses to listen on: see listen.h.

#include "http/server/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "base/memory.h"
#include "base/text.h"

#define BACKLOG 1024

static bool is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *ip = (const void *)address;
        return ntohl(ip->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *ip = (const void *)address;
    if (IN6_IS_ADDR_V4MAPPED(&ip->sin6_addr))
        return ip->sin6_addr.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&ip->sin6_addr);
}

static int parse_unix(const char *path, struct listen_address *ret_address, struct error *error)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    if (!path[0] || strlen(path) >= sizeof(local.sun_path))
        return error_set(
            error, -EINVAL,
            "unix:%s is not a valid listen address: the path must have 1 to %zu bytes.", path,
            sizeof(local.sun_path) - 1);
    strcpy(local.sun_path, path);
    *ret_address = (struct listen_address){.length = sizeof(local), .local = true};
    memcpy(&ret_address->address, &local, sizeof(local));
    return 0;
}

/* Splits "host:port" and "[host]:port" in place; an empty host is every address. */
static bool split(char *text, char **ret_host, char **ret_port)
{
    char *colon = strrchr(text, ':');
    uint64_t port;
    if (!colon || !text_to_u64(colon + 1, strlen(colon + 1), &port) || port > 65535)
        return false;
    *colon = 0;
    *ret_port = colon + 1;
    size_t length = strlen(text);
    if (text[0] == '[') {
        if (length < 3 || text[length - 1] != ']')
            return false;
        text[length - 1] = 0;
        text++;
    } else if (strchr(text, ':')) {
        return false; /* an IPv6 address without brackets: which colon is the port's? */
    }
    *ret_host = text;
    return true;
}

int listen_parse(const char *text, struct listen_address *ret_addresses, size_t room,
                 size_t *ret_count, struct error *error)
{
    if (!room)
        return error_set(error, -E2BIG, "Too many listen addresses.");
    if (!strncmp(text, "unix:", 5)) {
        int r = parse_unix(text + 5, ret_addresses, error);
        if (r == 0)
            *ret_count = 1;
        return r;
    }
    _cleanup_free_ char *copy = memory_strdup(text);
    char *host, *port;
    if (!split(copy, &host, &port))
        return error_set(error, -EINVAL,
                         "%s is not a valid listen address: use a form such as 127.0.0.1:4040, "
                         "[::1]:4040, :4040 or unix:/path.",
                         text);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    int r = getaddrinfo(host[0] ? host : NULL, port, &hints, &found);
    if (r)
        return error_set(error, -ENOENT, "%s is not an address of this machine: %s.", text,
                         gai_strerror(r));
    size_t count = 0;
    for (struct addrinfo *at = found; at && count < room; at = at->ai_next) {
        if (at->ai_family != AF_INET && at->ai_family != AF_INET6)
            continue;
        ret_addresses[count] = (struct listen_address){.length = at->ai_addrlen};
        memcpy(&ret_addresses[count].address, at->ai_addr, at->ai_addrlen);
        ret_addresses[count].local = is_loopback(&ret_addresses[count].address);
        count++;
    }
    freeaddrinfo(found);
    *ret_count = count;
    return 0;
}

/* A socket file that nobody answers on is left over from a server that was killed. */
static void remove_stale(const struct listen_address *address)
{
    const struct sockaddr_un *local = (const void *)&address->address;
    struct stat found;
    if (lstat(local->sun_path, &found) < 0 || !S_ISSOCK(found.st_mode))
        return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const void *)local, address->length) < 0 && errno == ECONNREFUSED)
        unlink(local->sun_path);
    close(fd);
}

static int bind_socket(int fd, const struct listen_address *address, mode_t unix_mode)
{
    const struct sockaddr *to = (const void *)&address->address;
    int yes = 1;
    if (to->sa_family == AF_UNIX) {
        const struct sockaddr_un *local = (const void *)to;
        remove_stale(address);
        /* Bound by nobody but us until it has its mode. */
        mode_t before = umask(0177);
        int r = bind(fd, to, address->length);
        int failure = errno;
        umask(before);
        errno = failure;
        return r < 0 || chmod(local->sun_path, unix_mode) < 0 ? -errno : 0;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    /* Every IPv4 address is an address of its own in the list. */
    if (to->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
    return bind(fd, to, address->length) < 0 ? -errno : 0;
}

int listen_open(const struct listen_address *address, mode_t unix_mode, int *ret_fd,
                struct error *error)
{
    char text[LISTEN_TEXT_BYTES];
    listen_text(address, -1, text);
    int fd = socket(address->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(error, -errno, "Failed to create a socket for %s", text);
    int r = bind_socket(fd, address, unix_mode);
    if (r == 0 && listen(fd, BACKLOG) < 0)
        r = -errno;
    if (r < 0) {
        close(fd);
        if (r == -EADDRINUSE)
            return error_set(error, r,
                             "%s is in use by another program: stop it, or use another address.",
                             text);
        return error_set_errno(error, r, "Failed to listen on %s", text);
    }
    *ret_fd = fd;
    return 0;
}

const char *listen_text(const struct listen_address *address, int fd, char text[LISTEN_TEXT_BYTES])
{
    struct sockaddr_storage bound = address->address;
    socklen_t length = sizeof(bound);
    if (fd >= 0 && bound.ss_family != AF_UNIX)
        getsockname(fd, (struct sockaddr *)&bound, &length);
    char host[INET6_ADDRSTRLEN] = "?";
    if (bound.ss_family == AF_UNIX) {
        snprintf(text, LISTEN_TEXT_BYTES, "unix:%s", ((struct sockaddr_un *)&bound)->sun_path);
    } else if (bound.ss_family == AF_INET) {
        const struct sockaddr_in *ip = (void *)&bound;
        inet_ntop(AF_INET, &ip->sin_addr, host, sizeof(host));
        snprintf(text, LISTEN_TEXT_BYTES, "%s:%u", host, ntohs(ip->sin_port));
    } else {
        const struct sockaddr_in6 *ip = (void *)&bound;
        inet_ntop(AF_INET6, &ip->sin6_addr, host, sizeof(host));
        snprintf(text, LISTEN_TEXT_BYTES, "[%s]:%u", host, ntohs(ip->sin6_port));
    }
    return text;
}

int listen_check_exposure(const struct listen_address *addresses, size_t count, bool tls,
                          bool tokens, bool insecure, struct error *error)
{
    if (insecure || (tls && tokens))
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (addresses[i].local)
            continue;
        char text[LISTEN_TEXT_BYTES];
        return error_set(error, -EPERM,
                         "%s is reachable from other machines, and the server has %s: configure "
                         "%s, listen on 127.0.0.1 only, or set insecure if the network is trusted.",
                         listen_text(&addresses[i], -1, text),
                         tls      ? "no tokens"
                         : tokens ? "no TLS"
                                  : "neither TLS nor tokens",
                         tls      ? "tokens"
                         : tokens ? "a certificate and its key"
                                  : "a certificate and tokens");
    }
    return 0;
}
