/* A raw load generator: replays one request frame over many connections and times the answers.
 *
 * It knows of Kafka's protocol only that a frame begins with its length. The caller says where an answer has its error
 * code, which must be zero, and where a fetch request has its offset, which then moves on with each request; so does the
 * sequence of a producer's batch, each connection being a producer, with a checksum made anew. Closed
 * loop: a connection has `depth` requests in flight at most, and sends the next when an answer has come. One thread,
 * one epoll set. Answers beyond their first bytes are dropped inside the kernel, so that what is measured is the server.
 *
 *   load port=9092 frame=FILE connections=50 depth=1 warm=1 seconds=5
 *        [pid=N,N,...]                    adds the CPU time that these processes used while the load was measured
 *        [limit=N]                        stops after so many answers, or after the time, whichever comes first
 *        [error=N]                        position of an answer's error code, counted from the frame's begin
 *        [rate=N]                         an open loop instead: so many requests a second in all, each timed from when
 *                                         it was due, also where all connections were busy then
 *        [offset=N step=N end=N]          position of the fetch offset; what to add each time; where to start over
 *        [frames=N]                       FILE has so many frames of one size, of which each connection takes its own
 *        [sequence=N]                     position of the sequence in the frame's only batch, of one record
 *
 * Prints one line of JSON. Latencies are in microseconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 64, CONNECTIONS_MAX = 20000, HEAD = 256, FIRST_READ = 4096, DROP = 1 << 20, EVENTS = 256 };
/* Buckets of a latency: 64 for each power of two of tenths of microseconds, so at most 1.6% wide. */
enum { SUB_BITS = 6, SUB = 1 << SUB_BITS, BUCKETS = 64 * SUB };

struct connection {
    int socket;
    bool wants_write;
    uint8_t *frame;
    size_t sent;               /* bytes of the current frame; 0: none begun */
    unsigned begun, answered;  /* requests; their difference is in flight */
    uint64_t began_at[DEPTH_MAX];
    uint8_t head[HEAD];
    size_t have;               /* bytes of the current answer so far */
    size_t whole;              /* its size with the length; 0: not yet known */
};

static struct {
    long port, connections, depth, limit, error, offset, step, end, rate, frames, sequence;
    double warm, seconds;
    const char *frame, *pids;
} option = {.connections = 1, .depth = 1, .seconds = 5, .error = -1, .offset = -1, .frames = 1, .sequence = -1};

static struct { uint64_t answers, errors, bytes, longest; } tally;
static uint64_t bucket[BUCKETS];
static size_t frame_size;
static uint64_t offset_due;
static uint64_t interval, due_at; /* of an open loop, in nanoseconds; interval 0: a closed one */
static int poller;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void parse(int count_of, char **words) {
    struct { const char *name; long *to; } numbers[] = {
        {"port", &option.port},     {"connections", &option.connections}, {"depth", &option.depth},
        {"limit", &option.limit},   {"error", &option.error},             {"rate", &option.rate},
        {"offset", &option.offset}, {"step", &option.step},               {"end", &option.end},
        {"frames", &option.frames}, {"sequence", &option.sequence},
    };
    for (int i = 1; i < count_of; i++) {
        char *value = strchr(words[i], '=');
        if (value == NULL) {
            fprintf(stderr, "not name=value: %s\n", words[i]);
            exit(2);
        }
        *value++ = 0;
        bool known = true;
        if (!strcmp(words[i], "frame")) option.frame = value;
        else if (!strcmp(words[i], "pid")) option.pids = value;
        else if (!strcmp(words[i], "warm")) option.warm = atof(value);
        else if (!strcmp(words[i], "seconds")) option.seconds = atof(value);
        else {
            known = false;
            for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
                if (!strcmp(words[i], numbers[n].name)) *numbers[n].to = atol(value), known = true;
        }
        if (!known) {
            fprintf(stderr, "unknown option %s\n", words[i]);
            exit(2);
        }
    }
    if (!option.frame || option.port <= 0 || option.depth < 1 || option.depth > DEPTH_MAX || option.connections < 1 ||
        option.connections > CONNECTIONS_MAX || option.error > HEAD - 2 || option.frames < 1) {
        fprintf(stderr, "see the head of load.c\n");
        exit(2);
    }
}

static uint8_t *read_frame(void) {
    FILE *file = fopen(option.frame, "rb");
    if (!file) fail(option.frame);
    fseek(file, 0, SEEK_END);
    frame_size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(frame_size);
    if (!bytes || fread(bytes, 1, frame_size, file) != frame_size) fail(option.frame);
    fclose(file);
    frame_size /= (size_t)option.frames;
    return bytes;
}

/* Where a batch of format 2 has its fields, and CRC-32C over what comes behind the checksum. */
enum { LENGTH_AT = 8, CRC_AT = 17, CHECKED_FROM = 21, SEQUENCE_AT = 53, BEFORE_LENGTH_ENDS = 12 };
static uint32_t crc_of[256];

static void make_crc_table(void) {
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t value = n;
        for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0);
        crc_of[n] = value;
    }
}

static void number_batch(uint8_t *frame, uint32_t sequence) {
    uint8_t *batch = frame + option.sequence - SEQUENCE_AT;
    uint32_t wire = htonl(sequence), length, crc = ~0u;
    memcpy(batch + SEQUENCE_AT, &wire, sizeof wire);
    memcpy(&length, batch + LENGTH_AT, sizeof length);
    for (uint8_t *at = batch + CHECKED_FROM, *end = batch + BEFORE_LENGTH_ENDS + ntohl(length); at < end; at++)
        crc = crc >> 8 ^ crc_of[(crc ^ *at) & 0xFF];
    wire = htonl(~crc);
    memcpy(batch + CRC_AT, &wire, sizeof wire);
}

/* User and system time of a whole process, in seconds. The name in parentheses may hold anything, so look behind it. */
static double cpu_seconds_of(long pid) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    unsigned long user = 0, system = 0;
    char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        fail(path);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double cpu_seconds(void) {
    double all = 0;
    for (const char *at = option.pids; at && *at; at += *at == ',') {
        char *end;
        long pid = strtol(at, &end, 10);
        if (end == at) {
            fprintf(stderr, "not a process: %s\n", at);
            exit(2);
        }
        if (pid > 0) all += cpu_seconds_of(pid);
        at = end;
    }
    return all;
}

static void record(uint64_t nanoseconds) {
    if (nanoseconds > tally.longest) tally.longest = nanoseconds;
    uint64_t value = nanoseconds / 100;
    size_t at = value;
    if (value >= SUB) {
        unsigned shift = 63u - (unsigned)__builtin_clzll(value) - SUB_BITS;
        at = ((size_t)(shift + 1) << SUB_BITS) + ((value >> shift) & (SUB - 1));
    }
    bucket[at < BUCKETS ? at : BUCKETS - 1]++;
}

static double quantile(double share) {
    uint64_t wanted = (uint64_t)((double)tally.answers * share), seen = 0;
    for (size_t at = 0; at < BUCKETS; at++) {
        seen += bucket[at];
        if (seen <= wanted) continue;
        size_t power = at >> SUB_BITS, within = at & (SUB - 1);
        double tenths = power == 0 ? (double)at : (double)((uint64_t)(SUB + within) << (power - 1));
        return tenths / 10;
    }
    return (double)tally.longest / 1000;
}

static void watch(struct connection *connection, bool write) {
    if (connection->wants_write == write) return;
    struct epoll_event event = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_MOD, connection->socket, &event)) fail("epoll_ctl");
    connection->wants_write = write;
}

static bool is_due(void) {
    return !interval || now() >= due_at;
}

static void send_what_fits(struct connection *connection) {
    while (connection->sent || (connection->begun - connection->answered < (unsigned)option.depth && is_due())) {
        if (!connection->sent) {
            if (option.offset >= 0) {
                uint64_t wire = __builtin_bswap64(offset_due);
                memcpy(connection->frame + option.offset, &wire, sizeof wire);
                offset_due += (uint64_t)option.step;
                if (offset_due >= (uint64_t)option.end) offset_due = 0;
            }
            if (option.sequence >= 0) number_batch(connection->frame, connection->begun);
            connection->began_at[connection->begun++ % DEPTH_MAX] = interval ? due_at : now();
            due_at += interval;
        }
        ssize_t done = send(connection->socket, connection->frame + connection->sent, frame_size - connection->sent, MSG_NOSIGNAL);
        if (done < 0) {
            if (errno != EAGAIN) fail("send");
            /* A frame whose very first byte did not fit counts as begun: its time runs. */
            watch(connection, true);
            if (!connection->sent) {
                connection->begun--;
                due_at -= interval;
            }
            return;
        }
        connection->sent += (size_t)done;
        if (connection->sent < frame_size) continue;
        connection->sent = 0;
    }
    watch(connection, false);
}

static void finish_answer(struct connection *connection) {
    record(now() - connection->began_at[connection->answered++ % DEPTH_MAX]);
    tally.answers++;
    if (option.error >= 0) {
        size_t at = (size_t)option.error;
        if (connection->whole < at + 2 || connection->head[at] || connection->head[at + 1]) tally.errors++;
    }
    connection->have = connection->whole = 0;
}

/* Takes what was read into memory; returns what was not needed for the current answer. */
static size_t take(struct connection *connection, const uint8_t *bytes, size_t size) {
    size_t used = connection->whole ? connection->whole - connection->have : (connection->have < 4 ? 4 - connection->have : 0);
    if (used > size) used = size;
    if (connection->have < HEAD) {
        size_t room = HEAD - connection->have;
        memcpy(connection->head + connection->have, bytes, used < room ? used : room);
    }
    connection->have += used;
    if (!connection->whole && connection->have == 4) {
        uint32_t length;
        memcpy(&length, connection->head, 4);
        connection->whole = 4 + (size_t)ntohl(length);
    }
    if (connection->whole && connection->have == connection->whole) finish_answer(connection);
    return size - used;
}

static void receive_what_is_there(struct connection *connection) {
    static uint8_t room[FIRST_READ];
    for (;;) {
        size_t left = connection->whole ? connection->whole - connection->have : 0;
        bool drop = connection->have >= HEAD && left > FIRST_READ;
        size_t asked = drop ? (left < DROP ? left : DROP) : sizeof room;
        ssize_t got = recv(connection->socket, drop ? NULL : room, asked, drop ? MSG_TRUNC : 0);
        if (got == 0) {
            fprintf(stderr, "the server closed a connection\n");
            exit(1);
        }
        if (got < 0) {
            if (errno == EAGAIN) return;
            fail("recv");
        }
        tally.bytes += (uint64_t)got;
        if (drop) {
            connection->have += (size_t)got;
            if (connection->have == connection->whole) finish_answer(connection);
            continue;
        }
        const uint8_t *at = room;
        for (size_t size = (size_t)got; size;) {
            size_t rest = take(connection, at, size);
            at += size - rest;
            size = rest;
        }
        if ((size_t)got < asked && !(connection->whole && connection->whole > FIRST_READ)) return;
    }
}

static struct connection *connect_all(uint8_t *frame) {
    struct connection *peers = calloc((size_t)option.connections, sizeof *peers);
    if (!peers) fail("calloc");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)option.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (long i = 0; i < option.connections; i++) {
        struct connection *connection = &peers[i];
        int yes = 1;
        connection->socket = socket(AF_INET, SOCK_STREAM, 0);
        if (connection->socket < 0 || connect(connection->socket, (struct sockaddr *)&address, sizeof address)) fail("connect");
        if (setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes)) fail("TCP_NODELAY");
        if (fcntl(connection->socket, F_SETFL, O_NONBLOCK)) fail("O_NONBLOCK");
        connection->frame = frame + (size_t)(i % option.frames) * frame_size;
        if (option.offset >= 0 || option.sequence >= 0) { /* each connection has an offset or a sequence of its own */
            connection->frame = malloc(frame_size);
            if (!connection->frame) fail("malloc");
            memcpy(connection->frame, frame + (size_t)(i % option.frames) * frame_size, frame_size);
        }
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &event)) fail("epoll_ctl");
    }
    return peers;
}

/* Begins what is due on connections that have room, each in its turn. Looks again soon, as nothing else will wake it. */
static void begin_due(struct connection *peers) {
    static long next;
    for (long tried = 0; tried < option.connections && is_due(); tried++) {
        send_what_fits(&peers[next]);
        next = (next + 1) % option.connections;
    }
    struct timespec pause = {.tv_nsec = 20000};
    if (!is_due()) nanosleep(&pause, NULL);
}

static void run_until(struct connection *peers, uint64_t deadline, uint64_t limit) {
    struct epoll_event events[EVENTS];
    while (now() < deadline && (!limit || tally.answers < limit)) {
        if (interval) begin_due(peers);
        int ready = epoll_wait(poller, events, EVENTS, interval ? 0 : 50);
        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive_what_is_there(connection);
            send_what_fits(connection);
        }
    }
}

static double own_cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int words, char **word) {
    parse(words, word);
    uint8_t *frame = read_frame();
    make_crc_table();
    poller = epoll_create1(0);
    struct connection *peers = connect_all(frame);
    if (option.rate > 0) {
        interval = 1000000000u / (uint64_t)option.rate;
        due_at = now();
    }
    for (long i = 0; i < option.connections; i++) send_what_fits(&peers[i]);
    run_until(peers, now() + (uint64_t)(option.warm * 1e9), 0);
    uint64_t warm_errors = tally.errors;
    memset(&tally, 0, sizeof tally);
    memset(bucket, 0, sizeof bucket);
    double server = cpu_seconds(), client = own_cpu();
    uint64_t began = now();
    run_until(peers, began + (uint64_t)(option.seconds * 1e9), (uint64_t)option.limit);
    double seconds = (double)(now() - began) / 1e9;
    server = cpu_seconds() - server;
    client = own_cpu() - client;
    printf("{\"requests\": %llu, \"seconds\": %.6f, \"errors\": %llu, \"frame_bytes\": %zu, \"answer_bytes\": %llu, "
           "\"p50\": %.1f, \"p99\": %.1f, \"p999\": %.1f, \"longest\": %.1f, \"server_cpu\": %.3f, \"client_cpu\": %.3f}\n",
           (unsigned long long)tally.answers, seconds, (unsigned long long)(tally.errors + warm_errors), frame_size,
           (unsigned long long)tally.bytes, quantile(0.5), quantile(0.99), quantile(0.999),
           (double)tally.longest / 1000, server, client);
    return 0;
}
