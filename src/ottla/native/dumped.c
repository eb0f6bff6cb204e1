/* The batches of a segment that a dump has nothing to say of but what is in them, compiled: checked, and as lines of
   text where these are wanted.

   `walk` does for many batches what `storage/dump/log_file.py` and `lines.py` do for one. It stops before the first
   that is damaged, not whole, a marker of a transaction, out of line, or written as no client writes it; the loop in
   Python looks at that one, and is the judge of it. What is compressed it has Python unfold.

   Nothing here trusts a length: a batch is looked at only if all of it ends where the bytes do, and every number and
   every slice of a record is compared with the end of its record before it is read. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "batch_fields.h"
#include "crc32c.h"
#include "varints.h"

/* So many of the last batches say which one is out of line, should the next one be (`rising_order.py`). */
#define OUT_OF_LINE_MAX 8

/* What a line takes at most beside keys, values and the names of headers: its words, and twenty digits a number. */
#define WORDS_MAX 1024
#define TEXT_MIN 65536
/* With so many bytes of lines it is enough: what is compressed may unfold to any number. */
#define TEXT_ENOUGH (4 << 20)
#define DIGITS_MAX 20

static const char *const codec_names[CODEC_MAX + 1] = {"none", "gzip", "snappy", "lz4", "zstd"};

/* A batch that the loop in Python is to look at, and one for which there is no memory. */
enum { USUAL = 0, LEFT, FAILED };

/* -- lines: UTF-8 that grows. What is put has its room reserved. */

typedef struct {
    char *start;
    size_t used, room;
} Text;

#define PUT(text, words) put(text, words, sizeof(words) - 1)
#define PUT_NUMBER(text, words, number) (PUT(text, words), put_number(text, number))

static int reserve(Text *text, size_t more)
{
    if (more <= text->room - text->used)
        return USUAL;
    size_t room = text->room < TEXT_MIN ? TEXT_MIN : text->room;
    while (room - text->used < more)
        room *= 2;
    char *grown = realloc(text->start, room);
    if (grown == NULL) {
        PyErr_NoMemory();
        return FAILED;
    }
    text->start = grown;
    text->room = room;
    return USUAL;
}

static inline void put(Text *text, const char *words, size_t size)
{
    memcpy(text->start + text->used, words, size);
    text->used += size;
}

static void put_number(Text *text, int64_t number)
{
    char digits[DIGITS_MAX], *at = digits + DIGITS_MAX;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0)
        *--at = '-';
    put(text, at, (size_t)(digits + DIGITS_MAX - at));
}

/* What is no ASCII, or has line breaks, by way of Python's own decoder: a record's line breaks would make two lines. */
static int put_unusual(Text *text, const Bytes *what, const char *errors)
{
    PyObject *decoded = PyUnicode_DecodeUTF8((const char *)what->at, what->end - what->at, errors);
    Py_ssize_t size;
    const char *at = decoded == NULL ? NULL : PyUnicode_AsUTF8AndSize(decoded, &size);
    int result = at == NULL ? FAILED : reserve(text, 2 * (size_t)size);
    for (; result == USUAL && size; size--, at++)
        if (*at == '\n')
            PUT(text, "\\n");
        else if (*at == '\r')
            PUT(text, "\\r");
        else
            text->start[text->used++] = *at;
    Py_XDECREF(decoded);
    return result;
}

/* Leaves room for another line's words behind it. */
static int put_content(Text *text, const Bytes *what, const char *errors)
{
    size_t size = (size_t)(what->end - what->at);
    unsigned unusual = 0;
    for (const uint8_t *at = what->at; at < what->end; at++)
        unusual |= (*at & 0x80u) | (*at == '\n') | (*at == '\r');
    int result = reserve(text, size + WORDS_MAX);
    if (result != USUAL)
        return result;
    if (!unusual) {
        put(text, (const char *)what->at, size);
        return USUAL;
    }
    result = put_unusual(text, what, errors);
    return result == USUAL ? reserve(text, WORDS_MAX) : result;
}

/* -- one batch */

typedef struct {
    int64_t position, base_offset, base_timestamp, max_timestamp, producer_id;
    int32_t last_offset_delta, count, leader_epoch, base_sequence;
    uint32_t size, crc;
    int16_t producer_epoch;
    int codec, has_log_time, is_transactional;
} Batch;

/* Sequence numbers start again at 0 behind 2**31 - 1. */
static int64_t sequence_of(const Batch *batch, int64_t offset_delta)
{
    return batch->base_sequence == NO_SEQUENCE ? NO_SEQUENCE : (batch->base_sequence + offset_delta) & INT32_MAX;
}

/* -- what the lines of a batch and of its records have in common */

static void put_position_and_time(Text *text, const Batch *batch, int64_t time)
{
    PUT_NUMBER(text, " position: ", batch->position);
    if (batch->has_log_time)
        PUT_NUMBER(text, " LogAppendTime: ", batch->max_timestamp);
    else
        PUT_NUMBER(text, " CreateTime: ", time);
}

static void put_format(Text *text, const Batch *batch)
{
    PUT_NUMBER(text, " magic: ", MAGIC);
    PUT(text, " compresscodec: ");
    put(text, codec_names[batch->codec], strlen(codec_names[batch->codec]));
}

static void put_producer(Text *text, const Batch *batch)
{
    PUT_NUMBER(text, " producerId: ", batch->producer_id);
    PUT_NUMBER(text, " producerEpoch: ", batch->producer_epoch);
}

static void put_transactional(Text *text, const Batch *batch)
{
    if (batch->is_transactional)
        PUT(text, " isTransactional: true");
    else
        PUT(text, " isTransactional: false");
}

static int put_batch(Text *text, const Batch *batch)
{
    if (reserve(text, WORDS_MAX) != USUAL)
        return FAILED;
    PUT_NUMBER(text, "baseOffset: ", batch->base_offset);
    PUT_NUMBER(text, " lastOffset: ", batch->base_offset + batch->last_offset_delta);
    PUT_NUMBER(text, " count: ", batch->count);
    PUT_NUMBER(text, " baseSequence: ", batch->base_sequence);
    PUT_NUMBER(text, " lastSequence: ", sequence_of(batch, batch->last_offset_delta));
    put_producer(text, batch);
    PUT_NUMBER(text, " partitionLeaderEpoch: ", batch->leader_epoch);
    put_transactional(text, batch);
    PUT(text, " isControl: false");
    put_position_and_time(text, batch, batch->max_timestamp);
    PUT_NUMBER(text, " size: ", batch->size);
    put_format(text, batch);
    PUT_NUMBER(text, " crc: ", batch->crc);
    PUT(text, " isvalid: true\n");
    return USUAL;
}

static void put_record_head(Text *text, const Batch *batch, int64_t offset_delta, int64_t time, const Bytes *key,
                            const Bytes *value)
{
    PUT_NUMBER(text, "| offset: ", batch->base_offset + offset_delta);
    put_position_and_time(text, batch, time);
    PUT_NUMBER(text, " isvalid: true keysize: ", key->at == NULL ? -1 : key->end - key->at);
    PUT_NUMBER(text, " valuesize: ", value->at == NULL ? -1 : value->end - value->at);
    put_format(text, batch);
    put_producer(text, batch);
    PUT_NUMBER(text, " sequence: ", sequence_of(batch, offset_delta));
    put_transactional(text, batch);
    PUT(text, " headerKeys: [");
}

/* The headers up to the record's end, and their names as text unless that is NULL. */
static int take_headers(Bytes *from, int64_t count, Text *text)
{
    /* A header takes two bytes at least. */
    if (count < 0 || count > (from->end - from->at) / 2)
        return LEFT;
    for (int64_t index = 0; index < count; index++) {
        Bytes name, value;
        if (!read_bytes(from, &name) || name.at == NULL || !read_bytes(from, &value))
            return LEFT;
        if (text == NULL)
            continue;
        if (index)
            PUT(text, ",");
        if (put_content(text, &name, "replace") != USUAL)
            return FAILED;
    }
    return USUAL;
}

/* One record, and its line unless `text` is NULL. `before` is the last one's distance from the base offset. */
static int take_record(const Batch *batch, Bytes *from, int64_t *before, Text *text)
{
    int64_t size, time, offset_delta, header_count;
    Bytes key, value;
    if (!read_int(from, &size) || size < 1 || size > from->end - from->at)
        return LEFT;
    Bytes own = {from->at + 1, from->at + size}; /* behind the attributes, of which none are defined */
    from->at = own.end;
    if (!read_long(&own, &time) || !read_int(&own, &offset_delta) || !read_bytes(&own, &key) ||
        !read_bytes(&own, &value) || !read_int(&own, &header_count) ||
        __builtin_add_overflow(batch->base_timestamp, time, &time))
        return LEFT;
    if (offset_delta <= *before || offset_delta > batch->last_offset_delta)
        return LEFT;
    *before = offset_delta;
    if (text != NULL) {
        if (reserve(text, WORDS_MAX) != USUAL)
            return FAILED;
        put_record_head(text, batch, offset_delta, time, &key, &value);
    }
    int verdict = take_headers(&own, header_count, text);
    if (verdict != USUAL)
        return verdict;
    if (own.at != own.end)
        return LEFT;
    if (text == NULL)
        return USUAL;
    PUT(text, "]");
    if (key.at != NULL) {
        PUT(text, " key: ");
        verdict = put_content(text, &key, "backslashreplace");
    }
    if (verdict == USUAL && value.at != NULL) {
        PUT(text, " payload: ");
        verdict = put_content(text, &value, "backslashreplace");
    }
    if (verdict == USUAL)
        PUT(text, "\n");
    return verdict;
}

static int take_records(const Batch *batch, Bytes payload, Text *text)
{
    int64_t before = -1;
    for (int32_t index = 0; index < batch->count; index++) {
        int verdict = take_record(batch, &payload, &before, text);
        if (verdict != USUAL)
            return verdict;
    }
    return payload.at == payload.end ? USUAL : LEFT;
}

/* The same for records that are compressed: `unfold` gives them as bytes, or None where they are damaged. */
static int take_folded(const Batch *batch, Bytes payload, PyObject *unfold, Text *text)
{
    PyObject *unfolded =
        PyObject_CallFunction(unfold, "iy#", batch->codec, (const char *)payload.at, (Py_ssize_t)(payload.end - payload.at));
    if (unfolded == NULL)
        return FAILED;
    char *at;
    Py_ssize_t size;
    int verdict = LEFT;
    if (unfolded != Py_None)
        verdict = PyBytes_AsStringAndSize(unfolded, &at, &size) < 0
                      ? FAILED
                      : take_records(batch, (Bytes){(const uint8_t *)at, (const uint8_t *)at + size}, text);
    Py_DECREF(unfolded);
    return verdict;
}

/* -- all of them */

/* What the next batch has to fit: offsets from `due` on that end before `end`. */
typedef struct {
    long long position, due, end;
    int leader_epoch;
} Place;

/* Reads the header of the batch that begins here; 0 where the loop in Python is to look at it. */
static int read_batch(const uint8_t *at, Py_ssize_t left, const Place *place, Batch *batch)
{
    if (left < HEADER_SIZE || at[MAGIC_AT] != MAGIC)
        return 0;
    int32_t length = (int32_t)big32(at + LENGTH_AT);
    if (length < LENGTH_MIN || length > left - LOG_OVERHEAD)
        return 0;
    int attributes = big16(at + ATTRIBUTES_AT);
    *batch = (Batch){
        .position = place->position,
        .base_offset = big64(at),
        .base_timestamp = big64(at + BASE_TIMESTAMP_AT),
        .max_timestamp = big64(at + MAX_TIMESTAMP_AT),
        .producer_id = big64(at + PRODUCER_ID_AT),
        .last_offset_delta = (int32_t)big32(at + LAST_OFFSET_DELTA_AT),
        .count = (int32_t)big32(at + COUNT_AT),
        .leader_epoch = (int32_t)big32(at + LEADER_EPOCH_AT),
        .base_sequence = (int32_t)big32(at + BASE_SEQUENCE_AT),
        .size = (uint32_t)length + LOG_OVERHEAD,
        .crc = big32(at + CRC_AT),
        .producer_epoch = (int16_t)big16(at + PRODUCER_EPOCH_AT),
        .codec = attributes & COMPRESSION_MASK,
        .has_log_time = (attributes & TIMESTAMP_TYPE_LOG_APPEND) != 0,
        .is_transactional = (attributes & TRANSACTIONAL) != 0,
    };
    if (attributes & ~(COMPRESSION_MASK | TIMESTAMP_TYPE_LOG_APPEND | TRANSACTIONAL) || batch->codec > CODEC_MAX ||
        batch->leader_epoch != place->leader_epoch)
        return 0;
    int32_t delta = batch->last_offset_delta;
    if (delta < 0 || batch->count < 1 || batch->count - 1 > delta || batch->base_sequence < NO_SEQUENCE)
        return 0;
    if (batch->base_offset < 0 || batch->base_offset < place->due || batch->base_offset > OFFSET_MAX - delta ||
        batch->base_offset + delta >= place->end)
        return 0;
    return crc32c(at + ATTRIBUTES_AT, batch->size - ATTRIBUTES_AT) == batch->crc;
}

/* The last batches, as `RisingOrder` remembers them: position, first offset, how many offsets, and what was due. */
typedef struct {
    long long values[OUT_OF_LINE_MAX][4];
    Py_ssize_t count;
} Line;

static void note(Line *line, const Batch *batch, long long due)
{
    long long *value = line->values[line->count++ % OUT_OF_LINE_MAX];
    value[0] = batch->position;
    value[1] = batch->base_offset;
    value[2] = (long long)batch->last_offset_delta + 1;
    value[3] = due;
}

static PyObject *noted(const Line *line)
{
    Py_ssize_t first = line->count < OUT_OF_LINE_MAX ? 0 : line->count - OUT_OF_LINE_MAX;
    PyObject *list = PyList_New(line->count - first);
    for (Py_ssize_t index = first; list != NULL && index < line->count; index++) {
        const long long *value = line->values[index % OUT_OF_LINE_MAX];
        PyObject *entry = Py_BuildValue("LLLL", value[0], value[1], value[2], value[3]);
        if (entry == NULL || PyList_SetItem(list, index - first, entry) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* How many bytes the usual batches at the begin have, or -1 with an exception set. Without `unfold` nothing is asked of
   their records. */
static Py_ssize_t walk_through(const uint8_t *data, Py_ssize_t size, Place *place, PyObject *unfold, Text *text,
                               Line *line)
{
    Py_ssize_t at = 0;
    Batch batch;
    while ((text == NULL || text->used < TEXT_ENOUGH) && read_batch(data + at, size - at, place, &batch)) {
        size_t before = text == NULL ? 0 : text->used;
        if (text != NULL && put_batch(text, &batch) != USUAL)
            return -1;
        if (unfold != NULL) {
            Bytes payload = {data + at + HEADER_SIZE, data + at + batch.size};
            int verdict = batch.codec ? take_folded(&batch, payload, unfold, text) : take_records(&batch, payload, text);
            if (verdict == FAILED)
                return -1;
            if (verdict == LEFT) {
                if (text != NULL)
                    text->used = before;
                break;
            }
        }
        note(line, &batch, place->due);
        place->due = batch.base_offset + batch.last_offset_delta + 1;
        place->position += batch.size;
        at += batch.size;
    }
    return at;
}

static PyObject *walk(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data;
    Py_ssize_t start;
    Place place;
    PyObject *unfold;
    int lines;
    if (!PyArg_ParseTuple(args, "y*nLLLiOp:walk", &data, &start, &place.position, &place.due, &place.end,
                          &place.leader_epoch, &unfold, &lines))
        return NULL;
    if (start < 0 || start > data.len) {
        PyBuffer_Release(&data);
        PyErr_SetString(PyExc_ValueError, "the walk begins outside of the bytes");
        return NULL;
    }
    Text text = {0};
    Line line = {.count = 0};
    PyObject *found = NULL;
    Py_ssize_t taken = walk_through((const uint8_t *)data.buf + start, data.len - start, &place,
                                    unfold == Py_None ? NULL : unfold, lines ? &text : NULL, &line);
    if (taken >= 0) {
        PyObject *last = noted(&line);
        PyObject *written = last == NULL ? NULL : PyUnicode_DecodeUTF8(text.start, (Py_ssize_t)text.used, "strict");
        if (written != NULL)
            found = Py_BuildValue("nLOO", taken, place.due, last, written);
        Py_XDECREF(last);
        Py_XDECREF(written);
    }
    free(text.start);
    PyBuffer_Release(&data);
    return found;
}

static PyMethodDef functions[] = {
    {"walk", walk, METH_VARARGS, "The usual batches from a place of a segment on, and their lines."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.dumped", .m_doc = "Batches that are dumped.", .m_size = 0,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_dumped(void)
{
    crc32c_prepare();
    return PyModuleDef_Init(&definition);
}
