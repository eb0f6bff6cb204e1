/* What the log cleaner does once for each record of a log, compiled: to read its key, to note it, to look it up. The same
   stands in Python in `ottla.records.keys` and in the key map of the cleaner.

   `read` gives None where the records are not sound or are written as no client writes them; Python then judges them. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>
#include <string.h>

#include "varints.h"

/* A slot of the map: both hashes, and the offset's distance from the first one, plus one. */
#define FIELDS 3
#define PREFIX 0x9e

/* -- keys */

/* The key of the record that comes next; NULL without an exception where that is not sound. */
static PyObject *read_key(Bytes *from)
{
    int64_t size, skipped;
    Bytes key;
    if (!read_int(from, &size) || size < 1 || size > from->end - from->at)
        return NULL;
    Bytes own = {from->at + 1, from->at + size}; /* behind the attributes */
    from->at = own.end;
    if (!read_long(&own, &skipped) || !read_int(&own, &skipped) || !read_bytes(&own, &key))
        return NULL;
    if (key.at == NULL)
        return Py_NewRef(Py_None);
    /* A value and headers follow, if only their lengths. */
    if (own.at == own.end)
        return NULL;
    return PyBytes_FromStringAndSize((const char *)key.at, key.end - key.at);
}

static PyObject *read_all(Bytes from, Py_ssize_t count)
{
    PyObject *keys = PyList_New(count);
    for (Py_ssize_t index = 0; keys != NULL && index < count; index++) {
        PyObject *key = read_key(&from);
        if (key == NULL || PyList_SetItem(keys, index, key) < 0) {
            Py_CLEAR(keys);
            if (!PyErr_Occurred())
                Py_RETURN_NONE;
        }
    }
    if (keys != NULL && from.at != from.end) {
        Py_DECREF(keys);
        Py_RETURN_NONE;
    }
    return keys;
}

static PyObject *read_keys(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data;
    Py_ssize_t at, end, count;
    if (!PyArg_ParseTuple(args, "y*nnn:read", &data, &at, &end, &count))
        return NULL;
    PyObject *keys;
    if (at < 0 || at > end || end > data.len || count < 0 || count > (end - at) / RECORD_BYTES_MIN)
        keys = Py_NewRef(Py_None);
    else
        keys = read_all((Bytes){(const uint8_t *)data.buf + at, (const uint8_t *)data.buf + end}, count);
    PyBuffer_Release(&data);
    return keys;
}

/* -- the map */

typedef struct {
    Py_buffer buffer;
    int64_t *cells;
    Py_ssize_t slots;
    int64_t first; /* one below the first offset */
} Map;

typedef struct {
    int64_t primary, secondary;
} Hashes;

static int open_map(Map *map, PyObject *cells, Py_ssize_t slots, long long first)
{
    if (PyObject_GetBuffer(cells, &map->buffer, PyBUF_WRITABLE) < 0)
        return -1;
    if (slots < 3 || map->buffer.len / (Py_ssize_t)(FIELDS * sizeof(int64_t)) != slots) {
        PyBuffer_Release(&map->buffer);
        PyErr_SetString(PyExc_ValueError, "the map has another number of slots");
        return -1;
    }
    map->cells = map->buffer.buf;
    map->slots = slots;
    map->first = first;
    return 0;
}

/* Of the key, and of the key behind a prefix, under the secret seed of this process. */
static int hash_key(PyObject *key, Hashes *hashes)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(key, &bytes, &size) < 0)
        return -1;
    PyObject *prefixed = PyBytes_FromStringAndSize(NULL, size + 1);
    if (prefixed == NULL)
        return -1;
    char *to = PyBytes_AsString(prefixed);
    to[0] = (char)PREFIX;
    memcpy(to + 1, bytes, (size_t)size);
    hashes->primary = PyObject_Hash(key);
    hashes->secondary = PyObject_Hash(prefixed);
    Py_DECREF(prefixed);
    if (hashes->primary == 0)
        hashes->primary = 1;
    return 0;
}

static int64_t modulo(int64_t number, int64_t by)
{
    int64_t left = number % by;
    return left < 0 ? left + by : left;
}

/* The slot of a key, or the free one where it belongs. There is always a free one: used <= capacity < slots. */
static int64_t *find_slot(const Map *map, Hashes hashes)
{
    int64_t at = modulo(hashes.primary, map->slots);
    for (Py_ssize_t tries = 0; tries < map->slots; tries++) {
        int64_t *slot = map->cells + at * FIELDS;
        if (slot[0] == 0 || (slot[0] == hashes.primary && slot[1] == hashes.secondary))
            return slot;
        at += modulo(hashes.secondary, map->slots - 1) + 1;
        if (at >= map->slots)
            at -= map->slots;
    }
    return NULL;
}

/* The slot of the next key, with its offset; NULL at the end, for a fault (`failed`), and with `is_null` for no key. */
static int64_t *next_slot(const Map *map, PyObject *keys, Py_ssize_t index, PyObject *offsets, Hashes *hashes,
                          int64_t *distance, int *is_null)
{
    PyObject *key = PyList_GetItem(keys, index); /* borrowed */
    if (key == NULL)
        return NULL;
    *is_null = key == Py_None;
    PyObject *number = PyIter_Next(offsets);
    if (number == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "there are more keys than offsets");
        return NULL;
    }
    *distance = PyLong_AsLongLong(number) - map->first;
    Py_DECREF(number);
    if (PyErr_Occurred() || *is_null || hash_key(key, hashes) < 0)
        return NULL;
    int64_t *slot = find_slot(map, *hashes);
    if (slot == NULL)
        PyErr_SetString(PyExc_OverflowError, "the map is full");
    return slot;
}

static PyObject *put_all(const Map *map, PyObject *keys, PyObject *offsets)
{
    Py_ssize_t added = 0, count = PyList_Size(keys);
    for (Py_ssize_t index = 0; index < count; index++) {
        Hashes hashes;
        int64_t distance;
        int is_null = 0;
        int64_t *slot = next_slot(map, keys, index, offsets, &hashes, &distance, &is_null);
        if (slot == NULL) {
            if (is_null && !PyErr_Occurred())
                continue;
            return NULL;
        }
        if (slot[0] == 0) {
            slot[0] = hashes.primary;
            slot[1] = hashes.secondary;
            added++;
        }
        slot[2] = distance;
    }
    return PyLong_FromSsize_t(added);
}

static PyObject *are_newest_of(const Map *map, PyObject *keys, PyObject *offsets)
{
    Py_ssize_t count = PyList_Size(keys);
    PyObject *newest = PyByteArray_FromStringAndSize(NULL, count);
    if (newest == NULL)
        return NULL;
    for (Py_ssize_t index = 0; index < count; index++) {
        Hashes hashes;
        int64_t distance;
        int is_null = 0;
        int64_t *slot = next_slot(map, keys, index, offsets, &hashes, &distance, &is_null);
        if (slot == NULL && (!is_null || PyErr_Occurred())) {
            Py_DECREF(newest);
            return NULL;
        }
        PyByteArray_AsString(newest)[index] = slot != NULL && (slot[0] == 0 || slot[2] <= distance);
    }
    return newest;
}

typedef PyObject *(*Work)(const Map *, PyObject *, PyObject *);

static PyObject *with_map(PyObject *args, Work work)
{
    PyObject *cells, *keys, *offsets;
    Py_ssize_t slots;
    long long first;
    if (!PyArg_ParseTuple(args, "OnLO!O", &cells, &slots, &first, &PyList_Type, &keys, &offsets))
        return NULL;
    PyObject *iterator = PyObject_GetIter(offsets);
    if (iterator == NULL)
        return NULL;
    Map map;
    PyObject *found = NULL;
    if (open_map(&map, cells, slots, first) == 0) {
        found = work(&map, keys, iterator);
        PyBuffer_Release(&map.buffer);
    }
    Py_DECREF(iterator);
    return found;
}

static PyObject *put(PyObject *module, PyObject *args)
{
    (void)module;
    return with_map(args, put_all);
}

static PyObject *are_newest(PyObject *module, PyObject *args)
{
    (void)module;
    return with_map(args, are_newest_of);
}

static PyMethodDef functions[] = {
    {"read", read_keys, METH_VARARGS, "The keys of the records that fill a range, or None where they are not sound."},
    {"put", put, METH_VARARGS, "Notes the offsets of keys; how many of them are new."},
    {"are_newest", are_newest, METH_VARARGS, "1 for each record that no later one of its key supersedes, else 0."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.keys", .m_doc = "Keys of records, read and noted.",
    .m_size = 0, .m_methods = functions,
};

PyMODINIT_FUNC PyInit_keys(void)
{
    return PyModuleDef_Init(&definition);
}
