/* The records of a batch as Python's objects, and single records as bytes, compiled: what `ottla.records.record` and
   `ottla.records.builder` do as well.

   A batch that is sound is decoded here. Where anything in it is not as it has to be, or is written as no client writes
   it, `decode` gives None, and the loop in Python judges the batch: there is one judge, and it is not this one.

   Nothing here trusts a length: every number and every slice is compared with the end of its record, and that with the
   end of the payload, before it is read. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>
#include <string.h>

#include "varints.h"

/* What all records of a batch have in common. */
typedef struct {
    PyTypeObject *type;
    allocfunc allocate;
    /* How tuples are made where an empty one that is filled will not do; else NULL. */
    newfunc make;
    int64_t base_offset, base_timestamp;
    /* The broker's time for all of them, or NULL. */
    PyObject *timestamp;
    /* Topic, partition, type of timestamp and leader epoch of a `ConsumerRecord`; NULL for a `Record`. */
    PyObject *topic, *partition, *kind, *epoch;
    PyObject *no_headers;
} Common;

/* One that is not sound, and one for which Python could not make an object. */
enum { SOUND = 0, DOUBTED, FAILED };

/* -- objects: new references, NULL with an exception set */

static PyObject *bytes_or_none(const Bytes *what)
{
    if (what->at == NULL)
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize((const char *)what->at, what->end - what->at);
}

/* A header is a name, in which what is not UTF-8 is replaced, and a value. */
static PyObject *make_header(const Bytes *name, const Bytes *value)
{
    PyObject *first = PyUnicode_DecodeUTF8((const char *)name->at, name->end - name->at, "replace");
    PyObject *second = first == NULL ? NULL : bytes_or_none(value);
    PyObject *header = second == NULL ? NULL : PyTuple_Pack(2, first, second);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return header;
}

static int read_headers(Bytes *from, int64_t count, PyObject **headers)
{
    /* A header takes two bytes at least, so that the tuple is no larger than what was received. */
    if (count < 0 || count > (from->end - from->at) / 2)
        return DOUBTED;
    PyObject *made = PyTuple_New((Py_ssize_t)count);
    if (made == NULL)
        return FAILED;
    for (int64_t index = 0; index < count; index++) {
        Bytes name, value;
        if (!read_bytes(from, &name) || name.at == NULL || !read_bytes(from, &value)) {
            Py_DECREF(made);
            return DOUBTED;
        }
        PyObject *header = make_header(&name, &value);
        if (header == NULL || PyTuple_SetItem(made, (Py_ssize_t)index, header) < 0) {
            Py_DECREF(made);
            return FAILED;
        }
    }
    *headers = made;
    return SOUND;
}

/* Since 3.14 a tuple remembers its hash, and one that was allocated empty seems to have the hash 0. There tuples are made
   of others, by `tuple.__new__`. */
static newfunc maker_of_tuples(void)
{
    return Py_Version < 0x030E0000 ? NULL : (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
}

static PyObject *make_of(const Common *common, PyObject *plain)
{
    PyObject *arguments = PyTuple_Pack(1, plain);
    PyObject *made = arguments == NULL ? NULL : common->make(common->type, arguments, NULL);
    Py_XDECREF(arguments);
    return made;
}

/* Takes over all references of `fields`, also where it fails. */
static PyObject *make_tuple(const Common *common, PyObject **fields, Py_ssize_t count)
{
    PyObject *made = common->make == NULL ? common->allocate(common->type, count) : PyTuple_New(count);
    for (Py_ssize_t index = 0; index < count; index++)
        if (made == NULL)
            Py_DECREF(fields[index]);
        else if (PyTuple_SetItem(made, index, fields[index]) < 0)
            Py_CLEAR(made);
    if (made == NULL || common->make == NULL)
        return made;
    PyObject *record = make_of(common, made);
    Py_DECREF(made);
    return record;
}

/* Takes over all references that it is given; any of them may be NULL. */
static PyObject *make_record(const Common *common, PyObject *offset, PyObject *timestamp, PyObject *key,
                             PyObject *value, PyObject *headers)
{
    if (offset == NULL || timestamp == NULL || key == NULL || value == NULL) {
        Py_XDECREF(offset);
        Py_XDECREF(timestamp);
        Py_XDECREF(key);
        Py_XDECREF(value);
        Py_DECREF(headers);
        return NULL;
    }
    if (common->topic == NULL) {
        PyObject *fields[] = {offset, timestamp, key, value, headers};
        return make_tuple(common, fields, 5);
    }
    PyObject *fields[] = {Py_NewRef(common->topic), Py_NewRef(common->partition), offset, timestamp,
                          Py_NewRef(common->kind), key, value, headers, Py_NewRef(common->epoch)};
    return make_tuple(common, fields, 9);
}

/* -- one record, and all */

static int read_record(const Common *common, Bytes *from, PyObject **record)
{
    int64_t size, time_delta, offset_delta, header_count, offset, time;
    Bytes key, value;
    if (!read_int(from, &size) || size < 1 || size > from->end - from->at)
        return DOUBTED;
    Bytes own = {from->at + 1, from->at + size}; /* behind the attributes, of which none are defined */
    if (!read_long(&own, &time_delta) || !read_int(&own, &offset_delta) || !read_bytes(&own, &key) ||
        !read_bytes(&own, &value) || !read_int(&own, &header_count))
        return DOUBTED;
    if (__builtin_add_overflow(common->base_offset, offset_delta, &offset) ||
        __builtin_add_overflow(common->base_timestamp, time_delta, &time))
        return DOUBTED;
    PyObject *headers = NULL;
    if (header_count == 0)
        headers = Py_NewRef(common->no_headers);
    else {
        int verdict = read_headers(&own, header_count, &headers);
        if (verdict != SOUND)
            return verdict;
    }
    if (own.at != own.end) {
        Py_DECREF(headers);
        return DOUBTED;
    }
    from->at = own.end;
    *record = make_record(common, PyLong_FromLongLong(offset),
                          common->timestamp != NULL ? Py_NewRef(common->timestamp) : PyLong_FromLongLong(time),
                          bytes_or_none(&key), bytes_or_none(&value), headers);
    return *record == NULL ? FAILED : SOUND;
}

static PyObject *read_records(const Common *common, Bytes payload, Py_ssize_t count)
{
    PyObject *records = PyList_New(count);
    if (records == NULL)
        return NULL;
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *record = NULL;
        int verdict = read_record(common, &payload, &record);
        if (verdict == SOUND && PyList_SetItem(records, index, record) < 0)
            verdict = FAILED;
        if (verdict != SOUND) {
            Py_DECREF(records);
            return verdict == FAILED ? NULL : Py_NewRef(Py_None);
        }
    }
    if (payload.at != payload.end) {
        Py_DECREF(records);
        Py_RETURN_NONE;
    }
    return records;
}

static PyObject *decode(PyObject *module, PyObject *args)
{
    (void)module;
    Common common = {0};
    PyObject *type, *payload, *timestamp, *place;
    Py_ssize_t count;
    long long base_offset, base_timestamp;
    if (!PyArg_ParseTuple(args, "OSnLLOO:decode", &type, &payload, &count, &base_offset, &base_timestamp, &timestamp,
                          &place))
        return NULL;
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "records are a kind of tuple");
        return NULL;
    }
    common.type = (PyTypeObject *)type;
    common.allocate = (allocfunc)PyType_GetSlot(common.type, Py_tp_alloc);
    common.make = maker_of_tuples();
    common.base_offset = base_offset;
    common.base_timestamp = base_timestamp;
    common.timestamp = timestamp == Py_None ? NULL : timestamp;
    if (place != Py_None &&
        !PyArg_ParseTuple(place, "OOOO:decode", &common.topic, &common.partition, &common.kind, &common.epoch))
        return NULL;
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(payload, &data, &size) < 0)
        return NULL;
    if (count < 0 || count > size / RECORD_BYTES_MIN)
        Py_RETURN_NONE;
    common.no_headers = PyTuple_New(0);
    if (common.no_headers == NULL)
        return NULL;
    PyObject *records = read_records(&common, (Bytes){(const uint8_t *)data, (const uint8_t *)data + size}, count);
    Py_DECREF(common.no_headers);
    return records;
}

/* -- one record as bytes */

static Py_ssize_t varint_size(uint64_t folded)
{
    Py_ssize_t size = 1;
    while (folded >>= 7)
        size++;
    return size;
}

static uint64_t folded(int64_t number)
{
    return ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
}

static uint8_t *write_varint(uint8_t *to, uint64_t folded)
{
    for (; folded > 0x7F; folded >>= 7)
        *to++ = (uint8_t)(folded | 0x80);
    *to++ = (uint8_t)folded;
    return to;
}

/* Null is the length -1. */
static Py_ssize_t field_size(const Py_buffer *field)
{
    return field->obj == NULL ? 1 : varint_size(folded(field->len)) + field->len;
}

static uint8_t *write_field(uint8_t *to, const Py_buffer *field)
{
    to = write_varint(to, folded(field->obj == NULL ? -1 : field->len));
    if (field->obj == NULL || field->len == 0)
        return to;
    memcpy(to, field->buf, (size_t)field->len);
    return to + field->len;
}

static PyObject *encode_fields(int64_t offset_delta, int64_t time_delta, const Py_buffer *key, const Py_buffer *value)
{
    /* Attributes and the number of headers take a byte each. */
    Py_ssize_t body = 2 + varint_size(folded(time_delta)) + varint_size(folded(offset_delta)) + field_size(key) +
                      field_size(value);
    PyObject *record = PyBytes_FromStringAndSize(NULL, varint_size(folded(body)) + body);
    if (record == NULL)
        return NULL;
    uint8_t *to = write_varint((uint8_t *)PyBytes_AsString(record), folded(body));
    *to++ = 0;
    to = write_varint(to, folded(time_delta));
    to = write_varint(to, folded(offset_delta));
    to = write_field(to, key);
    to = write_field(to, value);
    *to = 0;
    return record;
}

/* As Python's encoder it raises ValueError where 64 bits are not enough. */
static int take_number(PyObject *from, int64_t *number)
{
    *number = PyLong_AsLongLong(from);
    if (*number != -1 || !PyErr_Occurred())
        return 0;
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_SetString(PyExc_ValueError, "a number does not fit in 64 bits");
    return -1;
}

static int take_field(PyObject *from, Py_buffer *field)
{
    return from == Py_None ? 0 : PyObject_GetBuffer(from, field, PyBUF_SIMPLE);
}

static PyObject *encode(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "encode takes two distances, a key and a value");
        return NULL;
    }
    int64_t offset_delta, time_delta;
    if (take_number(args[0], &offset_delta) < 0 || take_number(args[1], &time_delta) < 0)
        return NULL;
    Py_buffer key = {0}, value = {0};
    if (take_field(args[2], &key) < 0)
        return NULL;
    if (take_field(args[3], &value) < 0) {
        PyBuffer_Release(&key);
        return NULL;
    }
    PyObject *record = encode_fields(offset_delta, time_delta, &key, &value);
    PyBuffer_Release(&key);
    PyBuffer_Release(&value);
    return record;
}

static PyMethodDef functions[] = {
    {"decode", decode, METH_VARARGS, "All records of a payload, or None where one of them is not sound."},
    {"encode", (PyCFunction)(void (*)(void))encode, METH_FASTCALL, "A record without headers: distances, key, value."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.records", .m_doc = "Records, from bytes and to bytes.",
    .m_size = 0, .m_methods = functions,
};

PyMODINIT_FUNC PyInit_records(void)
{
    return PyModuleDef_Init(&definition);
}
