/* The indexes of a log file, made from the headers of its batches, compiled and without the interpreter's lock: a worker
   that goes through a hundred megabytes holds up nobody who needs that lock.

   `walk` does for the batches of one piece of the file what `storage/log/indexes/indexed_file.py` does for each. It stops
   before the first header that is not sound, or not whole; the loop in Python looks at that one, and is the judge of it.

   Nothing here trusts a length: only headers are read, and only those that are whole in the piece. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "batch_fields.h"

/* Of the file: what comes next, and what is known so far. */
typedef struct {
    long long position, room, base_offset, next_offset, since, interval, max_time, max_time_offset, last_time;
} Place;

/* The entries of a piece; each is of a batch, and a batch has one at most. */
typedef struct {
    uint32_t *offsets, *positions, *time_offsets;
    int64_t *times;
    Py_ssize_t count, time_count;
} Entries;

/* The size of the batch whose header this is, or 0 where the loop in Python is to look at it. */
static long long sound_batch(const uint8_t *header, const Place *place, int64_t *last)
{
    int32_t length = (int32_t)big32(header + LENGTH_AT), delta = (int32_t)big32(header + LAST_OFFSET_DELTA_AT);
    int64_t base = big64(header);
    if (header[MAGIC_AT] != MAGIC || length < LENGTH_MIN || (long long)length + LOG_OVERHEAD > place->room)
        return 0;
    if (base < place->next_offset || delta < 0 || base > OFFSET_MAX - delta
        || base + delta - place->base_offset > INT32_MAX || place->position > UINT32_MAX)
        return 0;
    *last = base + delta;
    return (long long)length + LOG_OVERHEAD;
}

static void note(Place *place, Entries *entries, int64_t last, int64_t timestamp)
{
    if (timestamp > place->max_time) {
        place->max_time = timestamp;
        place->max_time_offset = last;
    }
    if (place->since <= place->interval)
        return;
    place->since = 0;
    entries->offsets[entries->count] = (uint32_t)(last - place->base_offset);
    entries->positions[entries->count++] = (uint32_t)place->position;
    if (place->max_time >= 0 && place->max_time > place->last_time) {
        place->last_time = place->max_time;
        entries->times[entries->time_count] = place->max_time;
        entries->time_offsets[entries->time_count++] = (uint32_t)(place->max_time_offset - place->base_offset);
    }
}

static void walk_through(const uint8_t *data, long long size, Place *place, Entries *entries)
{
    long long at = 0, one;
    int64_t last;
    while (size - at >= HEADER_SIZE && (one = sound_batch(data + at, place, &last)) != 0) {
        note(place, entries, last, big64(data + at + MAX_TIMESTAMP_AT));
        place->since += one;
        place->next_offset = last + 1;
        place->position += one;
        place->room -= one;
        at += one;
    }
}

/* Entries for as many batches as can begin in the piece; false where there is no memory. */
static int open_entries(Entries *entries, Py_ssize_t size)
{
    size_t most = (size_t)(size / HEADER_SIZE) + 1;
    memset(entries, 0, sizeof *entries);
    entries->offsets = malloc(most * sizeof *entries->offsets);
    entries->positions = malloc(most * sizeof *entries->positions);
    entries->time_offsets = malloc(most * sizeof *entries->time_offsets);
    entries->times = malloc(most * sizeof *entries->times);
    return entries->offsets && entries->positions && entries->time_offsets && entries->times;
}

static void close_entries(Entries *entries)
{
    free(entries->offsets);
    free(entries->positions);
    free(entries->time_offsets);
    free(entries->times);
}

static PyObject *found(const Place *place, const Entries *entries)
{
    Py_ssize_t four = (Py_ssize_t)sizeof(uint32_t), eight = (Py_ssize_t)sizeof(int64_t);
    return Py_BuildValue("(LLLLL)y#y#y#y#", place->position, place->next_offset, place->since, place->max_time,
                         place->max_time_offset, (char *)entries->offsets, entries->count * four,
                         (char *)entries->positions, entries->count * four, (char *)entries->times,
                         entries->time_count * eight, (char *)entries->time_offsets, entries->time_count * four);
}

static PyObject *walk(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    Place place;
    Entries entries;
    long long end;
    if (!PyArg_ParseTuple(args, "y*LLLL(LLLLL)", &data, &end, &place.base_offset, &place.interval, &place.last_time,
                          &place.position, &place.next_offset, &place.since, &place.max_time, &place.max_time_offset))
        return NULL;
    place.room = end - place.position;
    PyObject *result = NULL;
    if (open_entries(&entries, data.len)) {
        Py_BEGIN_ALLOW_THREADS
        walk_through(data.buf, data.len, &place, &entries);
        Py_END_ALLOW_THREADS
        result = found(&place, &entries);
    } else {
        PyErr_NoMemory();
    }
    close_entries(&entries);
    PyBuffer_Release(&data);
    return result;
}

static PyMethodDef functions[] = {
    {"walk", walk, METH_VARARGS, "The index entries of the batches in a piece of a log file."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.indexed", .m_doc = "Indexes of log files.", .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_indexed(void)
{
    return PyModuleDef_Init(&definition);
}
