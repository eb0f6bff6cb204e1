/* The batches that a leader's answer brings, compiled: walked through in one go where nothing about them is unusual.

   `walk` does for many batches what `storage/log/replica_append.py` does for one: it looks at the header, the place in
   the log and the checksum. It stops before the first batch that is not sound, not whole, of another leader epoch, of a
   transaction, or beyond the segment's limits; the loop in Python looks at that one, and is the judge of it.

   Nothing here trusts a length: a batch is looked at only if all of it ends where the bytes do. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "batch_fields.h"
#include "crc32c.h"

/* Where the log stands: what the next batch has to fit. */
typedef struct {
    long long next_offset, room, roll_offset, roll_timestamp;
    int leader_epoch;
} Place;

/* The size of the batch that begins here, or 0 where the loop in Python is to look at it. */
static uint32_t usual_batch(const uint8_t *batch, Py_ssize_t left, const Place *place)
{
    if (left < HEADER_SIZE || batch[MAGIC_AT] != MAGIC)
        return 0;
    int32_t length = (int32_t)big32(batch + LENGTH_AT);
    if (length < LENGTH_MIN || length > left - LOG_OVERHEAD)
        return 0;
    uint32_t size = (uint32_t)length + LOG_OVERHEAD;
    int64_t base = big64(batch);
    int32_t delta = (int32_t)big32(batch + LAST_OFFSET_DELTA_AT);
    if (base < place->next_offset || delta < 0 || base > OFFSET_MAX - delta || base + delta > place->roll_offset
        || size > place->room || big64(batch + MAX_TIMESTAMP_AT) > place->roll_timestamp
        || (int32_t)big32(batch + LEADER_EPOCH_AT) != place->leader_epoch)
        return 0;
    if (big64(batch + PRODUCER_ID_AT) >= 0 && batch[ATTRIBUTES_AT + 1] & (TRANSACTIONAL | CONTROL))
        return 0;
    return crc32c(batch + ATTRIBUTES_AT, size - ATTRIBUTES_AT) == big32(batch + CRC_AT) ? size : 0;
}

static int note(PyObject *list, PyObject *entry)
{
    int result = entry == NULL ? -1 : PyList_Append(list, entry);
    Py_XDECREF(entry);
    return result;
}

static Py_ssize_t walk_through(const uint8_t *data, Py_ssize_t size, Place *place, PyObject *batches, PyObject *producers)
{
    Py_ssize_t at = 0, number = 0;
    uint32_t one;
    while ((one = usual_batch(data + at, size - at, place)) != 0) {
        const uint8_t *batch = data + at;
        long long first = big64(batch), last = first + (int32_t)big32(batch + LAST_OFFSET_DELTA_AT);
        long long timestamp = big64(batch + MAX_TIMESTAMP_AT), producer = big64(batch + PRODUCER_ID_AT);
        if (note(batches, Py_BuildValue("ILLL", (unsigned int)one, first, last, timestamp)) < 0)
            return -1;
        if (producer >= 0) {
            int epoch = (int16_t)big16(batch + PRODUCER_EPOCH_AT);
            int sequence = (int32_t)big32(batch + BASE_SEQUENCE_AT);
            if (note(producers, Py_BuildValue("nLii", number, producer, epoch, sequence)) < 0)
                return -1;
        }
        place->next_offset = last + 1;
        place->room -= one;
        at += one;
        number++;
    }
    return at;
}

static PyObject *walk(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    Place place;
    if (!PyArg_ParseTuple(args, "y*LiLLL", &data, &place.next_offset, &place.leader_epoch, &place.room,
                          &place.roll_offset, &place.roll_timestamp))
        return NULL;
    PyObject *batches = PyList_New(0), *producers = PyList_New(0), *found = NULL;
    if (batches != NULL && producers != NULL) {
        Py_ssize_t taken = walk_through(data.buf, data.len, &place, batches, producers);
        if (taken >= 0)
            found = Py_BuildValue("nOO", taken, batches, producers);
    }
    Py_XDECREF(batches);
    Py_XDECREF(producers);
    PyBuffer_Release(&data);
    return found;
}

static PyMethodDef functions[] = {
    {"walk", walk, METH_VARARGS, "The usual batches at the begin of a leader's records."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.followed", .m_doc = "Batches that a leader sent.", .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_followed(void)
{
    crc32c_prepare();
    return PyModuleDef_Init(&definition);
}
