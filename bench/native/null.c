/* A null server: reads every request to its last byte, keeps nothing, and answers from constants.
 *
 * What it reaches is what a client and the kernel allow: the ceiling that a broker is measured against.
 *
 *   null PORT ANSWERS
 *
 * ANSWERS is a file of entries, each: API key and version (16 bits each), size (32 bits), and a whole response frame of
 * that size, in network byte order. The correlation id, which every response has behind its length, is the request's.
 * A request for which there is no answer closes its connection. One thread, one epoll set.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { KEYS = 128, VERSIONS = 32, PREFIX = 12, READ = 1 << 20, EVENTS = 256, BACKLOG = 1024, FRAME_MAX = 1 << 28 };

struct answer {
    uint8_t *frame;
    size_t size;
};

struct client {
    int socket;
    uint8_t prefix[PREFIX]; /* length, API key, version, correlation id */
    size_t have;            /* bytes of the prefix */
    size_t left;            /* bytes of the body still to come, once the prefix is whole */
};

static struct answer answers[KEYS][VERSIONS];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint32_t be32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static unsigned be16(const uint8_t *bytes) { return (unsigned)bytes[0] << 8 | bytes[1]; }

static void load_answers(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    uint8_t entry[8];
    while (fread(entry, 1, sizeof entry, file) == sizeof entry) {
        unsigned key = be16(entry), version = be16(entry + 2);
        size_t size = be32(entry + 4);
        uint8_t *frame = malloc(size);
        if (key >= KEYS || version >= VERSIONS || size < 8 || !frame || fread(frame, 1, size, file) != size) {
            fprintf(stderr, "%s: a bad entry\n", path);
            exit(1);
        }
        answers[key][version] = (struct answer){frame, size};
    }
    fclose(file);
}

/* Waits where the peer's window is full. One slow peer then holds up the others, which a ceiling may do. */
static int send_answer(int socket, const struct answer *answer, const uint8_t *correlation) {
    uint8_t head[8];
    memcpy(head, answer->frame, 4);
    memcpy(head + 4, correlation, 4);
    size_t sent = 0;
    while (sent < answer->size) {
        struct iovec parts[2] = {{head, sizeof head}, {answer->frame + sizeof head, answer->size - sizeof head}};
        struct iovec *first = parts;
        if (sent < sizeof head) {
            parts[0] = (struct iovec){head + sent, sizeof head - sent};
        } else {
            first = &parts[1];
            *first = (struct iovec){answer->frame + sent, answer->size - sent};
        }
        struct msghdr message = {.msg_iov = first, .msg_iovlen = (size_t)(parts + 2 - first)};
        ssize_t done = sendmsg(socket, &message, MSG_NOSIGNAL);
        if (done >= 0) {
            sent += (size_t)done;
        } else if (errno == EAGAIN) {
            struct pollfd writable = {.fd = socket, .events = POLLOUT};
            poll(&writable, 1, 1000);
        } else {
            return -1;
        }
    }
    return 0;
}

static int consume(struct client *client, const uint8_t *bytes, size_t size) {
    while (size) {
        if (client->have < PREFIX) {
            size_t part = PREFIX - client->have < size ? PREFIX - client->have : size;
            memcpy(client->prefix + client->have, bytes, part);
            client->have += part;
            bytes += part;
            size -= part;
            if (client->have < PREFIX) return 0;
            uint32_t length = be32(client->prefix);
            if (length < PREFIX - 4 || length > FRAME_MAX) return -1;
            client->left = length - (PREFIX - 4);
        }
        size_t part = client->left < size ? client->left : size;
        bytes += part;
        size -= part;
        client->left -= part;
        if (client->left) return 0;
        unsigned key = be16(client->prefix + 4), version = be16(client->prefix + 6);
        client->have = 0;
        if (key >= KEYS || version >= VERSIONS || !answers[key][version].size) {
            fprintf(stderr, "no answer for API %u version %u\n", key, version);
            return -1;
        }
        if (send_answer(client->socket, &answers[key][version], client->prefix + 8)) return -1;
    }
    return 0;
}

static int listen_on(uint16_t port) {
    int yes = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, BACKLOG))
        fail("listen");
    return listener;
}

static void accept_all(int listener, int poller) {
    for (;;) {
        int yes = 1, accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        if (accepted < 0) return;
        struct client *client = calloc(1, sizeof *client);
        if (!client) fail("calloc");
        client->socket = accepted;
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, accepted, &event)) fail("epoll_ctl");
    }
}

int main(int words, char **word) {
    static uint8_t room[READ];
    if (words != 3) {
        fprintf(stderr, "null PORT ANSWERS\n");
        return 2;
    }
    load_answers(word[2]);
    int listener = listen_on((uint16_t)atoi(word[1])), poller = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[EVENTS];
    if (epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event)) fail("epoll_ctl");
    for (;;) {
        int ready = epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            struct client *client = events[i].data.ptr;
            if (!client) {
                accept_all(listener, poller);
                continue;
            }
            ssize_t got = recv(client->socket, room, sizeof room, 0);
            if (got < 0 && errno == EAGAIN) continue;
            if (got <= 0 || consume(client, room, (size_t)got)) {
                close(client->socket);
                free(client);
            }
        }
    }
}
