/* Rows of Arrow columns as record batches, compiled: what `ottla.arrow.plain_encoding` does as well, byte for byte.

   One pass over the rows. Each row goes to its partition (a given one, that of its key's hash, or the one whose turn it
   is) and is written behind the records of that partition's open batch; a batch that has no room for it is shut first.
   A row that cannot be a record ends the pass: its number is returned, and nothing that was written.

   Nothing here trusts an array: each value's ends are compared with the bytes that are there. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "batch_fields.h"
#include "crc32c.h"

/* A batch's memory when it is opened; it doubles as it grows. */
#define FIRST_BYTES 4096

/* An array of Arrow: `ends` and `data` as its layout has them, and where in them it begins. */
typedef struct {
    Py_buffer valid, ends, data;
    Py_ssize_t offset, length;
    int there;
} Array;

typedef struct {
    const uint8_t *at; /* NULL: null */
    int64_t size;
} Value;

/* Of a partition. Without memory there is no open batch. */
typedef struct {
    uint8_t *data;
    int64_t size, room, base_time, max_time;
    int32_t count;
} Open;

typedef struct {
    uint8_t *data;
    int64_t size, base_time, max_time;
    int32_t count, partition;
} Shut;

enum { KEYS, VALUES, PARTITIONS, TIMES, HEADERS, NAMES, CONTENTS, ARRAYS };

typedef struct {
    Array arrays[ARRAYS];
    Py_buffer turns; /* partitions for rows without a key, in their turn: int32 */
    int64_t time_divisor, now, batch_bytes, record_bytes_max;
    int32_t partitions;
    int64_t turn;
    Open *open;
    Shut *shut;
    int64_t shut_count, shut_room;
    /* Of the row that ended the pass. */
    int64_t row, number;
} Pass;

/* What ended it. */
enum { DONE = 0, BAD_ARRAY, BAD_PARTITION, BAD_TIME, BAD_HEADER, TOO_LARGE, NO_MEMORY };

/* -- numbers */

static inline int64_t varint_size(uint64_t folded)
{
    int64_t size = 1;
    while (folded >>= 7)
        size++;
    return size;
}

static inline uint64_t folded(int64_t number)
{
    return ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
}

static inline uint8_t *write_varint(uint8_t *to, uint64_t folded)
{
    for (; folded > 0x7F; folded >>= 7)
        *to++ = (uint8_t)(folded | 0x80);
    *to++ = (uint8_t)folded;
    return to;
}

/* Kafka's 32-bit murmur2, which reads words as a little-endian processor does. */
static uint32_t murmur2(const uint8_t *at, int64_t size)
{
    const uint32_t m = 0x5BD1E995;
    uint32_t h = 0x9747B28C ^ (uint32_t)size;
    for (; size >= 4; size -= 4, at += 4) {
        uint32_t k = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        k *= m;
        k ^= k >> 24;
        h = h * m ^ k * m;
    }
    if (size) {
        for (int64_t index = 0; index < size; index++)
            h ^= (uint32_t)at[index] << (8 * index);
        h *= m;
    }
    h ^= h >> 13;
    h *= m;
    return h ^ h >> 15;
}

/* -- reading arrays: the row is within their length */

static inline int is_valid(const Array *array, int64_t row)
{
    int64_t bit = array->offset + row;
    return array->valid.obj == NULL || (((const uint8_t *)array->valid.buf)[bit >> 3] >> (bit & 7) & 1);
}

/* Numbers of an array; nobody promises that they are aligned. */
static inline int32_t read32(const Py_buffer *from, int64_t index)
{
    int32_t number;
    memcpy(&number, (const uint8_t *)from->buf + index * (int64_t)sizeof number, sizeof number);
    return number;
}

static inline int64_t read64(const Py_buffer *from, int64_t index)
{
    int64_t number;
    memcpy(&number, (const uint8_t *)from->buf + index * (int64_t)sizeof number, sizeof number);
    return number;
}

/* Where a value of `data`, or a list's children, begin and end; false where that cannot be. */
static inline int read_ends(const Array *array, int64_t row, int64_t *start, int64_t *end)
{
    *start = read32(&array->ends, array->offset + row);
    *end = read32(&array->ends, array->offset + row + 1);
    return 0 <= *start && *start <= *end;
}

static inline int read_value(const Array *array, int64_t row, Value *value)
{
    int64_t start, end;
    if (!is_valid(array, row)) {
        value->at = NULL;
        value->size = 0;
        return 1;
    }
    if (!read_ends(array, row, &start, &end) || end > array->data.len)
        return 0;
    value->at = end > start ? (const uint8_t *)array->data.buf + start : (const uint8_t *)"";
    value->size = end - start;
    return 1;
}

/* -- records */

static inline int64_t field_size(const Value *field)
{
    return field->at == NULL ? 1 : varint_size(folded(field->size)) + field->size;
}

static inline uint8_t *write_field(uint8_t *to, const Value *field)
{
    to = write_varint(to, folded(field->at == NULL ? -1 : field->size));
    if (field->size) {
        memcpy(to, field->at, (size_t)field->size);
        to += field->size;
    }
    return to;
}

typedef struct {
    Value key, value;
    int64_t time, first_header, headers_end, headers_size;
} Row;

/* The headers' number and size. A record is at most INT32_MAX bytes, so that no sum of theirs overflows. */
static int read_headers(Pass *pass, int64_t number, Row *row)
{
    const Array *headers = &pass->arrays[HEADERS], *names = &pass->arrays[NAMES], *contents = &pass->arrays[CONTENTS];
    row->first_header = row->headers_end = row->headers_size = 0;
    if (!headers->there || !is_valid(headers, number))
        return DONE;
    if (!read_ends(headers, number, &row->first_header, &row->headers_end) || row->headers_end > names->length ||
        row->headers_end > contents->length)
        return BAD_ARRAY;
    for (int64_t index = row->first_header; index < row->headers_end; index++) {
        Value name, content;
        if (!read_value(names, index, &name) || !read_value(contents, index, &content))
            return BAD_ARRAY;
        if (name.at == NULL)
            return BAD_HEADER;
        row->headers_size += field_size(&name) + field_size(&content);
    }
    return DONE;
}

static int read_row(Pass *pass, int64_t number, Row *row)
{
    const Array *keys = &pass->arrays[KEYS], *times = &pass->arrays[TIMES];
    row->key = (Value){NULL, 0};
    if ((keys->there && !read_value(keys, number, &row->key)) ||
        !read_value(&pass->arrays[VALUES], number, &row->value))
        return BAD_ARRAY;
    row->time = pass->now;
    if (times->there && is_valid(times, number)) {
        row->time = read64(&times->data, times->offset + number);
        pass->number = row->time;
        if (row->time < 0)
            return BAD_TIME;
        row->time /= pass->time_divisor;
    }
    return read_headers(pass, number, row);
}

/* Without its length. */
static inline int64_t body_size(const Row *row, int64_t offset_delta, int64_t time_delta)
{
    return 1 + varint_size(folded(time_delta)) + varint_size(folded(offset_delta)) + field_size(&row->key) +
           field_size(&row->value) + varint_size(folded(row->headers_end - row->first_header)) + row->headers_size;
}

/* False where somebody changes the headers meanwhile, so that they are longer than they were. */
static int write_record(const Pass *pass, uint8_t *to, const uint8_t *end, const Row *row, int64_t body,
                        int64_t offset_delta, int64_t time_delta)
{
    to = write_varint(to, folded(body));
    *to++ = 0;
    to = write_varint(to, folded(time_delta));
    to = write_varint(to, folded(offset_delta));
    to = write_field(to, &row->key);
    to = write_field(to, &row->value);
    to = write_varint(to, folded(row->headers_end - row->first_header));
    for (int64_t index = row->first_header; index < row->headers_end; index++) {
        Value name, content;
        if (!read_value(&pass->arrays[NAMES], index, &name) || !read_value(&pass->arrays[CONTENTS], index, &content) ||
            field_size(&name) + field_size(&content) > end - to)
            return 0;
        to = write_field(write_field(to, &name), &content);
    }
    return to == end;
}

/* -- batches */

static void write_header(const Open *batch)
{
    uint8_t *at = batch->data;
    memset(at, 0, HEADER_SIZE);
    put_big32(at + LENGTH_AT, (uint32_t)(batch->size - LOG_OVERHEAD));
    put_big32(at + LEADER_EPOCH_AT, UINT32_MAX); /* none */
    at[MAGIC_AT] = MAGIC;
    put_big32(at + LAST_OFFSET_DELTA_AT, (uint32_t)(batch->count - 1));
    put_big64(at + BASE_TIMESTAMP_AT, batch->base_time);
    put_big64(at + MAX_TIMESTAMP_AT, batch->max_time);
    memset(at + PRODUCER_ID_AT, 0xFF, COUNT_AT - PRODUCER_ID_AT); /* no producer, no sequence */
    put_big32(at + COUNT_AT, (uint32_t)batch->count);
    put_big32(at + CRC_AT, crc32c(at + ATTRIBUTES_AT, (size_t)(batch->size - ATTRIBUTES_AT)));
}

static int shut(Pass *pass, int32_t partition)
{
    Open *batch = &pass->open[partition];
    if (pass->shut_count == pass->shut_room) {
        int64_t room = pass->shut_room ? 2 * pass->shut_room : 64;
        Shut *larger = realloc(pass->shut, (size_t)room * sizeof *larger);
        if (larger == NULL)
            return NO_MEMORY;
        pass->shut = larger;
        pass->shut_room = room;
    }
    write_header(batch);
    pass->shut[pass->shut_count++] =
        (Shut){batch->data, batch->size, batch->base_time, batch->max_time, batch->count, partition};
    memset(batch, 0, sizeof *batch);
    return DONE;
}

static int make_room(Pass *pass, Open *batch, int64_t size)
{
    if (batch->size + size <= batch->room)
        return 1;
    int64_t room = batch->room ? 2 * batch->room : FIRST_BYTES;
    if (room > pass->batch_bytes)
        room = pass->batch_bytes;
    if (room < batch->size + size)
        room = batch->size + size;
    uint8_t *larger = realloc(batch->data, (size_t)room);
    if (larger == NULL)
        return 0;
    batch->data = larger;
    batch->room = room;
    return 1;
}

static inline int fits(const Pass *pass, const Open *batch, const Row *row)
{
    if (batch->data == NULL)
        return 1;
    int64_t body = body_size(row, batch->count, row->time - batch->base_time);
    return batch->size + varint_size(folded(body)) + body <= pass->batch_bytes;
}

static int choose(Pass *pass, int64_t number, const Row *row, int32_t *partition)
{
    const Array *given = &pass->arrays[PARTITIONS];
    if (given->there && is_valid(given, number)) {
        *partition = read32(&given->data, given->offset + number);
        pass->number = *partition;
        return *partition >= 0 && *partition < pass->partitions ? DONE : BAD_PARTITION;
    }
    if (row->key.at != NULL) {
        *partition = (int32_t)((murmur2(row->key.at, row->key.size) & 0x7FFFFFFF) % (uint32_t)pass->partitions);
        return DONE;
    }
    int64_t count = pass->turns.len / (int64_t)sizeof(int32_t);
    *partition = read32(&pass->turns, pass->turn % count);
    if (!fits(pass, &pass->open[*partition], row))
        *partition = read32(&pass->turns, ++pass->turn % count);
    return DONE;
}

static int add(Pass *pass, int64_t number)
{
    Row row;
    int32_t partition;
    int verdict = read_row(pass, number, &row);
    if (verdict == DONE)
        verdict = choose(pass, number, &row, &partition);
    if (verdict != DONE)
        return verdict;
    Open *batch = &pass->open[partition];
    if (!fits(pass, batch, &row) && (verdict = shut(pass, partition)) != DONE)
        return verdict;
    int64_t time_delta = batch->data == NULL ? 0 : row.time - batch->base_time;
    int64_t body = body_size(&row, batch->count, time_delta), size = varint_size(folded(body)) + body;
    pass->number = HEADER_SIZE + size;
    if (pass->number > pass->record_bytes_max)
        return TOO_LARGE;
    if (batch->data == NULL) {
        batch->size = HEADER_SIZE;
        batch->base_time = batch->max_time = row.time;
    }
    if (!make_room(pass, batch, size))
        return NO_MEMORY;
    uint8_t *to = batch->data + batch->size;
    if (!write_record(pass, to, to + size, &row, body, batch->count, time_delta))
        return BAD_ARRAY;
    batch->size += size;
    batch->count++;
    if (row.time > batch->max_time)
        batch->max_time = row.time;
    return DONE;
}

static int add_all(Pass *pass)
{
    int verdict = DONE;
    for (pass->row = 0; pass->row < pass->arrays[VALUES].length; pass->row++)
        if ((verdict = add(pass, pass->row)) != DONE)
            return verdict;
    for (int32_t partition = 0; partition < pass->partitions && verdict == DONE; partition++)
        if (pass->open[partition].data != NULL)
            verdict = shut(pass, partition);
    return verdict;
}

/* -- what Python gives and gets */

static void close_pass(Pass *pass)
{
    for (int index = 0; index < ARRAYS; index++) {
        PyBuffer_Release(&pass->arrays[index].valid);
        PyBuffer_Release(&pass->arrays[index].ends);
        PyBuffer_Release(&pass->arrays[index].data);
    }
    PyBuffer_Release(&pass->turns);
    for (int32_t partition = 0; pass->open != NULL && partition < pass->partitions; partition++)
        free(pass->open[partition].data);
    for (int64_t index = 0; index < pass->shut_count; index++)
        free(pass->shut[index].data);
    free(pass->open);
    free(pass->shut);
}

static int open_buffer(PyObject *from, Py_buffer *buffer)
{
    return from == Py_None ? 0 : PyObject_GetBuffer(from, buffer, PyBUF_SIMPLE);
}

/* An array as (offset, length, validity or None, ends or None, data or None). */
static int open_array(PyObject *given, Array *array, int has_ends, Py_ssize_t width)
{
    PyObject *valid, *ends, *data;
    if (given == Py_None)
        return 0;
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "an array is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "nnOOO:encode", &array->offset, &array->length, &valid, &ends, &data) ||
        open_buffer(valid, &array->valid) < 0 || open_buffer(ends, &array->ends) < 0 ||
        open_buffer(data, &array->data) < 0)
        return -1;
    array->there = 1;
    Py_ssize_t count;
    if (array->offset < 0 || array->length < 0 || __builtin_add_overflow(array->offset, array->length, &count) ||
        (array->valid.obj != NULL && count > 8 * array->valid.len) ||
        (has_ends && array->length && count >= array->ends.len / (Py_ssize_t)sizeof(int32_t)) ||
        (width && count > array->data.len / width)) {
        PyErr_SetString(PyExc_ValueError, "an array is longer than its memory");
        return -1;
    }
    return 0;
}

static int open_arrays(Pass *pass, PyObject *given)
{
    static const Py_ssize_t widths[ARRAYS] = {0, 0, sizeof(int32_t), sizeof(int64_t), 0, 0, 0};
    if (!PyTuple_Check(given) || PyTuple_Size(given) != ARRAYS) {
        PyErr_Format(PyExc_TypeError, "columns are a tuple of %d", ARRAYS);
        return -1;
    }
    for (int index = 0; index < ARRAYS; index++)
        if (open_array(PyTuple_GetItem(given, index), &pass->arrays[index], !widths[index], widths[index]) < 0)
            return -1;
    Py_ssize_t rows = pass->arrays[VALUES].length;
    for (int index = 0; index <= HEADERS; index++)
        if (pass->arrays[index].there ? pass->arrays[index].length != rows : index == VALUES) {
            PyErr_SetString(PyExc_ValueError, "columns have the same number of rows, and values are among them");
            return -1;
        }
    if (pass->arrays[HEADERS].there && !(pass->arrays[NAMES].there && pass->arrays[CONTENTS].there)) {
        PyErr_SetString(PyExc_ValueError, "headers have names and values");
        return -1;
    }
    return 0;
}

static int open_turns(Pass *pass, PyObject *given)
{
    if (PyObject_GetBuffer(given, &pass->turns, PyBUF_SIMPLE) < 0)
        return -1;
    Py_ssize_t count = pass->turns.len / (Py_ssize_t)sizeof(int32_t);
    int sound = pass->now >= 0 && count > 0 && pass->partitions > 0 && pass->turn >= 0 && pass->time_divisor > 0 &&
                pass->batch_bytes > 0 && pass->record_bytes_max <= INT32_MAX && pass->batch_bytes <= INT32_MAX;
    for (Py_ssize_t index = 0; sound && index < count; index++)
        sound = read32(&pass->turns, index) >= 0 && read32(&pass->turns, index) < pass->partitions;
    if (!sound)
        PyErr_SetString(PyExc_ValueError, "a bound or a partition is out of range");
    return sound ? 0 : -1;
}

static PyObject *shut_list(const Pass *pass)
{
    PyObject *list = PyList_New((Py_ssize_t)pass->shut_count);
    for (int64_t index = 0; list != NULL && index < pass->shut_count; index++) {
        const Shut *one = &pass->shut[index];
        PyObject *made = Py_BuildValue("iiLLy#", (int)one->partition, (int)one->count, (long long)one->base_time,
                                       (long long)one->max_time, (const char *)one->data, (Py_ssize_t)one->size);
        if (made == NULL || PyList_SetItem(list, (Py_ssize_t)index, made) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *encoded(Pass *pass, PyObject *arrays, PyObject *turns)
{
    if (open_arrays(pass, arrays) < 0 || open_turns(pass, turns) < 0)
        return NULL;
    pass->open = calloc((size_t)pass->partitions, sizeof *pass->open);
    if (pass->open == NULL)
        return PyErr_NoMemory();
    int verdict;
    Py_BEGIN_ALLOW_THREADS
    verdict = add_all(pass);
    Py_END_ALLOW_THREADS
    if (verdict == NO_MEMORY)
        return PyErr_NoMemory();
    if (verdict != DONE)
        return Py_BuildValue("iLL", verdict, (long long)pass->row, (long long)pass->number);
    PyObject *list = shut_list(pass);
    return list == NULL ? NULL : Py_BuildValue("iLN", DONE, (long long)pass->turn, list);
}

static PyObject *encode(PyObject *module, PyObject *args)
{
    (void)module;
    Pass pass;
    PyObject *arrays, *turns;
    long long time_divisor, now, batch_bytes, record_bytes_max, turn;
    int partitions;
    if (!PyArg_ParseTuple(args, "OiOLLLLL:encode", &arrays, &partitions, &turns, &turn, &time_divisor, &now,
                          &batch_bytes, &record_bytes_max))
        return NULL;
    memset(&pass, 0, sizeof pass);
    pass.partitions = partitions;
    pass.turn = turn;
    pass.time_divisor = time_divisor;
    pass.now = now;
    pass.batch_bytes = batch_bytes;
    pass.record_bytes_max = record_bytes_max;
    PyObject *result = encoded(&pass, arrays, turns);
    close_pass(&pass);
    return result;
}

static PyObject *hash(PyObject *module, PyObject *from)
{
    (void)module;
    Py_buffer buffer;
    if (PyObject_GetBuffer(from, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t found = murmur2(buffer.buf, buffer.len);
    PyBuffer_Release(&buffer);
    return PyLong_FromUnsignedLong(found);
}

static PyMethodDef functions[] = {
    {"encode", encode, METH_VARARGS, "The rows of columns as record batches, or which row cannot be a record."},
    {"murmur2", hash, METH_O, "The hash of a key; for tests."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.batches", .m_doc = "Columns as record batches.",
    .m_size = 0, .m_methods = functions,
};

PyMODINIT_FUNC PyInit_batches(void)
{
    crc32c_prepare();
    return PyModuleDef_Init(&definition);
}
