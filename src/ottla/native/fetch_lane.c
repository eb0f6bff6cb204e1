/* Fetch requests that are sent again and again with another offset, compiled: received, recognised, looked up, read and
   answered.

   A client that fetches without sessions repeats one request with another offset in it. Where this module was built, the
   connection of such a client gets a `FetchLane`, which receives for it: a request that differs from the remembered one in
   its offset only has its batches read from the segment's file behind a header, into memory of the `FetchRun` that all
   lanes share. At the end of the round `answer` sends what stands there. It does what `FetchHandler._serve_alike` does,
   asks for the same, and adds to the same count.

   It holds no state of a log: leader, policy, places and segment are asked for each request, as Python's objects. Whatever
   is not as it has to be is left where it was received, and takes the ordinary way, which serves everything that a lane
   serves, with the same bytes: a wait, an offset that nobody has just read up to, a sealed segment that is not in memory,
   an answer that is too long to be copied, a fault.

   Nothing here trusts a length: a frame is taken only if it is as long as the remembered one. Sockets do not block, so the
   interpreter's lock is kept; files are read where the ordinary way reads them under it too. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* preadv2 */
#endif
#include <Python.h>
#include <structmember.h>

#include "batch_fields.h"
#include "frames.h"
#include "sending.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* What is known here of answers is defined in `protocol/hot/fetch_template.py`; `tests/native/test_fields.py` compares. */

/* The key of Fetch. */
#define FETCH 1
#define OFFSET_BYTES 8
/* What is remembered of a request at the most. */
#define REMEMBERED_MAX 1024
/* What stands in an answer besides records and numbers: a topic's name or id, and some constants. */
#define CONSTANT_MAX 1024
/* An answer that is longer goes by sendfile, out of the ordinary way: FIRST_READ_BYTES of `server/buffers.py`. */
#define ANSWER_MAX (64 * 1024)
/* Answers of a round that stand in memory. When there would be more, those that are there are sent before the round's end:
   they are read and sent while the processor still has them in its cache. */
#define RUN_MAX (256 * 1024)
/* A length as a varint: five times seven bits. */
#define LENGTH_FIELD_MAX 5

/* Names of what is asked for, made once. */
static PyObject *name_number, *name_active, *name_log, *name_epoch, *name_high_watermark, *name_end_offset,
    *name_start_offset, *name_size, *name_sealed, *name_file, *name_fileno, *name_closed, *name_answers, *name_bytes_out,
    *name_loaded, *name_is_stable;

/* -- a run: the answers of all lanes in a round */

typedef struct FetchLane FetchLane;

typedef struct {
    FetchLane *lane;
    uint32_t at, size;
} Answer;

typedef struct {
    PyObject_HEAD
    uint8_t *data; /* RUN_MAX bytes, or NULL */
    uint32_t used;
    Answer *answers;
    size_t sent, length, room; /* answers[sent:length] are yet to be sent */
    Py_ssize_t taken;          /* requests since the round began, those that were sent early among them */
    PyObject *left;            /* what sockets did not take of those that were sent early; NULL: nothing */
    char has_room;             /* whether answers may be copied at all */
    char broken;               /* there was no memory to say what has not left */
} FetchRun;

struct FetchLane {
    PyObject_HEAD
    int fd;
    FetchRun *run;
    PyObject *peer, *policy, *leader, *log, *producers, *places, *known, *remember, *near, *traffic;
    long long policy_number, epoch, min_bytes, max_bytes;
    uint8_t *repeated; /* prefix, suffix, middle, rest and tail, one behind the other */
    uint32_t prefix_size, suffix_size, middle_size, rest_size, tail_size;
    uint8_t key_version[KEY_VERSION_BYTES];
    char compact, has_log_start;
    unsigned int waiting; /* always 0: nothing of a lane is held longer than its round */
};

/* Sends one answer. What did not leave is put on the list: (peer, rest), or (peer, None) for a fault. */
static int send_one(const FetchRun *run, const Answer *answer, PyObject *left)
{
    FetchLane *lane = answer->lane;
    if (lane->fd < 0 || lane->peer == NULL)
        return 0;
    PyObject *closed = PyObject_GetAttr(lane->peer, name_closed);
    if (closed == NULL)
        return -1;
    Py_DECREF(closed);
    if (closed != Py_False)
        return 0;
    char blocked = 0; /* a lane has one answer a round */
    return send_or_note(lane->fd, run->data + answer->at, answer->size, lane->peer, &blocked, left);
}

static void run_forget(FetchRun *run)
{
    while (run->length)
        Py_DECREF((PyObject *)run->answers[--run->length].lane);
    run->used = 0;
    run->sent = 0;
}

/* Sends all that is there; -1 with an exception set where it cannot be said what has left. */
static int send_all(FetchRun *run)
{
    if (run->left == NULL && (run->left = PyList_New(0)) == NULL)
        return -1;
    for (; run->sent < run->length; run->sent++)
        if (send_one(run, &run->answers[run->sent], run->left) < 0)
            return -1;
    run_forget(run);
    return 0;
}

static PyObject *run_answer(FetchRun *run, PyObject *Py_UNUSED(ignored))
{
    if (run->broken)
        return PyErr_NoMemory();
    if (send_all(run) < 0)
        return NULL;
    PyObject *left = run->left;
    run->left = NULL;
    run->taken = 0;
    return left;
}

/* Forgets the round; returns whom it owes something, and what had left of it only in part. */
static PyObject *run_give_up(FetchRun *run, PyObject *Py_UNUSED(ignored))
{
    PyObject *owed = PyList_New(0);
    for (size_t i = run->sent; owed != NULL && i < run->length; i++)
        if (run->answers[i].lane->peer != NULL && PyList_Append(owed, run->answers[i].lane->peer) < 0)
            Py_CLEAR(owed);
    for (Py_ssize_t i = 0; owed != NULL && run->left != NULL && i < PyList_Size(run->left); i++)
        if (PyList_Append(owed, PyTuple_GetItem(PyList_GetItem(run->left, i), 0)) < 0)
            Py_CLEAR(owed);
    if (owed == NULL)
        return NULL;
    run_forget(run);
    Py_CLEAR(run->left);
    run->taken = 0;
    run->broken = 0;
    return owed;
}

/* Memory for an answer of this size, or NULL; what stands there is sent where there is no room behind it. */
static uint8_t *room_for(FetchRun *run, size_t size)
{
    if (run->data == NULL && (run->data = malloc(RUN_MAX)) == NULL)
        return NULL;
    if (run->broken)
        return NULL;
    if (run->used + size > RUN_MAX && send_all(run) < 0) {
        PyErr_Clear(); /* the round's end meets it again */
        run->broken = 1;
        return NULL;
    }
    if (run->length == run->room) {
        size_t room = run->room ? 2 * run->room : 64;
        Answer *moved = realloc(run->answers, room * sizeof(Answer));
        if (moved == NULL)
            return NULL;
        run->answers = moved;
        run->room = room;
    }
    return run->data + run->used;
}

static Py_ssize_t run_length(FetchRun *run)
{
    return run->taken;
}

static PyObject *run_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    if (!PyArg_ParseTuple(args, ""))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    FetchRun *run = (FetchRun *)allocate(type, 0);
    if (run != NULL)
        run->has_room = 1;
    return (PyObject *)run;
}

static int run_traverse(FetchRun *run, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)run));
    Py_VISIT(run->left);
    for (size_t i = 0; i < run->length; i++)
        Py_VISIT((PyObject *)run->answers[i].lane);
    return 0;
}

static int run_tp_clear(FetchRun *run)
{
    run_forget(run);
    Py_CLEAR(run->left);
    return 0;
}

static void run_dealloc(FetchRun *run)
{
    PyTypeObject *type = Py_TYPE((PyObject *)run);
    PyObject_GC_UnTrack(run);
    run_tp_clear(run);
    free(run->data);
    free(run->answers);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(run);
    Py_DECREF(type);
}

static PyObject *run_lane(FetchRun *run, PyObject *args);

static PyMethodDef run_methods[] = {
    {"lane", (PyCFunction)run_lane, METH_VARARGS, "A lane whose answers stand here."},
    {"answer", (PyCFunction)run_answer, METH_NOARGS, "Sends all answers; what the sockets did not take is returned."},
    {"give_up", (PyCFunction)run_give_up, METH_NOARGS, "Forgets all answers, and says whose they were."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef run_members[] = {
    {"has_room", T_BOOL, offsetof(FetchRun, has_room), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot run_slots[] = {
    {Py_tp_doc, "The answers that the lanes of fetching connections have made in a round."},
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
    "ottla.native.fetch_lane.FetchRun", sizeof(FetchRun), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, run_slots,
};

/* -- what is asked of Python's objects: 0 where it is not as it has to be, perhaps with an exception */

static int get_number(PyObject *object, PyObject *name, long long *number)
{
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL)
        return 0;
    *number = PyLong_AsLongLong(value);
    Py_DECREF(value);
    return *number != -1 || !PyErr_Occurred();
}

static int is_number(PyObject *object, PyObject *name, long long number)
{
    long long found;
    return get_number(object, name, &found) && found == number;
}

static int is_object(PyObject *object, PyObject *name, const PyObject *wanted)
{
    PyObject *value = PyObject_GetAttr(object, name);
    Py_XDECREF(value);
    return value != NULL && value == wanted;
}

/* Where an offset lies, as `Places` remembers it. The segment is borrowed from the spot. */
typedef struct {
    PyObject *spot, *segment;
    long long position, first_size, next_offset;
} Found;

/* Takes what `of` says of an offset; 0 where it says nothing, or nobody has looked at the batch there. */
static int take_spot(PyObject *of, PyObject *offset, Found *found)
{
    Py_XDECREF(found->spot);
    found->spot = PyObject_CallFunctionObjArgs(of, offset, NULL);
    return found->spot != NULL && found->spot != Py_None
           && PyArg_ParseTuple(found->spot, "OLLL", &found->segment, &found->position, &found->first_size,
                               &found->next_offset)
           && found->first_size > 0;
}

/* What nobody knows is looked up, unless that might wait for the disk. */
static int find(const FetchLane *lane, long long number, Found *found)
{
    PyObject *offset = PyLong_FromLongLong(number);
    if (offset == NULL)
        return 0;
    int result = take_spot(lane->known, offset, found) || (!PyErr_Occurred() && take_spot(lane->near, offset, found));
    Py_DECREF(offset);
    return result;
}

/* The file of a segment, which this may open; -1 where there is none. */
static int file_of(PyObject *segment)
{
    PyObject *file = PyObject_GetAttr(segment, name_file);
    PyObject *number = file == NULL ? NULL : PyObject_CallMethodObjArgs(file, name_fileno, NULL);
    Py_XDECREF(file);
    if (number == NULL)
        return -1;
    long fd = PyLong_AsLong(number);
    Py_DECREF(number);
    return (int)fd;
}

/* Reads from a file; from a sealed one what is in memory only, where the system can say that. */
static ssize_t read_at(int fd, uint8_t *to, size_t size, off_t position, int sealed)
{
#ifdef RWF_NOWAIT
    if (sealed) {
        struct iovec vector = {to, size};
        ssize_t got = preadv2(fd, &vector, 1, position, RWF_NOWAIT);
        if (got >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS))
            return got;
    }
#else
    (void)sealed;
#endif
    return pread(fd, to, size, position);
}

/* Notes where the second batch lies, if its header was read: the client's next request begins there. */
static int note_next(const FetchLane *lane, const Found *found, const uint8_t *read, long long got, long long segment_size)
{
    if (found->first_size + HEADER_SIZE > got)
        return 1;
    const uint8_t *header = read + found->first_size;
    int64_t base = big64(header), end;
    int32_t length = (int32_t)big32(header + LENGTH_AT), delta = (int32_t)big32(header + LAST_OFFSET_DELTA_AT);
    long long position = found->position + found->first_size;
    if (length < LENGTH_MIN || length > segment_size - position - LOG_OVERHEAD || header[MAGIC_AT] != MAGIC || base < 0
        || delta < 0 || __builtin_add_overflow(base, (int64_t)delta + 1, &end))
        return 1;
    PyObject *done = PyObject_CallFunction(lane->remember, "L(OLLL)", found->next_offset, found->segment, position,
                                           (long long)length + LOG_OVERHEAD, (long long)end);
    Py_XDECREF(done);
    return done != NULL;
}

/* -- the answer's head: AnswerHead.fill */

static uint8_t *put_all(uint8_t *at, const uint8_t *what, uint32_t size)
{
    memcpy(at, what, size);
    return at + size;
}

static uint32_t head_max(const FetchLane *lane)
{
    return CORRELATION_END + lane->middle_size + 3 * OFFSET_BYTES + lane->rest_size + LENGTH_FIELD_MAX;
}

static uint32_t length_field(uint8_t *at, uint32_t size, int compact)
{
    if (!compact) {
        put_big32(at, size);
        return 4;
    }
    uint32_t count = 0;
    for (size++; size > 127; size >>= 7)
        at[count++] = (uint8_t)(size | 128);
    at[count++] = (uint8_t)size;
    return count;
}

static uint32_t head_size(const FetchLane *lane, uint32_t size)
{
    uint8_t field[LENGTH_FIELD_MAX];
    return CORRELATION_END + lane->middle_size + (2u + (uint32_t)lane->has_log_start) * OFFSET_BYTES + lane->rest_size
           + length_field(field, size, lane->compact);
}

static void fill_head(const FetchLane *lane, uint8_t *data, uint32_t head, uint32_t correlation, long long high_watermark,
                      long long log_start, uint32_t size)
{
    const uint8_t *middle = lane->repeated + lane->prefix_size + lane->suffix_size;
    put_big32(data, head - LENGTH_BYTES + size + lane->tail_size);
    put_big32(data + CORRELATION_AT, correlation);
    uint8_t *at = put_all(data + CORRELATION_END, middle, lane->middle_size);
    /* No transaction is open: what is committed is stable. */
    const long long numbers[] = {high_watermark, high_watermark, log_start};
    for (int i = 0; i < 2 + lane->has_log_start; i++, at += OFFSET_BYTES)
        put_big64(at, numbers[i]);
    at = put_all(at, middle + lane->middle_size, lane->rest_size);
    length_field(at, size, lane->compact);
}

/* -- a lane */

/* Whether the leader is the one that was asked then, as it was, and nothing stands before the answer. */
static int is_as_before(const FetchLane *lane)
{
    PyObject *answers;
    if (!is_number(lane->policy, name_number, lane->policy_number) || !is_object(lane->leader, name_active, Py_True)
        || !is_object(lane->leader, name_log, lane->log) || !is_number(lane->leader, name_epoch, lane->epoch)
        || (answers = PyObject_GetAttr(lane->peer, name_answers)) == NULL)
        return 0;
    Py_ssize_t before = PyObject_Size(answers);
    Py_DECREF(answers);
    return before == 0;
}

/* Whether no transaction is open in the log, so that its last stable offset is the high watermark. */
static int is_stable(const FetchLane *lane)
{
    PyObject *producers = PyObject_GetAttr(lane->producers, name_loaded);
    if (producers == NULL)
        return 0;
    int result = producers == Py_None || is_object(producers, name_is_stable, Py_True);
    Py_DECREF(producers);
    return result;
}

static int count(const FetchLane *lane, long long size)
{
    long long so_far;
    if (!get_number(lane->traffic, name_bytes_out, &so_far))
        return 0;
    PyObject *sum = PyLong_FromLongLong(so_far + size);
    int result = sum != NULL && PyObject_SetAttr(lane->traffic, name_bytes_out, sum) == 0;
    Py_XDECREF(sum);
    return result;
}

/* Makes the answer from a place that is known; 0 where the ordinary way is to look at it. */
static int read_answer(FetchLane *lane, const Found *found, uint32_t correlation, long long high_watermark,
                       long long log_start)
{
    FetchRun *run = lane->run;
    long long segment_size;
    if (!get_number(found->segment, name_size, &segment_size))
        return 0;
    long long size = segment_size - found->position;
    if (size > lane->max_bytes)
        size = lane->max_bytes > found->first_size ? lane->max_bytes : found->first_size;
    if (size < lane->min_bytes || size < 1 || size > ANSWER_MAX
        || size + head_max(lane) + lane->tail_size + HEADER_SIZE > ANSWER_MAX)
        return 0;
    int sealed = is_object(found->segment, name_sealed, Py_True);
    int fd = file_of(found->segment);
    if (fd < 0)
        return 0;
    uint32_t head = head_size(lane, (uint32_t)size), whole = head + (uint32_t)size + lane->tail_size;
    uint8_t *data = room_for(run, whole + HEADER_SIZE);
    if (data == NULL)
        return 0;
    /* With the header behind the records, which says where the next place is. */
    long long got = read_at(fd, data + head, (size_t)size + HEADER_SIZE, (off_t)found->position, sealed);
    if (got < size || !note_next(lane, found, data + head, got, segment_size) || !count(lane, size))
        return 0;
    fill_head(lane, data, head, correlation, high_watermark, log_start, (uint32_t)size);
    put_all(data + head + size, lane->repeated + lane->prefix_size + lane->suffix_size + lane->middle_size + lane->rest_size,
            lane->tail_size);
    run->answers[run->length++] = (Answer){(FetchLane *)Py_NewRef((PyObject *)lane), run->used, whole};
    run->used += whole;
    run->taken++;
    return 1;
}

static int serve(FetchLane *lane, uint32_t correlation, long long offset)
{
    long long high_watermark, end_offset, log_start;
    if (!lane->run->has_room || !is_as_before(lane) || !is_stable(lane)
        || !get_number(lane->leader, name_high_watermark, &high_watermark)
        || !get_number(lane->places, name_end_offset, &end_offset)
        || !get_number(lane->places, name_start_offset, &log_start) || high_watermark != end_offset || offset < log_start)
        return 0;
    Found found = {NULL, NULL, 0, 0, 0};
    int result = find(lane, offset, &found) && read_answer(lane, &found, correlation, high_watermark, log_start);
    Py_XDECREF(found.spot);
    return result;
}

/* Whether a frame differs from the remembered one in correlation id and offset only. */
static int is_like(const FetchLane *lane, const uint8_t *frame, size_t size)
{
    size_t offset_at = FIXED_HEAD + lane->prefix_size;
    return size == offset_at + OFFSET_BYTES + lane->suffix_size && big32(frame) == size - LENGTH_BYTES
           && memcmp(frame + KEY_VERSION_AT, lane->key_version, KEY_VERSION_BYTES) == 0
           && memcmp(frame + FIXED_HEAD, lane->repeated, lane->prefix_size) == 0
           && memcmp(frame + offset_at + OFFSET_BYTES, lane->repeated + lane->prefix_size, lane->suffix_size) == 0;
}

static PyObject *lane_receive(FetchLane *lane, PyObject *view)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(view, &buffer, PyBUF_WRITABLE) < 0)
        return NULL;
    ssize_t received = receive_whole(lane->fd, &buffer);
    long result = (long)received;
    const uint8_t *frame = buffer.buf;
    if (received >= 0 && lane->run != NULL && is_like(lane, frame, (size_t)received)) {
        if (serve(lane, big32(frame + REQUEST_CORRELATION_AT), big64(frame + FIXED_HEAD + lane->prefix_size)))
            result = TAKEN;
        else
            PyErr_Clear(); /* the ordinary way meets it again, and says so */
    }
    PyBuffer_Release(&buffer);
    return received < 0 ? NULL : PyLong_FromLong(result);
}

static PyObject *lane_close(FetchLane *lane, PyObject *Py_UNUSED(ignored))
{
    lane->fd = -1;
    Py_RETURN_NONE;
}

static int lane_traverse(FetchLane *lane, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE((PyObject *)lane));
    Py_VISIT((PyObject *)lane->run);
    Py_VISIT(lane->peer);
    Py_VISIT(lane->policy);
    Py_VISIT(lane->leader);
    Py_VISIT(lane->log);
    Py_VISIT(lane->producers);
    Py_VISIT(lane->places);
    Py_VISIT(lane->known);
    Py_VISIT(lane->remember);
    Py_VISIT(lane->near);
    Py_VISIT(lane->traffic);
    return 0;
}

static int lane_clear(FetchLane *lane)
{
    lane->fd = -1;
    Py_CLEAR(lane->run);
    Py_CLEAR(lane->peer);
    Py_CLEAR(lane->policy);
    Py_CLEAR(lane->leader);
    Py_CLEAR(lane->log);
    Py_CLEAR(lane->producers);
    Py_CLEAR(lane->places);
    Py_CLEAR(lane->known);
    Py_CLEAR(lane->remember);
    Py_CLEAR(lane->near);
    Py_CLEAR(lane->traffic);
    return 0;
}

static void lane_dealloc(FetchLane *lane)
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
    {"token", T_OBJECT, offsetof(FetchLane, peer), READONLY, NULL},
    {"waiting", T_UINT, offsetof(FetchLane, waiting), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot lane_slots[] = {
    {Py_tp_doc, "A connection whose client repeats its Fetch."},
    {Py_tp_members, lane_members},
    {Py_tp_traverse, lane_traverse},
    {Py_tp_clear, lane_clear},
    {Py_tp_dealloc, lane_dealloc},
    {Py_tp_methods, lane_methods},
    {0, NULL},
};

static PyType_Spec lane_spec = {
    "ottla.native.fetch_lane.FetchLane",
    sizeof(FetchLane),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    lane_slots,
};

static PyTypeObject *lane_type;

/* What a lane repeats, as it is given. */
typedef struct {
    const char *data;
    Py_ssize_t size;
} Part;

static uint8_t *joined(const Part *parts, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += (size_t)parts[i].size;
    uint8_t *whole = malloc(size ? size : 1), *at = whole;
    for (size_t i = 0; whole != NULL && i < count; i++)
        at = put_all(at, (const uint8_t *)parts[i].data, (uint32_t)parts[i].size);
    return whole;
}

enum { PREFIX, SUFFIX, MIDDLE, REST, TAIL, PARTS };

static PyObject *run_lane(FetchRun *run, PyObject *args)
{
    int fd, version, has_log_start, compact;
    PyObject *peer, *policy, *leader, *log, *producers, *places, *known, *remember, *near, *traffic;
    long long policy_number, epoch, min_bytes, max_bytes;
    Part parts[PARTS];
    if (!PyArg_ParseTuple(args, "iOi(y#y#)(OL)(OLOO)(OOOO)(OLL)(y#y#y#pp):lane", &fd, &peer, &version, &parts[PREFIX].data,
                          &parts[PREFIX].size, &parts[SUFFIX].data, &parts[SUFFIX].size, &policy, &policy_number, &leader,
                          &epoch, &log, &producers, &places, &known, &remember, &near, &traffic, &min_bytes, &max_bytes, &parts[MIDDLE].data,
                          &parts[MIDDLE].size, &parts[REST].data, &parts[REST].size, &parts[TAIL].data, &parts[TAIL].size,
                          &has_log_start, &compact))
        return NULL;
    if (parts[PREFIX].size + parts[SUFFIX].size > REMEMBERED_MAX
        || parts[MIDDLE].size + parts[REST].size + parts[TAIL].size > CONSTANT_MAX) {
        PyErr_SetString(PyExc_ValueError, "a lane's request is short, and so is what its answer has besides records");
        return NULL;
    }
    uint8_t *repeated = joined(parts, PARTS);
    if (repeated == NULL)
        return PyErr_NoMemory();
    allocfunc allocate = (allocfunc)PyType_GetSlot(lane_type, Py_tp_alloc);
    FetchLane *lane = (FetchLane *)allocate(lane_type, 0);
    if (lane == NULL) {
        free(repeated);
        return NULL;
    }
    lane->fd = fd;
    lane->run = (FetchRun *)Py_NewRef((PyObject *)run);
    lane->peer = Py_NewRef(peer);
    lane->policy = Py_NewRef(policy);
    lane->leader = Py_NewRef(leader);
    lane->log = Py_NewRef(log);
    lane->producers = Py_NewRef(producers);
    lane->places = Py_NewRef(places);
    lane->known = Py_NewRef(known);
    lane->remember = Py_NewRef(remember);
    lane->near = Py_NewRef(near);
    lane->traffic = Py_NewRef(traffic);
    lane->policy_number = policy_number;
    lane->epoch = epoch;
    lane->min_bytes = min_bytes;
    lane->max_bytes = max_bytes;
    lane->repeated = repeated;
    lane->prefix_size = (uint32_t)parts[PREFIX].size;
    lane->suffix_size = (uint32_t)parts[SUFFIX].size;
    lane->middle_size = (uint32_t)parts[MIDDLE].size;
    lane->rest_size = (uint32_t)parts[REST].size;
    lane->tail_size = (uint32_t)parts[TAIL].size;
    lane->has_log_start = (char)has_log_start;
    lane->compact = (char)compact;
    put_big32(lane->key_version, (uint32_t)FETCH << 16 | (uint32_t)version);
    return (PyObject *)lane;
}

/* -- the module */

static int make_names(void)
{
    static const struct {
        PyObject **name;
        const char *text;
    } names[] = {
        {&name_number, "number"}, {&name_active, "active"}, {&name_log, "log"}, {&name_epoch, "epoch"},
        {&name_high_watermark, "high_watermark"}, {&name_end_offset, "end_offset"}, {&name_start_offset, "start_offset"},
        {&name_size, "size"}, {&name_sealed, "sealed"}, {&name_file, "file"}, {&name_fileno, "fileno"},
        {&name_closed, "closed"}, {&name_answers, "answers"}, {&name_bytes_out, "bytes_out"},
        {&name_loaded, "loaded"}, {&name_is_stable, "is_stable"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*names[i].name = PyUnicode_InternFromString(names[i].text)) == NULL)
            return -1;
    return 0;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.fetch_lane", .m_doc = "Fetch requests that are sent again and again.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit_fetch_lane(void)
{
    PyObject *module = PyModule_Create(&definition);
    PyObject *run = PyType_FromSpec(&run_spec);
    lane_type = (PyTypeObject *)PyType_FromSpec(&lane_spec);
    if (module == NULL || run == NULL || lane_type == NULL || make_names() < 0
        || PyModule_AddObjectRef(module, "FetchRun", run) < 0
        || PyModule_AddObjectRef(module, "FetchLane", (PyObject *)lane_type) < 0
        || PyModule_AddIntConstant(module, "TAKEN", TAKEN) < 0) {
        Py_XDECREF(run);
        Py_XDECREF(module);
        return NULL;
    }
    Py_DECREF(run);
    return module;
}
