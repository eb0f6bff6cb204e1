/* Rows of a binary array to Arrow columns, whatever format they are in: the rows, the columns as they grow, and what Python
   has of them. A format's reader puts values into columns; a row that it cannot read is taken back, is a null, and its
   number is given to Python, which then says what is wrong with it.

   Rows share one input of less than 2 GiB, and what is put into a column is a part of it: offsets fit into 32 bits. */

#ifndef OTTLA_COLUMNS_OF_ROWS_H
#define OTTLA_COLUMNS_OF_ROWS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "varints.h"

/* -- columns */

enum Form {
    NOTHING, /* a struct: its fields are other columns */
    BITS,    /* kept as bytes while they grow */
    NUMBERS, /* of `width` bytes */
    TEXTS,   /* offsets into `bytes` */
    ITEMS    /* offsets into the rows of another column */
};

typedef struct {
    enum Form form;
    size_t width; /* of what stands in `data` for each row */
    size_t rows, nulls, items, bytes_used;
    size_t rows_max, bytes_max;
    uint8_t *valid, *data, *bytes;
} Column;

/* How far a column was. */
typedef struct {
    size_t rows, nulls, items, bytes_used;
} Mark;

typedef struct {
    Column *all;
    size_t count;
    int no_memory;
} Columns;

static inline void set_form(Column *column, enum Form form, size_t width)
{
    column->form = form;
    column->width = width;
}

static inline int has_offsets(const Column *column)
{
    return column->form == TEXTS || column->form == ITEMS;
}

static int grow(Columns *columns, uint8_t **memory, size_t size)
{
    uint8_t *grown = realloc(*memory, size);
    if (grown == NULL) {
        columns->no_memory = 1;
        return 0;
    }
    *memory = grown;
    return 1;
}

/* Room for one row more, and for the offset behind it. */
static int make_room(Columns *columns, Column *column)
{
    size_t rows_max = column->rows_max ? 2 * column->rows_max : 1024;
    if (!grow(columns, &column->valid, rows_max))
        return 0;
    if (column->width && !grow(columns, &column->data, (rows_max + 1) * column->width))
        return 0;
    if (column->rows_max == 0 && column->width)
        memset(column->data, 0, column->width); /* the first offset */
    column->rows_max = rows_max;
    return 1;
}

static inline int begin_row(Columns *columns, Column *column, int is_valid)
{
    if (column->rows == column->rows_max && !make_room(columns, column))
        return 0;
    column->valid[column->rows] = (uint8_t)is_valid;
    column->nulls += !is_valid;
    return 1;
}

static inline void end_with_offset(Column *column)
{
    int32_t end = (int32_t)(column->form == ITEMS ? column->items : column->bytes_used);
    memcpy(column->data + 4 * ++column->rows, &end, 4);
}

static inline int put_number(Columns *columns, Column *column, const void *number)
{
    if (!begin_row(columns, column, 1))
        return 0;
    memcpy(column->data + column->width * column->rows++, number, column->width);
    return 1;
}

static inline int put_text(Columns *columns, Column *column, const uint8_t *bytes, size_t size)
{
    if (size > column->bytes_max - column->bytes_used) {
        size_t bytes_max = 2 * column->bytes_max + size + 4096;
        if (!grow(columns, &column->bytes, bytes_max))
            return 0;
        column->bytes_max = bytes_max;
    }
    if (!begin_row(columns, column, 1))
        return 0;
    if (size)
        memcpy(column->bytes + column->bytes_used, bytes, size);
    column->bytes_used += size;
    end_with_offset(column);
    return 1;
}

static inline int put_struct(Columns *columns, Column *column)
{
    if (!begin_row(columns, column, 1))
        return 0;
    column->rows++;
    return 1;
}

/* Of the items that have come since the row before. */
static inline int put_list(Columns *columns, Column *column)
{
    if (!begin_row(columns, column, 1))
        return 0;
    end_with_offset(column);
    return 1;
}

static inline int put_null(Columns *columns, Column *column)
{
    if (!begin_row(columns, column, 0))
        return 0;
    if (has_offsets(column)) {
        end_with_offset(column);
        return 1;
    }
    if (column->width)
        memset(column->data + column->width * column->rows, 0, column->width);
    column->rows++;
    return 1;
}

/* A map with more keys is looked through by Python. */
#define COMPARED_KEYS_MAX 64

/* Whether the keys of the entries that have come last differ: of two that are the same Python takes the last one. */
static inline int are_different(const Column *keys, size_t count)
{
    int32_t ends[COMPARED_KEYS_MAX + 1];
    if (count > COMPARED_KEYS_MAX)
        return 0;
    if (count > 1)
        memcpy(ends, keys->data + 4 * (keys->rows - count), 4 * (count + 1));
    for (size_t one = 1; one < count; one++)
        for (size_t other = 0; other < one; other++) {
            size_t size = (size_t)(ends[one + 1] - ends[one]);
            if (size == (size_t)(ends[other + 1] - ends[other]) &&
                memcmp(keys->bytes + ends[one], keys->bytes + ends[other], size) == 0)
                return 0;
        }
    return 1;
}

/* -- texts */

static int is_continued(const uint8_t *at, int more)
{
    for (int index = 1; index <= more; index++)
        if ((at[index] & 0xC0) != 0x80)
            return 0;
    return 1;
}

/* Whether Python would decode it: no longer forms than needed, no surrogates, nothing beyond the last character. */
static int is_utf8(const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        uint64_t eight;
        while (end - at >= 8 && (memcpy(&eight, at, 8), (eight & UINT64_C(0x8080808080808080)) == 0))
            at += 8;
        if (at == end)
            break;
        uint8_t first = *at;
        int more = first < 0x80 ? 0 : first < 0xC2 ? -1 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : first < 0xF5 ? 3 : -1;
        if (more < 0 || end - at <= more || !is_continued(at, more))
            return 0;
        if (more == 2 && ((first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] > 0x9F)))
            return 0;
        if (more == 3 && ((first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] > 0x8F)))
            return 0;
        at += more + 1;
    }
    return 1;
}

/* -- rows */

typedef struct {
    Py_buffer offsets, data, validity, header;
    Py_ssize_t first, count;
} Rows;

/* What a format does: 0 where a row is not sound, or there is no memory. */
typedef int (*ReadRow)(void *reader, Bytes from);
typedef int (*PutNullRow)(void *reader);

static void release_rows(Rows *rows)
{
    PyBuffer_Release(&rows->offsets);
    PyBuffer_Release(&rows->data);
    PyBuffer_Release(&rows->header);
    if (rows->validity.obj != NULL)
        PyBuffer_Release(&rows->validity);
}

static int are_within(const Rows *rows)
{
    Py_ssize_t offsets = rows->offsets.len / 4;
    return rows->first >= 0 && rows->count >= 0 && rows->data.len <= INT32_MAX && rows->first < offsets &&
           rows->count < offsets - rows->first &&
           (rows->validity.obj == NULL || rows->first + rows->count <= rows->validity.len * 8);
}

static int is_null(const Rows *rows, Py_ssize_t row)
{
    const uint8_t *validity = rows->validity.obj == NULL ? NULL : rows->validity.buf;
    return validity != NULL && !(validity[row >> 3] >> (row & 7) & 1);
}

/* A row behind the header that all have; 0 where it has another one, or is not within the data. */
static int find_row(const Rows *rows, Py_ssize_t row, Bytes *found)
{
    int32_t ends[2];
    memcpy(ends, (const int32_t *)rows->offsets.buf + row, sizeof(ends));
    if (ends[0] < 0 || ends[1] > rows->data.len || ends[1] - (int64_t)ends[0] < rows->header.len)
        return 0;
    const uint8_t *data = rows->data.buf;
    found->at = data + ends[0] + rows->header.len;
    found->end = data + ends[1];
    return rows->header.len == 0 || memcmp(data + ends[0], rows->header.buf, (size_t)rows->header.len) == 0;
}

/* How many rows are bad, with their numbers; -1 without memory. */
static Py_ssize_t read_rows(const Rows *rows, Columns *columns, Mark *marks, int32_t *bad, void *reader, ReadRow read_row,
                            PutNullRow put_null_row)
{
    Py_ssize_t found = 0;
    for (Py_ssize_t index = 0; index < rows->count && !columns->no_memory; index++) {
        Bytes row;
        for (size_t each = 0; each < columns->count; each++) {
            const Column *column = columns->all + each;
            marks[each] = (Mark){column->rows, column->nulls, column->items, column->bytes_used};
        }
        int null = is_null(rows, rows->first + index);
        if (!null && find_row(rows, rows->first + index, &row) && read_row(reader, row))
            continue;
        for (size_t each = 0; each < columns->count; each++) {
            Column *column = columns->all + each;
            column->rows = marks[each].rows;
            column->nulls = marks[each].nulls;
            column->items = marks[each].items;
            column->bytes_used = marks[each].bytes_used;
        }
        put_null_row(reader);
        if (!null)
            bad[found++] = (int32_t)index;
    }
    return columns->no_memory ? -1 : found;
}

/* -- what Python has of it */

static PyObject *bits_of(const uint8_t *bytes, size_t count)
{
    PyObject *packed = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((count + 7) / 8));
    if (packed == NULL)
        return NULL;
    uint8_t *to = (uint8_t *)PyBytes_AsString(packed);
    memset(to, 0, (count + 7) / 8);
    for (size_t index = 0; index < count; index++)
        to[index >> 3] |= (uint8_t)(bytes[index] << (index & 7));
    return packed;
}

static PyObject *data_of(const Column *column)
{
    static const uint8_t first_offset[4];
    if (column->form == NOTHING)
        Py_RETURN_NONE;
    if (column->form == BITS)
        return bits_of(column->data, column->rows);
    if (has_offsets(column) && column->data == NULL)
        return PyBytes_FromStringAndSize((const char *)first_offset, sizeof(first_offset));
    size_t numbers = column->rows + (size_t)has_offsets(column);
    return PyBytes_FromStringAndSize((const char *)column->data, (Py_ssize_t)(numbers * column->width));
}

static PyObject *bytes_of(const Column *column)
{
    if (column->form != TEXTS)
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)column->bytes, (Py_ssize_t)column->bytes_used);
}

static PyObject *finished(const Column *column)
{
    PyObject *valid = column->nulls ? bits_of(column->valid, column->rows) : Py_NewRef(Py_None);
    PyObject *data = data_of(column), *bytes = bytes_of(column);
    if (valid == NULL || data == NULL || bytes == NULL) {
        Py_XDECREF(valid);
        Py_XDECREF(data);
        Py_XDECREF(bytes);
        return NULL;
    }
    return Py_BuildValue("nnNNN", (Py_ssize_t)column->rows, (Py_ssize_t)column->nulls, valid, data, bytes);
}

static PyObject *all_finished(const Columns *columns, const int32_t *bad, Py_ssize_t bad_count)
{
    PyObject *list = PyList_New((Py_ssize_t)columns->count);
    for (size_t index = 0; list != NULL && index < columns->count; index++) {
        PyObject *column = finished(columns->all + index);
        if (column == NULL || PyList_SetItem(list, (Py_ssize_t)index, column) < 0)
            Py_CLEAR(list);
    }
    PyObject *numbers = list == NULL ? NULL : PyBytes_FromStringAndSize((const char *)bad, bad_count * 4);
    if (numbers == NULL) {
        Py_XDECREF(list);
        return NULL;
    }
    return Py_BuildValue("NN", list, numbers);
}

/* The columns, whose forms are set, and the numbers of bad rows. */
static PyObject *columns_of_rows(const Rows *rows, Columns *columns, void *reader, ReadRow read_row,
                                 PutNullRow put_null_row)
{
    Mark *marks = malloc(sizeof(Mark) * (columns->count + 1));
    int32_t *bad = malloc(sizeof(int32_t) * ((size_t)rows->count + 1));
    Py_ssize_t found = -1;
    if (marks != NULL && bad != NULL) {
        PyThreadState *state = PyEval_SaveThread();
        found = read_rows(rows, columns, marks, bad, reader, read_row, put_null_row);
        PyEval_RestoreThread(state);
    }
    PyObject *result = found < 0 ? PyErr_NoMemory() : all_finished(columns, bad, found);
    free(marks);
    free(bad);
    return result;
}

static int open_columns(Columns *columns, Py_ssize_t count)
{
    *columns = (Columns){.count = (size_t)count};
    columns->all = count < 0 || count > INT32_MAX ? NULL : calloc((size_t)count + 1, sizeof(Column));
    if (columns->all == NULL)
        PyErr_NoMemory();
    return columns->all != NULL;
}

static void close_columns(Columns *columns)
{
    for (size_t index = 0; index < columns->count; index++) {
        free(columns->all[index].valid);
        free(columns->all[index].data);
        free(columns->all[index].bytes);
    }
    free(columns->all);
}

/* -- what Python asks for */

typedef struct {
    Py_buffer nodes, tables; /* a program, as its format has it */
    Rows rows;
} Request;

/* With columns that have no form yet; 0 with an exception. */
static int open_request(Request *request, PyObject *args, Columns *columns)
{
    Py_ssize_t count;
    Rows *rows = &request->rows;
    if (!PyArg_ParseTuple(args, "y*y*ny*y*z*nny*:read", &request->nodes, &request->tables, &count, &rows->offsets,
                          &rows->data, &rows->validity, &rows->first, &rows->count, &rows->header))
        return 0;
    if (open_columns(columns, count))
        return 1;
    PyBuffer_Release(&request->nodes);
    PyBuffer_Release(&request->tables);
    release_rows(rows);
    return 0;
}

static void close_request(Request *request, Columns *columns)
{
    close_columns(columns);
    PyBuffer_Release(&request->nodes);
    PyBuffer_Release(&request->tables);
    release_rows(&request->rows);
}

/* Whether both can be read; 0 with an exception. */
static int check_request(int is_program, const Rows *rows)
{
    if (is_program && are_within(rows))
        return 1;
    PyErr_SetString(PyExc_ValueError, is_program ? "the rows are not within their buffers" : "that is no program");
    return 0;
}

#endif
