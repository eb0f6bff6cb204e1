/* Produce requests that are sent again and again, compiled: received, recognised, checked, stamped and answered.

   Most clients repeat one Produce request with another batch in it. Where this module was built, such a connection gets
   a `Lane`, which receives for it: a request that differs from the remembered one in its batch only, and whose batch is
   plain, is copied to the `Run` of its partition. At the end of the round the log takes the run as a whole, and `answer`
   sends what each of its lanes is owed. Whatever is not recognised is left where it was received, and takes the ordinary
   way, which serves everything that a lane serves, with the same bytes.

   What replicas or the disk have to confirm first is taken out of the run as a `HeldRun`, which answers from its begin on
   as far as it is told. Its lanes go on receiving meanwhile: a lane's requests are of one partition, so that they are
   answered in their order. Before anything else is served for such a connection its requests are taken out again.

   Nothing here trusts a length: a frame is taken only if every part of it ends where the bytes received do. Sockets do
   not block, so the interpreter's lock is kept. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <structmember.h>

#include "batch_fields.h"
#include "crc32c.h"
#include "frames.h"
#include "sending.h"
#include "varints.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is known here of answers and batches is defined in `protocol/hot/produce_template.py` and `records/` (a plain
   batch: `records/plain.py`); `tests/native/test_fields.py` compares the two. */

/* How far behind the batch's offset an answer has the log's start. */
#define LOG_START_BEHIND 16
/* Uncompressed batches of more records are not counted by the ordinary way either, which then is to look at them. */
#define COUNTED_RECORDS_MAX 16
/* Bytes that a plain batch has at least; and to how many a byte of a block unfolds, by codec. */
#define PLAIN_SIZE_MIN (HEADER_SIZE + RECORD_BYTES_MIN)
static const uint32_t unfolds_max[CODEC_MAX + 1] = {1, 1032, 22, 255, 32768};
/* Copying more costs more than it saves. */
#define FRAME_MAX 4096
/* An answer holds a topic's name of at most 249 bytes. */
#define ANSWER_MAX 512
/* A run keeps so much memory from round to round. */
#define KEPT_MAX (64 * 1024)

/* Requests of a lane that may wait: SLOTS_MAX of `server/connection.py`. */
#define WAITING_MAX 32

/* -- the checksum */

static PyObject *checksum(PyObject *Py_UNUSED(module), PyObject *data)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t crc = crc32c(buffer.buf, (size_t)buffer.len);
    PyBuffer_Release(&buffer);
    return PyLong_FromUnsignedLong(crc);
}

/* -- a run: what the lanes of one partition have collected in a round */

typedef struct Lane Lane;

typedef struct {
    Lane *lane;
    uint32_t size;
    uint32_t count;
    uint32_t correlation;
    int64_t timestamp;
    int64_t first_offset; /* once it is stamped */
    int64_t producer; /* negative where it is not idempotent */
    int32_t sequence;
    int16_t epoch;
    char transactional;
} Request;

/* What waits of a run: requests[begun:length]. Those without a lane were taken out. */
typedef struct {
    PyObject_HEAD
    Request *requests;
    size_t begun, length;
} HeldRun;

typedef struct {
    PyObject_HEAD
    PyObject *owner;
    PyObject *gathered; /* the list that a run joins with its first request of a round */
    uint8_t *data;
    size_t size, room;
    Request *requests;
    size_t length, requests_room;
    long long max_timestamp;
    long long records;
    unsigned int largest;
    unsigned int attributes; /* bit n: some batch has the attributes n */
    unsigned int idempotent; /* how many batches have a producer's id */
    int shortest_ms;         /* of the times that clients give their requests */
} Run;

struct Lane {
    PyObject_HEAD
    int fd;
    Run *run;
    PyObject *token;
    uint8_t *repeated; /* prefix, trailer and answer, one behind the other */
    uint32_t prefix_size, trailer_size, answer_size;
    uint32_t offset_at; /* where the answer has the batch's first offset */
    char flexible, has_log_start;
    uint8_t transactional; /* the bit that its batches have and others have not, or none */
    char blocked; /* the socket did not take an answer: those that follow are left over as well, until it receives */
    int timeout_ms;
    unsigned int waiting; /* requests that are held */
    uint8_t key_version[KEY_VERSION_BYTES];
};

static int grow(void **data, size_t *room, size_t wanted, size_t item)
{
    if (wanted <= *room)
        return 0;
    size_t larger = *room ? *room : 64;
    while (larger < wanted)
        larger *= 2;
    void *moved = realloc(*data, larger * item);
    if (moved == NULL)
        return -1;
    *data = moved;
    *room = larger;
    return 0;
}

static void run_forget(Run *run)
{
    while (run->length)
        Py_DECREF((PyObject *)run->requests[--run->length].lane);
    run->size = 0;
    run->records = run->largest = run->attributes = run->idempotent = 0;
    run->max_timestamp = INT64_MIN;
    run->shortest_ms = INT32_MAX;
    if (run->room > KEPT_MAX) {
        free(run->data);
        run->data = NULL;
        run->room = 0;
    }
}

/* Takes a batch up; -1 where there is no memory. */
static int run_add(Run *run, Lane *lane, uint32_t correlation, const uint8_t *batch, uint32_t size)
{
    if (grow((void **)&run->data, &run->room, run->size + size, 1) < 0
        || grow((void **)&run->requests, &run->requests_room, run->length + 1, sizeof(Request)) < 0)
        return -1;
    if (run->length == 0 && PyList_Append(run->gathered, (PyObject *)run) < 0) {
        PyErr_Clear();
        return -1;
    }
    Request *request = &run->requests[run->length++];
    Py_INCREF((PyObject *)lane);
    request->lane = lane;
    request->size = size;
    request->count = big32(batch + COUNT_AT);
    request->correlation = correlation;
    request->timestamp = big64(batch + MAX_TIMESTAMP_AT);
    request->first_offset = -1;
    request->producer = big64(batch + PRODUCER_ID_AT);
    request->epoch = (int16_t)big16(batch + PRODUCER_EPOCH_AT);
    request->sequence = (int32_t)big32(batch + BASE_SEQUENCE_AT);
    request->transactional = lane->transactional != 0;
    run->idempotent += request->producer >= 0;
    memcpy(run->data + run->size, batch, size);
    run->size += size;
    run->records += request->count;
    run->attributes |= 1u << batch[ATTRIBUTES_AT + 1];
    if (size > run->largest)
        run->largest = size;
    if (request->timestamp > run->max_timestamp)
        run->max_timestamp = request->timestamp;
    if (lane->timeout_ms < run->shortest_ms)
        run->shortest_ms = lane->timeout_ms;
    return 0;
}

static PyObject *run_stamp(Run *run, PyObject *args)
{
    long long offset;
    int epoch;
    if (!PyArg_ParseTuple(args, "Li", &offset, &epoch))
        return NULL;
    PyObject *batches = PyList_New((Py_ssize_t)run->length);
    if (batches == NULL)
        return NULL;
    uint8_t *at = run->data;
    for (size_t i = 0; i < run->length; i++) {
        Request *request = &run->requests[i];
        request->first_offset = offset;
        put_big64(at, offset);
        put_big32(at + LEADER_EPOCH_AT, (uint32_t)epoch);
        at += request->size;
        PyObject *batch = Py_BuildValue("ILLL", (unsigned int)request->size, offset,
                                        offset + request->count - 1, (long long)request->timestamp);
        if (batch == NULL || PyList_SetItem(batches, (Py_ssize_t)i, batch) < 0) {
            Py_DECREF(batches);
            return NULL;
        }
        offset += request->count;
    }
    return batches;
}

static PyObject *run_producers(Run *run, PyObject *Py_UNUSED(ignored))
{
    PyObject *producers = PyList_New(0);
    for (size_t i = 0; producers != NULL && i < run->length; i++) {
        Request *request = &run->requests[i];
        if (request->producer < 0)
            continue;
        PyObject *entry = Py_BuildValue("nLiii", (Py_ssize_t)i, (long long)request->producer, (int)request->epoch,
                                        (int)request->sequence, (int)request->transactional);
        if (entry == NULL || PyList_Append(producers, entry) < 0)
            Py_CLEAR(producers);
        Py_XDECREF(entry);
    }
    return producers;
}

static PyObject *run_data(Run *run, PyObject *Py_UNUSED(ignored))
{
    return PyBytes_FromStringAndSize((const char *)run->data, (Py_ssize_t)run->size);
}

static PyObject *run_requests(Run *run, PyObject *Py_UNUSED(ignored))
{
    PyObject *requests = PyList_New((Py_ssize_t)run->length);
    if (requests == NULL)
        return NULL;
    for (size_t i = 0; i < run->length; i++) {
        Request *request = &run->requests[i];
        PyObject *token = request->lane->token ? request->lane->token : Py_None;
        PyObject *entry = Py_BuildValue("OiILL", token, (int)request->correlation, (unsigned int)request->size,
                                        (long long)request->first_offset,
                                        (long long)request->first_offset + request->count - 1);
        if (entry == NULL || PyList_SetItem(requests, (Py_ssize_t)i, entry) < 0) {
            Py_DECREF(requests);
            return NULL;
        }
    }
    return requests;
}

/* Sends one answer; 0 when all of it has left, else what is to be told: (token, rest), or (token, None) for a fault. */
static int lane_answer(Lane *lane, const Request *request, long long log_start, PyObject *left)
{
    uint8_t answer[ANSWER_MAX];
    if (lane->fd < 0)
        return 0;
    memcpy(answer, lane->repeated + lane->prefix_size + lane->trailer_size, lane->answer_size);
    put_big32(answer + CORRELATION_AT, request->correlation);
    put_big64(answer + lane->offset_at, request->first_offset);
    if (lane->has_log_start)
        put_big64(answer + lane->offset_at + LOG_START_BEHIND, log_start);
    return send_or_note(lane->fd, answer, lane->answer_size, lane->token, &lane->blocked, left);
}

static PyObject *run_answer(Run *run, PyObject *log_start)
{
    long long start = PyLong_AsLongLong(log_start);
    if (start == -1 && PyErr_Occurred())
        return NULL;
    PyObject *left = PyList_New(0);
    for (size_t i = 0; left != NULL && i < run->length; i++)
        if (lane_answer(run->requests[i].lane, &run->requests[i], start, left) < 0)
            Py_CLEAR(left);
    return left;
}

static PyObject *run_clear_requests(Run *run, PyObject *Py_UNUSED(ignored))
{
    run_forget(run);
    Py_RETURN_NONE;
}

static Py_ssize_t run_length(Run *run)
{
    return (Py_ssize_t)run->length;
}

static PyObject *run_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *owner, *gathered;
    if (!PyArg_ParseTuple(args, "OO", &owner, &gathered))
        return NULL;
    if (!PyList_Check(gathered)) {
        PyErr_SetString(PyExc_TypeError, "a run is gathered in a list");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Run *run = (Run *)allocate(type, 0);
    if (run != NULL) {
        run->owner = Py_NewRef(owner);
        run->gathered = Py_NewRef(gathered);
        run->max_timestamp = INT64_MIN;
        run->shortest_ms = INT32_MAX;
    }
    return (PyObject *)run;
}

static int run_traverse(Run *run, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)run));
    Py_VISIT(run->owner);
    Py_VISIT(run->gathered);
    for (size_t i = 0; i < run->length; i++)
        Py_VISIT((PyObject *)run->requests[i].lane);
    return 0;
}

static int run_tp_clear(Run *run)
{
    run_forget(run);
    Py_CLEAR(run->owner);
    Py_CLEAR(run->gathered);
    return 0;
}

static void run_dealloc(Run *run)
{
    PyTypeObject *type = Py_TYPE((PyObject *)run);
    PyObject_GC_UnTrack(run);
    run_tp_clear(run);
    free(run->data);
    free(run->requests);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(run);
    Py_DECREF(type);
}

static PyObject *run_lane(Run *run, PyObject *args);
static PyObject *run_hold(Run *run, PyObject *Py_UNUSED(ignored));

static PyMethodDef run_methods[] = {
    {"lane", (PyCFunction)run_lane, METH_VARARGS, "A lane that collects here."},
    {"stamp", (PyCFunction)run_stamp, METH_VARARGS, "Gives the batches their offsets and leader epoch."},
    {"producers", (PyCFunction)run_producers, METH_NOARGS, "Index, producer's id, epoch, sequence, and whether it is in a transaction, where there are."},
    {"data", (PyCFunction)run_data, METH_NOARGS, "The batches, one behind the other."},
    {"requests", (PyCFunction)run_requests, METH_NOARGS, "Token, correlation id, size, first and last offset of each."},
    {"answer", (PyCFunction)run_answer, METH_O, "Answers all; what the sockets did not take is returned."},
    {"hold", (PyCFunction)run_hold, METH_NOARGS, "Takes out what is answered later, and forgets the rest."},
    {"clear", (PyCFunction)run_clear_requests, METH_NOARGS, "Forgets what the round has collected."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef run_members[] = {
    {"owner", T_OBJECT, offsetof(Run, owner), READONLY, NULL},
    {"size", T_PYSSIZET, offsetof(Run, size), READONLY, NULL},
    {"records", T_LONGLONG, offsetof(Run, records), READONLY, NULL},
    {"max_timestamp", T_LONGLONG, offsetof(Run, max_timestamp), READONLY, NULL},
    {"largest", T_UINT, offsetof(Run, largest), READONLY, NULL},
    {"attributes", T_UINT, offsetof(Run, attributes), READONLY, NULL},
    {"idempotent", T_UINT, offsetof(Run, idempotent), READONLY, NULL},
    {"shortest_ms", T_INT, offsetof(Run, shortest_ms), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot run_slots[] = {
    {Py_tp_doc, "What the lanes of one partition have collected in a round."},
    {Py_tp_new, run_new},
    {Py_tp_traverse, run_traverse},
    {Py_tp_clear, run_tp_clear},
    {Py_tp_dealloc, run_dealloc},
    {Py_tp_methods, run_methods},
    {Py_tp_members, run_members},
    {Py_sq_length, run_length},
    {0, NULL},
};

static PyType_Spec run_spec = {
    "ottla.native.lane.Run", sizeof(Run), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, run_slots,
};

/* -- what waits of a run */

static PyTypeObject *held_type;

static PyObject *run_hold(Run *run, PyObject *Py_UNUSED(ignored))
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(held_type, Py_tp_alloc);
    HeldRun *held = (HeldRun *)allocate(held_type, 0);
    if (held == NULL)
        return NULL;
    held->requests = run->requests;
    held->length = run->length;
    for (size_t i = 0; i < held->length; i++)
        held->requests[i].lane->waiting++;
    run->requests = NULL;
    run->length = run->requests_room = 0;
    run_forget(run);
    return (PyObject *)held;
}

static void held_let_go(Request *request)
{
    Lane *lane = request->lane;
    request->lane = NULL;
    lane->waiting--;
    Py_DECREF((PyObject *)lane);
}

static long long last_of(const Request *request)
{
    return (long long)request->first_offset + request->count - 1;
}

static PyObject *held_answer(HeldRun *held, PyObject *args)
{
    long long end, log_start, at_most, answered = 0;
    if (!PyArg_ParseTuple(args, "LLL", &end, &log_start, &at_most))
        return NULL;
    PyObject *left = PyList_New(0);
    if (left == NULL)
        return NULL;
    for (; held->begun < held->length && answered < at_most; held->begun++) {
        Request *request = &held->requests[held->begun];
        if (request->lane == NULL)
            continue;
        if (last_of(request) >= end)
            break;
        int failed = lane_answer(request->lane, request, log_start, left) < 0;
        held_let_go(request);
        answered++;
        if (failed) {
            held->begun++;
            Py_DECREF(left);
            return NULL;
        }
    }
    return Py_BuildValue("LN", answered, left);
}

/* Takes out the requests of one lane, or all of them. */
static PyObject *held_take(HeldRun *held, PyObject *lane)
{
    PyObject *taken = PyList_New(0);
    for (size_t i = held->begun; taken != NULL && i < held->length; i++) {
        Request *request = &held->requests[i];
        if (request->lane == NULL || (lane != Py_None && (PyObject *)request->lane != lane))
            continue;
        PyObject *token = request->lane->token ? request->lane->token : Py_None;
        PyObject *entry = Py_BuildValue("OiLL", token, (int)request->correlation, (long long)request->first_offset,
                                        last_of(request));
        if (entry == NULL || PyList_Append(taken, entry) < 0)
            Py_CLEAR(taken);
        else
            held_let_go(request);
        Py_XDECREF(entry);
    }
    return taken;
}

static Py_ssize_t held_length(HeldRun *held)
{
    Py_ssize_t left = 0;
    for (size_t i = held->begun; i < held->length; i++)
        left += held->requests[i].lane != NULL;
    return left;
}

static int held_traverse(HeldRun *held, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)held));
    for (size_t i = held->begun; i < held->length; i++)
        Py_VISIT((PyObject *)held->requests[i].lane);
    return 0;
}

static int held_clear(HeldRun *held)
{
    for (size_t i = held->begun; i < held->length; i++)
        if (held->requests[i].lane != NULL)
            held_let_go(&held->requests[i]);
    held->begun = held->length;
    return 0;
}

static void held_dealloc(HeldRun *held)
{
    PyTypeObject *type = Py_TYPE((PyObject *)held);
    PyObject_GC_UnTrack(held);
    held_clear(held);
    free(held->requests);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(held);
    Py_DECREF(type);
}

static PyMethodDef held_methods[] = {
    {"answer", (PyCFunction)held_answer, METH_VARARGS, "Answers those that end below an offset, the first ones first."},
    {"take", (PyCFunction)held_take, METH_O, "Takes out those of a lane, or all: token, correlation id, offsets."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot held_slots[] = {
    {Py_tp_doc, "Requests of a run that are answered later."},
    {Py_tp_traverse, held_traverse},
    {Py_tp_clear, held_clear},
    {Py_tp_dealloc, held_dealloc},
    {Py_tp_methods, held_methods},
    {Py_sq_length, held_length},
    {0, NULL},
};

static PyType_Spec held_spec = {
    "ottla.native.lane.HeldRun",
    sizeof(HeldRun),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    held_slots,
};

/* -- a lane: a connection whose client repeats its request */

/* Whether the records' lengths, of one or two bytes each, fill an uncompressed batch exactly. */
static int records_are_whole(const uint8_t *at, const uint8_t *end, uint32_t count)
{
    while (count--) {
        if (at >= end)
            return 0;
        uint32_t length = *at++;
        if (length >= 128) {
            if (at >= end)
                return 0;
            length += ((uint32_t)*at++ << 7) - 128;
        }
        /* Zigzag: a length that is not negative is even, and its double. */
        if (length & 1 || length >= 16384 || length >> 1 > (size_t)(end - at))
            return 0;
        at += length >> 1;
    }
    return at == end;
}

/* Whether nothing about a batch is unusual; the log's own limits are compared with the whole run's. Its attributes are a
   codec and, on a lane of a transactional producer, that it is in a transaction; whether the log takes that codec, and
   whether the producer has a transaction open, the log says. */
static int is_plain(const uint8_t *batch, uint32_t size, uint8_t transactional)
{
    if (size < PLAIN_SIZE_MIN || big32(batch + LENGTH_AT) + LOG_OVERHEAD != size || batch[MAGIC_AT] != MAGIC)
        return 0;
    uint32_t count = big32(batch + COUNT_AT);
    uint8_t attributes = batch[ATTRIBUTES_AT + 1] ^ transactional;
    if (transactional && big64(batch + PRODUCER_ID_AT) < 0)
        return 0;
    return big64(batch) == 0 && batch[ATTRIBUTES_AT] == 0 && attributes <= CODEC_MAX && count > 0
           && (uint64_t)count * RECORD_BYTES_MIN <= (uint64_t)(size - HEADER_SIZE) * unfolds_max[attributes]
           && big32(batch + LAST_OFFSET_DELTA_AT) == count - 1
           && (big64(batch + PRODUCER_ID_AT) < 0 || (int32_t)big32(batch + BASE_SEQUENCE_AT) >= 0)
           && (attributes
               || (count <= COUNTED_RECORDS_MAX && records_are_whole(batch + HEADER_SIZE, batch + size, count)))
           && crc32c(batch + ATTRIBUTES_AT, size - ATTRIBUTES_AT) == big32(batch + CRC_AT);
}

/* The batch of a frame that is like the remembered one; its size, or 0 where the frame is another. */
static uint32_t find_batch(const Lane *lane, const uint8_t *frame, uint32_t size, const uint8_t **batch)
{
    uint32_t fixed = FIXED_HEAD + lane->prefix_size;
    if (size < fixed + HEADER_SIZE || size > FRAME_MAX || big32(frame) != size - LENGTH_BYTES
        || memcmp(frame + KEY_VERSION_AT, lane->key_version, KEY_VERSION_BYTES) != 0
        || memcmp(frame + FIXED_HEAD, lane->repeated, lane->prefix_size) != 0)
        return 0;
    /* There are at least 61 bytes more, so neither kind of length can reach beyond the frame. */
    const uint8_t *at = frame + fixed;
    uint32_t length;
    if (lane->flexible) {
        uint32_t value = 0, shift = 0;
        while (shift < 28 && *at & 128) {
            value |= (uint32_t)(*at++ & 127) << shift;
            shift += 7;
        }
        if (*at & 128)
            return 0;
        value |= (uint32_t)*at++ << shift;
        length = value - 1; /* 0 stands for no batch, and is then larger than any frame */
    }
    else {
        length = big32(at);
        at += 4;
    }
    uint32_t rest = size - (uint32_t)(at - frame);
    if (length > rest || rest - length != lane->trailer_size
        || memcmp(at + length, lane->repeated + lane->prefix_size, lane->trailer_size) != 0)
        return 0;
    *batch = at;
    return length;
}

static PyObject *lane_receive(Lane *lane, PyObject *view)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(view, &buffer, PyBUF_WRITABLE) < 0)
        return NULL;
    lane->blocked = 0; /* it is asked where nothing is unsent */
    ssize_t received = receive_whole(lane->fd, &buffer);
    long result = (long)received;
    if (received >= 0 && received <= FRAME_MAX && lane->run != NULL && lane->waiting < WAITING_MAX) {
        const uint8_t *batch;
        const uint8_t *frame = buffer.buf;
        uint32_t size = find_batch(lane, frame, (uint32_t)received, &batch);
        if (size && is_plain(batch, size, lane->transactional)
            && run_add(lane->run, lane, big32(frame + REQUEST_CORRELATION_AT), batch, size) == 0)
            result = TAKEN;
    }
    PyBuffer_Release(&buffer);
    return received < 0 ? NULL : PyLong_FromLong(result);
}

static PyObject *lane_close(Lane *lane, PyObject *Py_UNUSED(ignored))
{
    lane->fd = -1;
    Py_RETURN_NONE;
}

static int lane_traverse(Lane *lane, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)lane));
    Py_VISIT((PyObject *)lane->run);
    Py_VISIT(lane->token);
    return 0;
}

static int lane_clear(Lane *lane)
{
    lane->fd = -1;
    Py_CLEAR(lane->run);
    Py_CLEAR(lane->token);
    return 0;
}

static void lane_dealloc(Lane *lane)
{
    PyTypeObject *type = Py_TYPE((PyObject *)lane);
    PyObject_GC_UnTrack(lane);
    lane_clear(lane);
    free(lane->repeated);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(lane);
    Py_DECREF(type);
}

static PyMethodDef lane_methods[] = {
    {"receive", (PyCFunction)lane_receive, METH_O, "Like a socket's recv_into; TAKEN where a request needs no more."},
    {"close", (PyCFunction)lane_close, METH_NOARGS, "From now on it fails as a closed socket does."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef lane_members[] = {
    {"token", T_OBJECT, offsetof(Lane, token), READONLY, NULL},
    {"waiting", T_UINT, offsetof(Lane, waiting), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot lane_slots[] = {
    {Py_tp_doc, "A connection whose client repeats its request."},
    {Py_tp_members, lane_members},
    {Py_tp_traverse, lane_traverse},
    {Py_tp_clear, lane_clear},
    {Py_tp_dealloc, lane_dealloc},
    {Py_tp_methods, lane_methods},
    {0, NULL},
};

static PyType_Spec lane_spec = {
    "ottla.native.lane.Lane",
    sizeof(Lane),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    lane_slots,
};

static PyTypeObject *lane_type;

static PyObject *run_lane(Run *run, PyObject *args)
{
    int fd, version, flexible, offset_at, has_log_start, timeout_ms, transactional;
    PyObject *token;
    const char *prefix, *trailer, *answer;
    Py_ssize_t prefix_size, trailer_size, answer_size;
    if (!PyArg_ParseTuple(args, "iOipy#y#y#ipip", &fd, &token, &version, &flexible, &prefix, &prefix_size, &trailer,
                          &trailer_size, &answer, &answer_size, &offset_at, &has_log_start,
                          &timeout_ms, &transactional))
        return NULL;
    if (prefix_size > FRAME_MAX || trailer_size > FRAME_MAX || answer_size > ANSWER_MAX
        || offset_at < CORRELATION_END
        || offset_at > answer_size - (has_log_start ? LOG_START_BEHIND + 8 : LOG_START_BEHIND)) {
        PyErr_SetString(PyExc_ValueError, "a lane's request and answer are short, and the answer has its numbers");
        return NULL;
    }
    uint8_t *repeated = malloc((size_t)(prefix_size + trailer_size + answer_size));
    if (repeated == NULL)
        return PyErr_NoMemory();
    memcpy(repeated, prefix, (size_t)prefix_size);
    memcpy(repeated + prefix_size, trailer, (size_t)trailer_size);
    memcpy(repeated + prefix_size + trailer_size, answer, (size_t)answer_size);
    allocfunc allocate = (allocfunc)PyType_GetSlot(lane_type, Py_tp_alloc);
    Lane *lane = (Lane *)allocate(lane_type, 0);
    if (lane == NULL) {
        free(repeated);
        return NULL;
    }
    lane->fd = fd;
    lane->run = (Run *)Py_NewRef((PyObject *)run);
    lane->token = Py_NewRef(token);
    lane->repeated = repeated;
    lane->prefix_size = (uint32_t)prefix_size;
    lane->trailer_size = (uint32_t)trailer_size;
    lane->answer_size = (uint32_t)answer_size;
    lane->offset_at = (uint32_t)offset_at;
    lane->flexible = (char)flexible;
    lane->has_log_start = (char)has_log_start;
    lane->transactional = transactional ? TRANSACTIONAL : 0;
    lane->timeout_ms = timeout_ms;
    put_big32(lane->key_version, (uint32_t)version); /* the key of Produce is 0 */
    return (PyObject *)lane;
}

/* -- the module */

static PyMethodDef functions[] = {
    {"crc32c", checksum, METH_O, "What is compared with a batch's checksum; for tests."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "ottla.native.lane", "Produce requests that are sent again and again.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_lane(void)
{
    crc32c_prepare();
    PyObject *module = PyModule_Create(&definition);
    PyObject *run = PyType_FromSpec(&run_spec);
    lane_type = (PyTypeObject *)PyType_FromSpec(&lane_spec);
    held_type = (PyTypeObject *)PyType_FromSpec(&held_spec);
    if (module == NULL || run == NULL || lane_type == NULL || held_type == NULL || PyModule_AddObjectRef(module, "Run", run) < 0
        || PyModule_AddObjectRef(module, "Lane", (PyObject *)lane_type) < 0
        || PyModule_AddObjectRef(module, "HeldRun", (PyObject *)held_type) < 0
        || PyModule_AddIntConstant(module, "TAKEN", TAKEN) < 0) {
        Py_XDECREF(run);
        Py_XDECREF(module);
        return NULL;
    }
    Py_DECREF(run);
    return module;
}
