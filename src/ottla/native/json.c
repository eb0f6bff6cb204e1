/* JSON records to Arrow columns: what `ottla.formats.json` does row by row in Python, compiled.

   A program, which `formats/json_programs.py` makes of a schema, has a node for each type in it, in pre-order: each ends where
   the next one of its parent's begins, and a record's fields have names. The column of a node has its number. Members without
   a node are checked and passed over.

   Nothing may be taken here that is refused in Python, or read as something else; what is refused here is read once more
   there. That is each record in which anything is wrong or doubtful: a value that does not fit, a member that comes twice, a
   name that is written with escapes. */

#define _GNU_SOURCE /* strtod_l */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <locale.h>
#include <stdint.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include "columns_of_rows.h"
#include "iso_times.h"
#include "json_tokens.h"

/* As `json_programs.py` numbers them. */
enum Kind {
    RECORD, /* its fields follow, each with a name */
    LIST,   /* of what follows */
    MAP,    /* of a record of a STRING and of what follows */
    BOOLEAN,
    TINYINT,
    SMALLINT,
    INT,
    BIGINT,
    FLOAT,
    DOUBLE,
    STRING,
    DATE,
    TIMESTAMP,     /* in UTC */
    TIMESTAMP_NTZ, /* in no zone */
    DECIMAL,       /* `number` is 100 times its digits and its scale */
    KINDS
};

#define NUMBER_BYTES_MAX 63
#define DIGITS_MAX 38

typedef struct {
    int32_t kind, end, number, name, name_size;
} Node;

typedef struct {
    const Node *nodes;
    const uint8_t *names;
    Columns columns;
    Bytes from;
    /* Of each node the object in which it was met last; objects are numbered. */
    int64_t *met, objects;
    uint8_t *unescaped;
    size_t unescaped_max;
    locale_t plain;
} Reading;

static Column *column_of(Reading *reading, int32_t at)
{
    return reading->columns.all + at;
}

static int put_nulls(Reading *reading, int32_t at)
{
    const Node *node = reading->nodes + at;
    if (!put_null(&reading->columns, column_of(reading, at)))
        return 0;
    if (node->kind == LIST || node->kind == MAP)
        return 1;
    for (int32_t child = at + 1; child < node->end; child = reading->nodes[child].end)
        if (!put_nulls(reading, child))
            return 0;
    return 1;
}

/* -- numbers */

static int read_boolean(Reading *reading, int32_t at)
{
    uint8_t value = *reading->from.at == 't';
    if (!takes_word(&reading->from, value ? "true" : "false", value ? 4 : 5))
        return 0;
    return put_number(&reading->columns, column_of(reading, at), &value);
}

static int whole_of(const Number *number, int64_t *value)
{
    if (number->has_exponent || number->part.end != number->part.at || number->whole.end - number->whole.at > 18)
        return 0;
    *value = 0;
    for (const uint8_t *digit = number->whole.at; digit < number->whole.end; digit++)
        *value = *value * 10 + (*digit - '0');
    if (number->is_negative)
        *value = -*value;
    return 1;
}

static int read_whole(Reading *reading, int32_t at)
{
    Number number;
    int64_t value;
    if (!read_number(&reading->from, &number) || !whole_of(&number, &value))
        return 0;
    int32_t of_32 = (int32_t)value;
    int16_t of_16 = (int16_t)value;
    int8_t of_8 = (int8_t)value;
    const void *put = &value;
    switch (reading->nodes[at].kind) {
    case TINYINT:
        put = &of_8;
        if (of_8 != value)
            return 0;
        break;
    case SMALLINT:
        put = &of_16;
        if (of_16 != value)
            return 0;
        break;
    case INT:
        put = &of_32;
        if (of_32 != value)
            return 0;
        break;
    }
    return put_number(&reading->columns, column_of(reading, at), put);
}

static int read_double(Reading *reading, int32_t at)
{
    Number number;
    char text[NUMBER_BYTES_MAX + 1];
    if (!read_number(&reading->from, &number) || number.end - number.at > NUMBER_BYTES_MAX)
        return 0;
    memcpy(text, number.at, (size_t)(number.end - number.at));
    text[number.end - number.at] = 0;
    double value = strtod_l(text, NULL, reading->plain);
    float single = (float)value;
    const void *put = reading->nodes[at].kind == FLOAT ? (const void *)&single : &value;
    return put_number(&reading->columns, column_of(reading, at), put);
}

static int read_decimal(Reading *reading, int32_t at)
{
#ifdef __SIZEOF_INT128__
    int digits = reading->nodes[at].number / 100, scale = reading->nodes[at].number % 100;
    Number number;
    if (!read_number(&reading->from, &number) || number.has_exponent)
        return 0;
    ptrdiff_t parts = number.part.end - number.part.at, all = number.whole.end - number.whole.at + parts;
    if (parts > scale || all + (scale - parts) > DIGITS_MAX)
        return 0;
    unsigned __int128 value = 0, limit = 1;
    for (const uint8_t *digit = number.whole.at; digit < number.part.end; digit++)
        if (*digit != '.')
            value = value * 10 + (unsigned)(*digit - '0');
    for (; parts < scale; parts++)
        value *= 10;
    for (int index = 0; index < digits; index++)
        limit *= 10;
    if (value >= limit || value == 0)
        return 0; /* what zero fits into is Python's to say */
    __int128 put = number.is_negative ? -(__int128)value : (__int128)value;
    return put_number(&reading->columns, column_of(reading, at), &put);
#else
    (void)reading, (void)at;
    return 0;
#endif
}

/* -- texts, and times in them */

/* A sound text in place of one with escapes: it is never longer. */
static int unescape(Reading *reading, Bytes *text)
{
    size_t size = (size_t)(text->end - text->at), length = 0;
    if (size > reading->unescaped_max) {
        if (!grow(&reading->columns, &reading->unescaped, 2 * size))
            return 0;
        reading->unescaped_max = 2 * size;
    }
    Bytes from = *text;
    while (from.at < from.end) {
        const uint8_t *end = memchr(from.at, '\\', (size_t)(from.end - from.at));
        size_t plain = (size_t)((end == NULL ? from.end : end) - from.at);
        memcpy(reading->unescaped + length, from.at, plain);
        length += plain;
        from.at += plain;
        uint32_t number;
        if (end == NULL)
            break;
        from.at++;
        if (!read_escape(&from, &number))
            return 0;
        length += put_character(reading->unescaped + length, number);
    }
    *text = (Bytes){reading->unescaped, reading->unescaped + length};
    return 1;
}

/* A text, and all else as it is written. */
static int read_string(Reading *reading, int32_t at)
{
    Bytes text;
    int is_escaped = 0;
    if (*reading->from.at == '"') {
        reading->from.at++;
        if (!read_quoted(&reading->from, &text, &is_escaped) || (is_escaped && !unescape(reading, &text)))
            return 0;
    } else {
        text.at = reading->from.at;
        if (!pass_value(&reading->from, 0))
            return 0;
        text.end = reading->from.at;
    }
    return put_text(&reading->columns, column_of(reading, at), text.at, (size_t)(text.end - text.at));
}

static int read_time(Reading *reading, int32_t at)
{
    Bytes text;
    int is_escaped, kind = reading->nodes[at].kind;
    int32_t days;
    int64_t micros = 0;
    if (!takes_next(&reading->from, '"') || !read_quoted(&reading->from, &text, &is_escaped) || !read_day(&text, &days))
        return 0;
    int has_clock = text.at < text.end;
    if (has_clock && !takes_next(&text, 'T') && !takes_next(&text, ' '))
        return 0;
    if (kind == DATE) /* what follows is passed over */
        return !is_escaped && put_number(&reading->columns, column_of(reading, at), &days);
    if (has_clock && !read_clock(&text, &micros))
        return 0;
    if (text.at < text.end && (kind == TIMESTAMP_NTZ || !read_zone(&text, &micros)))
        return 0;
    micros += (int64_t)days * SECONDS_A_DAY * MICROS_A_SECOND;
    return text.at == text.end && put_number(&reading->columns, column_of(reading, at), &micros);
}

/* -- objects and lists */

static int read_value(Reading *reading, int32_t at);

/* The field of a name, which most often is the next one; -1 for none. */
static int32_t field_of(const Reading *reading, int32_t at, int32_t next, Bytes name)
{
    const Node *nodes = reading->nodes;
    int32_t first = at + 1, end = nodes[at].end;
    if (first == end)
        return -1;
    int32_t child = next < end ? next : first;
    int32_t began = child;
    do {
        if (nodes[child].name_size == name.end - name.at &&
            memcmp(reading->names + nodes[child].name, name.at, (size_t)nodes[child].name_size) == 0)
            return child;
        child = nodes[child].end < end ? nodes[child].end : first;
    } while (child != began);
    return -1;
}

static int read_member(Reading *reading, int32_t at, int64_t object, int32_t *next)
{
    Bytes name;
    int is_escaped;
    if (!takes(&reading->from, '"') || !read_quoted(&reading->from, &name, &is_escaped) || is_escaped ||
        !takes(&reading->from, ':'))
        return 0;
    int32_t field = field_of(reading, at, *next, name);
    if (field < 0)
        return pass_value(&reading->from, 0);
    if (reading->met[field] == object)
        return 0; /* it comes twice */
    reading->met[field] = object;
    *next = reading->nodes[field].end;
    return read_value(reading, field);
}

static int read_record(Reading *reading, int32_t at)
{
    int64_t object = ++reading->objects;
    int32_t next = at + 1;
    reading->from.at++;
    if (!put_struct(&reading->columns, column_of(reading, at)))
        return 0;
    if (!takes(&reading->from, '}')) {
        do {
            if (!read_member(reading, at, object, &next))
                return 0;
        } while (takes(&reading->from, ','));
        if (!takes(&reading->from, '}'))
            return 0;
    }
    for (int32_t child = at + 1; child < reading->nodes[at].end; child = reading->nodes[child].end)
        if (reading->met[child] != object && !put_nulls(reading, child))
            return 0;
    return 1;
}

static int read_list(Reading *reading, int32_t at)
{
    size_t count = 0;
    reading->from.at++;
    if (!takes(&reading->from, ']')) {
        do {
            if (!read_value(reading, at + 1))
                return 0;
            count++;
        } while (takes(&reading->from, ','));
        if (!takes(&reading->from, ']'))
            return 0;
    }
    column_of(reading, at)->items += count;
    return put_list(&reading->columns, column_of(reading, at));
}

static int read_entry(Reading *reading, int32_t entry)
{
    pass_space(&reading->from);
    return reading->from.at < reading->from.end && *reading->from.at == '"' &&
           put_struct(&reading->columns, column_of(reading, entry)) && read_string(reading, entry + 1) &&
           takes(&reading->from, ':') && read_value(reading, reading->nodes[entry + 1].end);
}

static int read_map(Reading *reading, int32_t at)
{
    size_t count = 0;
    reading->from.at++;
    if (!takes(&reading->from, '}')) {
        do {
            if (!read_entry(reading, at + 1))
                return 0;
            count++;
        } while (takes(&reading->from, ','));
        if (!takes(&reading->from, '}'))
            return 0;
    }
    column_of(reading, at)->items += count;
    return are_different(column_of(reading, at + 2), count) && put_list(&reading->columns, column_of(reading, at));
}

/* 0 where it is not sound, does not fit, or there is no memory. */
static int read_value(Reading *reading, int32_t at)
{
    pass_space(&reading->from);
    if (reading->from.at == reading->from.end)
        return 0;
    uint8_t first = *reading->from.at;
    if (first == 'n')
        return takes_word(&reading->from, "null", 4) && put_nulls(reading, at);
    switch (reading->nodes[at].kind) {
    case RECORD:
        return first == '{' && read_record(reading, at);
    case LIST:
        return first == '[' && read_list(reading, at);
    case MAP:
        return first == '{' && read_map(reading, at);
    case BOOLEAN:
        return read_boolean(reading, at);
    case FLOAT: case DOUBLE:
        return read_double(reading, at);
    case STRING:
        return read_string(reading, at);
    case DATE: case TIMESTAMP: case TIMESTAMP_NTZ:
        return read_time(reading, at);
    case DECIMAL:
        return read_decimal(reading, at);
    default:
        return read_whole(reading, at);
    }
}

static int read_row(void *reader, Bytes from)
{
    Reading *reading = reader;
    reading->from = from;
    pass_space(&reading->from);
    if (reading->from.at == from.end || *reading->from.at != '{' || !is_utf8(from.at, from.end))
        return 0;
    if (!read_record(reading, 0))
        return 0;
    pass_space(&reading->from);
    return reading->from.at == from.end;
}

static int put_null_row(void *reader)
{
    return put_nulls(reader, 0);
}

/* -- programs */

static void set_column(Column *column, int kind)
{
    switch (kind) {
    case RECORD:
        set_form(column, NOTHING, 0);
        break;
    case LIST: case MAP:
        set_form(column, ITEMS, 4);
        break;
    case STRING:
        set_form(column, TEXTS, 4);
        break;
    case BOOLEAN:
        set_form(column, BITS, 1);
        break;
    case TINYINT:
        set_form(column, NUMBERS, 1);
        break;
    case SMALLINT:
        set_form(column, NUMBERS, 2);
        break;
    case INT: case FLOAT: case DATE:
        set_form(column, NUMBERS, 4);
        break;
    case DECIMAL:
        set_form(column, NUMBERS, 16);
        break;
    default:
        set_form(column, NUMBERS, 8);
    }
}

/* Whether a node stays within the program and its names. */
static int check_node(Reading *reading, int32_t at, int32_t end, Py_ssize_t names, int depth)
{
    const Node *node = reading->nodes + at;
    if (depth > DEPTH_MAX || node->kind < 0 || node->kind >= KINDS || node->end <= at || node->end > end ||
        node->name < 0 || node->name_size < 0 || node->name > names ||
        node->name_size > names - node->name)
        return 0;
    if (node->kind == DECIMAL && (node->number < 0 || node->number / 100 > DIGITS_MAX || node->number % 100 > DIGITS_MAX))
        return 0;
    set_column(reading->columns.all + at, node->kind);
    int children = 0;
    for (int32_t child = at + 1; child < node->end; child = reading->nodes[child].end, children++)
        if (!check_node(reading, child, node->end, names, depth + 1))
            return 0;
    if (node->kind == MAP)
        return children == 1 && node[1].kind == RECORD && node[1].end > at + 3 && node[2].kind == STRING &&
               node[3].end == node[1].end; /* a key, and one value behind it */
    return node->kind == RECORD || children == (node->kind == LIST);
}

static PyObject *read_by_program(Reading *reading, const Rows *rows, Py_ssize_t nodes, Py_ssize_t names)
{
    int is_program = nodes >= 1 && (size_t)nodes == reading->columns.count && reading->nodes[0].kind == RECORD &&
                     check_node(reading, 0, (int32_t)nodes, names, 0) && reading->nodes[0].end == nodes;
    if (!check_request(is_program, rows))
        return NULL;
    reading->met = calloc((size_t)nodes, sizeof(int64_t));
    reading->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    PyObject *result = NULL;
    if (reading->met != NULL && reading->plain != (locale_t)0)
        result = columns_of_rows(rows, &reading->columns, reading, read_row, put_null_row);
    else
        PyErr_NoMemory();
    free(reading->met);
    free(reading->unescaped);
    if (reading->plain != (locale_t)0)
        freelocale(reading->plain);
    return result;
}

static PyObject *read_columns(PyObject *module, PyObject *args)
{
    (void)module;
    Request request;
    Reading reading = {0};
    if (!open_request(&request, args, &reading.columns))
        return NULL;
    reading.nodes = request.nodes.buf;
    reading.names = request.tables.buf;
    Py_ssize_t nodes = request.nodes.len / (Py_ssize_t)sizeof(Node);
    PyObject *result = read_by_program(&reading, &request.rows, nodes, request.tables.len);
    close_request(&request, &reading.columns);
    return result;
}

static PyMethodDef functions[] = {
    {"read", read_columns, METH_VARARGS, "Columns of a binary array's rows, and the numbers of those that are bad."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.json", .m_doc = "JSON records to Arrow columns.",
    .m_size = 0, .m_methods = functions,
};

PyMODINIT_FUNC PyInit_json(void)
{
    return PyModuleDef_Init(&definition);
}
