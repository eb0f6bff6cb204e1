/* The records of batches as columns in memory that the caller brings (Arrow's), compiled: what `ottla.arrow.judge` does
   out of objects, in one pass over the bytes.

   `survey` looks at headers and says which batches hold something to be read, `fill` reads these. Both stop in front
   of what is not as it has to be, or is written as no client writes it, and say so: then Python judges that batch. There
   is one judge, and it is not this one.

   Nothing here trusts a length. Every number and every slice is compared with the end of its record, that with the end
   of its payload, and what is written with the memory that is there for it. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "batch_fields.h"
#include "crc32c.h"
#include "varints.h"

#define MICROSECONDS 1000

/* A column of values that have lengths. Arrow's layout: `ends` starts with 0 and has one number more than there are
   values; a bit of `valid` is 0 where the value is null. */
typedef struct {
    int32_t *ends; /* NULL: not asked for */
    uint8_t *bytes, *valid;
    int64_t used, count, nulls;
    int64_t bytes_max, count_max;
} Column;

/* What is filled. used <= bytes_max, count <= count_max, rows <= rows_max. */
typedef struct {
    Column keys, values, names, contents;
    int64_t *offsets, *times; /* NULL: not asked for */
    int32_t *header_ends;
    int64_t rows, rows_max;
} Table;

/* One that is not sound, and one for which there is no room. */
enum { SOUND = 0, DOUBTED, NO_ROOM };

/* -- text */

/* Whether Arrow may take these bytes for a string: no overlong form, no surrogate, nothing above U+10FFFF. */
static int is_utf8(const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        uint8_t first = *at++;
        if (first < 0x80)
            continue;
        int more = first >= 0xC2 && first < 0xE0 ? 1 : first >= 0xE0 && first < 0xF0 ? 2 : first >= 0xF0 && first < 0xF5 ? 3 : 0;
        if (!more || end - at < more)
            return 0;
        if ((first == 0xE0 && at[0] < 0xA0) || (first == 0xED && at[0] > 0x9F) || (first == 0xF0 && at[0] < 0x90) ||
            (first == 0xF4 && at[0] > 0x8F))
            return 0;
        for (; more; more--)
            if ((*at++ & 0xC0) != 0x80)
                return 0;
    }
    return 1;
}

/* -- filling */

static inline int append(Column *column, const Bytes *what)
{
    int64_t count = column->count, size = what->end - what->at;
    if (count >= column->count_max || size > column->bytes_max - column->used)
        return NO_ROOM;
    if (what->at == NULL) {
        column->valid[count >> 3] &= (uint8_t) ~(1u << (count & 7));
        column->nulls++;
    } else if (size) {
        memcpy(column->bytes + column->used, what->at, (size_t)size);
        column->used += size;
    }
    column->ends[count + 1] = (int32_t)column->used;
    column->count = count + 1;
    return SOUND;
}

/* The headers of a record up to its end. They are looked at whether they are wanted or not, as the judge does. */
static int take_headers(Bytes *from, int64_t count, int wanted, Table *to)
{
    /* A header takes two bytes at least. */
    if (count < 0 || count > (from->end - from->at) / 2)
        return DOUBTED;
    for (; count; count--) {
        Bytes name, content;
        if (!read_bytes(from, &name) || name.at == NULL || !read_bytes(from, &content))
            return DOUBTED;
        if (!wanted)
            continue;
        if (!is_utf8(name.at, name.end))
            return DOUBTED;
        if (append(&to->names, &name) != SOUND || append(&to->contents, &content) != SOUND)
            return NO_ROOM;
    }
    return SOUND;
}

/* What the records of a batch have in common. */
typedef struct {
    int64_t base_offset, base_time, log_time, first, until;
    int has_log_time;
} Common;

static inline int take_record(const Common *common, Bytes *from, Table *to)
{
    int64_t size, time, offset, header_count;
    Bytes key, value;
    if (!read_int(from, &size) || size < 1 || size > from->end - from->at)
        return DOUBTED;
    Bytes own = {from->at + 1, from->at + size}; /* behind the attributes, of which none are defined */
    from->at = own.end;
    if (!read_long(&own, &time) || !read_int(&own, &offset) || !read_bytes(&own, &key) || !read_bytes(&own, &value) ||
        !read_int(&own, &header_count) || __builtin_add_overflow(common->base_offset, offset, &offset) ||
        __builtin_add_overflow(common->base_time, time, &time))
        return DOUBTED;
    if (common->has_log_time)
        time = common->log_time;
    int wanted = offset >= common->first && offset < common->until;
    if (header_count) {
        int verdict = take_headers(&own, header_count, wanted && to->header_ends != NULL, to);
        if (verdict != SOUND)
            return verdict;
    }
    if (own.at != own.end)
        return DOUBTED;
    if (!wanted)
        return SOUND;
    if (to->rows >= to->rows_max)
        return NO_ROOM;
    if (to->keys.ends != NULL && append(&to->keys, &key) != SOUND)
        return NO_ROOM;
    if (to->values.ends != NULL && append(&to->values, &value) != SOUND)
        return NO_ROOM;
    if (to->times != NULL && __builtin_mul_overflow(time, MICROSECONDS, &to->times[to->rows]))
        return DOUBTED;
    if (to->offsets != NULL)
        to->offsets[to->rows] = offset;
    to->rows++;
    if (to->header_ends != NULL)
        to->header_ends[to->rows] = (int32_t)to->names.count;
    return SOUND;
}

typedef struct {
    const uint8_t *header;
    Bytes payload;
    int plain;
} Batch;

static int crc_matches(const uint8_t *batch, int64_t size)
{
    return crc32c(batch + ATTRIBUTES_AT, (size_t)(size - ATTRIBUTES_AT)) == big32(batch + CRC_AT);
}

static int take_batch(const Batch *batch, int64_t first, int64_t until, int check_crcs, Table *to)
{
    const uint8_t *header = batch->header;
    Bytes payload = batch->payload;
    int64_t count = (int32_t)big32(header + COUNT_AT);
    if (count < 0 || count > (payload.end - payload.at) / RECORD_BYTES_MIN)
        return DOUBTED;
    if (check_crcs && batch->plain && !crc_matches(header, payload.end - header))
        return DOUBTED;
    Common common = {big64(header), big64(header + BASE_TIMESTAMP_AT), big64(header + MAX_TIMESTAMP_AT), first, until,
                     (big16(header + ATTRIBUTES_AT) & TIMESTAMP_TYPE_LOG_APPEND) != 0};
    for (; count; count--) {
        int verdict = take_record(&common, &payload, to);
        if (verdict != SOUND)
            return verdict;
    }
    return payload.at == payload.end ? SOUND : DOUBTED;
}

/* Fills what is sound of the batches, whole ones only, and says how many those were. */
static int take_batches(const Batch *batches, Py_ssize_t count, int64_t first, int64_t until, int check_crcs,
                        Table *to, Py_ssize_t *done)
{
    for (*done = 0; *done < count; ++*done) {
        Table before = *to;
        int verdict = take_batch(&batches[*done], first, until, check_crcs, to);
        if (verdict != SOUND) {
            *to = before;
            return verdict;
        }
    }
    return SOUND;
}

/* -- what Python gives */

enum {
    KEY_ENDS, KEY_BYTES, KEY_VALID, VALUE_ENDS, VALUE_BYTES, VALUE_VALID, OFFSETS, TIMES, HEADER_ENDS,
    NAME_ENDS, NAME_BYTES, CONTENT_ENDS, CONTENT_BYTES, CONTENT_VALID, ROOMS
};

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* False where some of a column's memory is there and some is missing. */
static int open_column(Column *column, const Py_buffer *ends, const Py_buffer *bytes, const Py_buffer *valid)
{
    if (ends->obj == NULL)
        return 1;
    if (bytes->obj == NULL || (valid != NULL && valid->obj == NULL) || ends->len < (Py_ssize_t)sizeof(int32_t))
        return 0;
    column->ends = ends->buf;
    column->bytes = bytes->buf;
    column->bytes_max = least(bytes->len, INT32_MAX);
    column->count_max = least(ends->len / (Py_ssize_t)sizeof(int32_t) - 1, INT32_MAX);
    column->ends[0] = 0;
    if (valid != NULL) {
        column->valid = valid->buf;
        column->count_max = least(column->count_max, valid->len * 8);
        memset(valid->buf, 0xFF, (size_t)valid->len);
    }
    return 1;
}

static int open_table(Table *table, const Py_buffer *rooms, int64_t rows_max)
{
    memset(table, 0, sizeof *table);
    table->rows_max = rows_max;
    if (!open_column(&table->keys, &rooms[KEY_ENDS], &rooms[KEY_BYTES], &rooms[KEY_VALID]) ||
        !open_column(&table->values, &rooms[VALUE_ENDS], &rooms[VALUE_BYTES], &rooms[VALUE_VALID]) ||
        !open_column(&table->names, &rooms[NAME_ENDS], &rooms[NAME_BYTES], NULL) ||
        !open_column(&table->contents, &rooms[CONTENT_ENDS], &rooms[CONTENT_BYTES], &rooms[CONTENT_VALID]))
        return 0;
    if (rooms[OFFSETS].obj != NULL) {
        table->offsets = rooms[OFFSETS].buf;
        table->rows_max = least(table->rows_max, rooms[OFFSETS].len / (Py_ssize_t)sizeof(int64_t));
    }
    if (rooms[TIMES].obj != NULL) {
        table->times = rooms[TIMES].buf;
        table->rows_max = least(table->rows_max, rooms[TIMES].len / (Py_ssize_t)sizeof(int64_t));
    }
    if (rooms[HEADER_ENDS].obj != NULL) {
        if (table->names.ends == NULL || table->contents.ends == NULL || rooms[HEADER_ENDS].len < 4)
            return 0;
        table->header_ends = rooms[HEADER_ENDS].buf;
        table->header_ends[0] = 0;
        table->rows_max = least(table->rows_max, rooms[HEADER_ENDS].len / (Py_ssize_t)sizeof(int32_t) - 1);
    }
    return 1;
}

static void close_rooms(Py_buffer *rooms)
{
    for (int index = 0; index < ROOMS; index++)
        PyBuffer_Release(&rooms[index]);
}

static int open_rooms(PyObject *given, Py_buffer *rooms)
{
    memset(rooms, 0, ROOMS * sizeof *rooms);
    if (!PyTuple_Check(given) || PyTuple_Size(given) != ROOMS) {
        PyErr_Format(PyExc_TypeError, "memory is a tuple of %d", ROOMS);
        return -1;
    }
    for (int index = 0; index < ROOMS; index++) {
        PyObject *room = PyTuple_GetItem(given, index);
        if (room == Py_None)
            continue;
        if (PyObject_GetBuffer(room, &rooms[index], PyBUF_WRITABLE) < 0) {
            close_rooms(rooms);
            return -1;
        }
        /* Python aligns memory that holds something. */
        if (rooms[index].len && (uintptr_t)rooms[index].buf % sizeof(int64_t)) {
            close_rooms(rooms);
            PyErr_SetString(PyExc_ValueError, "memory must be aligned");
            return -1;
        }
    }
    return 0;
}

/* The batches at the places, each (position, size, ...), with their payloads where these are not in the buffer. */
static Batch *open_batches(const Py_buffer *buffer, PyObject *places, PyObject *payloads, Py_ssize_t count)
{
    Batch *batches = malloc((size_t)(count ? count : 1) * sizeof *batches);
    if (batches == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        Py_ssize_t pos, size, codec, records;
        PyObject *payload = PyTuple_GetItem(payloads, index);
        if (!PyArg_ParseTuple(PyTuple_GetItem(places, index), "nnnn:fill", &pos, &size, &codec, &records))
            goto failed;
        if (pos < 0 || size < HEADER_SIZE || size > buffer->len || pos > buffer->len - size) {
            PyErr_SetString(PyExc_ValueError, "a batch goes beyond the buffer");
            goto failed;
        }
        Batch *batch = &batches[index];
        batch->header = (const uint8_t *)buffer->buf + pos;
        batch->plain = payload == Py_None;
        batch->payload = (Bytes){batch->header + HEADER_SIZE, batch->header + size};
        if (!batch->plain) {
            char *data;
            Py_ssize_t length;
            if (PyBytes_AsStringAndSize(payload, &data, &length) < 0)
                goto failed;
            batch->payload = (Bytes){(const uint8_t *)data, (const uint8_t *)data + length};
        }
    }
    return batches;
failed:
    free(batches);
    return NULL;
}

static PyObject *filled(const Py_buffer *buffer, PyObject *places, PyObject *payloads, PyObject *memory, int64_t rows,
                        int64_t first, int64_t until, int check_crcs)
{
    Py_ssize_t count = PyTuple_Size(places), done = 0;
    if (PyTuple_Size(payloads) != count)
        return PyErr_Format(PyExc_ValueError, "as many payloads as places");
    Py_buffer rooms[ROOMS];
    if (open_rooms(memory, rooms) < 0)
        return NULL;
    PyObject *result = NULL;
    Table table;
    Batch *batches = open_batches(buffer, places, payloads, count);
    if (batches == NULL)
        goto done;
    if (!open_table(&table, rooms, rows)) {
        PyErr_SetString(PyExc_ValueError, "a column needs all of its memory");
        goto done;
    }
    int verdict;
    Py_BEGIN_ALLOW_THREADS
    verdict = take_batches(batches, count, first, until, check_crcs, &table, &done);
    Py_END_ALLOW_THREADS
    result = Py_BuildValue("(inL)(LL)(LL)(LLLL)", verdict, done, (long long)table.rows, (long long)table.keys.used,
                           (long long)table.keys.nulls, (long long)table.values.used, (long long)table.values.nulls,
                           (long long)table.names.count, (long long)table.names.used, (long long)table.contents.used,
                           (long long)table.contents.nulls);
done:
    free(batches);
    close_rooms(rooms);
    return result;
}

static PyObject *fill(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *source, *places, *payloads, *memory;
    long long rows, first, until;
    int check_crcs;
    if (!PyArg_ParseTuple(args, "OO!O!OLLLp:fill", &source, &PyTuple_Type, &places, &PyTuple_Type, &payloads, &memory,
                          &rows, &first, &until, &check_crcs))
        return NULL;
    Py_buffer buffer;
    if (PyObject_GetBuffer(source, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *result = filled(&buffer, places, payloads, memory, rows, first, until, check_crcs);
    PyBuffer_Release(&buffer);
    return result;
}

/* -- the survey of headers */

/* Why a survey stopped: at the end of what is whole, because there is enough, in front of a doubt, behind what is
   wanted. */
enum { ENDED = 0, FULL, IN_DOUBT, PAST };

typedef struct {
    int64_t first, until, rows_max, bytes_max;
    int check_crcs;
    /* What was found. The time's type is that of the batches placed, -1 before the first. */
    int64_t pos, rows, bytes, next_offset, epoch;
    int time_type, stopped;
} Survey;

/* What `validate_header` asks of a header, and a size that lies within the buffer. */
static int is_sound(const uint8_t *header, int64_t size)
{
    int64_t base = big64(header), last_delta = (int32_t)big32(header + LAST_OFFSET_DELTA_AT);
    int64_t count = (int32_t)big32(header + COUNT_AT), last;
    return header[MAGIC_AT] == MAGIC && size >= HEADER_SIZE && (big16(header + ATTRIBUTES_AT) & COMPRESSION_MASK) <= CODEC_MAX &&
           base >= 0 && last_delta >= 0 && count >= 0 && count <= last_delta + 1 &&
           !__builtin_add_overflow(base, last_delta + 1, &last);
}

/* Whether the batch has something to be read: 1 or 0, or -1 where Python is to judge it. */
static int is_wanted(const Survey *survey, const uint8_t *header, int64_t size)
{
    int attributes = big16(header + ATTRIBUTES_AT), codec = attributes & COMPRESSION_MASK;
    int64_t count = (int32_t)big32(header + COUNT_AT), payload = size - HEADER_SIZE;
    int64_t last = big64(header) + (int32_t)big32(header + LAST_OFFSET_DELTA_AT);
    int idle = (attributes & CONTROL) || last < survey->first || (!count && !payload);
    /* The checksum of a plain batch that is read is compared where its bytes are read anyway. */
    if (survey->check_crcs && (codec || idle) && !crc_matches(header, size))
        return -1;
    if (idle)
        return 0;
    if (!count || (!codec && count > payload / RECORD_BYTES_MIN))
        return -1;
    return 1;
}

/* Goes on to the next batch; false where the survey stops. */
static int step(Survey *survey, const uint8_t *data, int64_t end, PyObject *places)
{
    const uint8_t *header = data + survey->pos;
    int64_t left = end - survey->pos;
    if (left > MAGIC_AT && header[MAGIC_AT] != MAGIC)
        return survey->stopped = IN_DOUBT, 0;
    if (left < HEADER_SIZE)
        return survey->stopped = ENDED, 0;
    int64_t size = (int64_t)(int32_t)big32(header + LENGTH_AT) + LOG_OVERHEAD;
    if (size > left)
        return survey->stopped = ENDED, 0;
    if (!is_sound(header, size))
        return survey->stopped = IN_DOUBT, 0;
    if (big64(header) >= survey->until)
        return survey->stopped = PAST, 0;
    int wanted = is_wanted(survey, header, size);
    if (wanted < 0)
        return survey->stopped = IN_DOUBT, 0;
    if (wanted) {
        int64_t count = (int32_t)big32(header + COUNT_AT);
        int time_type = (big16(header + ATTRIBUTES_AT) & TIMESTAMP_TYPE_LOG_APPEND) != 0;
        if (survey->rows && (survey->rows + count > survey->rows_max || survey->bytes + size > survey->bytes_max ||
                             time_type != survey->time_type))
            return survey->stopped = FULL, 0;
        PyObject *place = Py_BuildValue("LLiL", (long long)survey->pos, (long long)size,
                                        big16(header + ATTRIBUTES_AT) & COMPRESSION_MASK, (long long)count);
        if (place == NULL || PyList_Append(places, place) < 0) {
            Py_XDECREF(place);
            return -1;
        }
        Py_DECREF(place);
        survey->time_type = time_type;
        survey->rows += count;
        survey->bytes += size;
    }
    survey->next_offset = big64(header) + (int32_t)big32(header + LAST_OFFSET_DELTA_AT) + 1;
    survey->epoch = (int32_t)big32(header + LEADER_EPOCH_AT);
    survey->pos += size;
    return 1;
}

static PyObject *survey(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *source;
    Survey found = {.time_type = -1, .next_offset = -1, .epoch = -1};
    long long pos, end, first, until, rows_max, bytes_max;
    if (!PyArg_ParseTuple(args, "OLLLLLLp:survey", &source, &pos, &end, &first, &until, &rows_max, &bytes_max,
                          &found.check_crcs))
        return NULL;
    found.first = first;
    found.until = until;
    found.rows_max = rows_max;
    found.bytes_max = bytes_max;
    found.pos = pos;
    Py_buffer buffer;
    if (PyObject_GetBuffer(source, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *result = NULL, *places = NULL;
    if (pos < 0 || pos > end || end > buffer.len)
        PyErr_SetString(PyExc_ValueError, "there is no such stretch of the buffer");
    else
        places = PyList_New(0);
    if (places != NULL) {
        int going = 1;
        while (going > 0)
            going = step(&found, buffer.buf, end, places);
        if (!going)
            result = Py_BuildValue("iOLLLii", found.stopped, places, (long long)found.pos, (long long)found.rows,
                                   (long long)found.next_offset, (int)found.epoch, found.time_type);
        Py_DECREF(places);
    }
    PyBuffer_Release(&buffer);
    return result;
}

static PyObject *checksum(PyObject *module, PyObject *from)
{
    (void)module;
    Py_buffer buffer;
    if (PyObject_GetBuffer(from, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t sum = crc32c(buffer.buf, (size_t)buffer.len);
    PyBuffer_Release(&buffer);
    return PyLong_FromUnsignedLong(sum);
}

static PyMethodDef functions[] = {
    {"survey", survey, METH_VARARGS, "Which batches of a buffer hold something to be read."},
    {"fill", fill, METH_VARARGS, "The records of batches, as columns in the memory that is given."},
    {"crc32c", checksum, METH_O, "What is compared with a batch's checksum; for tests."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.columns", .m_doc = "Record batches as columns.",
    .m_size = 0, .m_methods = functions,
};

PyMODINIT_FUNC PyInit_columns(void)
{
    crc32c_prepare();
    return PyModuleDef_Init(&definition);
}
