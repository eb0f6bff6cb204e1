/* Avro records to Arrow columns: what `ottla.formats.avro` does row by row in Python, compiled.

   A program, which `formats/avro/programs.py` makes of the writer's schema and the reader's, says what stands in a record
   and which columns it goes to. It is a tree in pre-order: each node ends where the next one of its parent's begins. A node
   without a column (-1) is read, checked and passed over.

   Nothing may be taken here that is refused in Python; what is refused here is read once more there. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>

#include "columns_of_rows.h"
#include "varints.h"

/* As `programs.py` numbers them. */
enum Kind {
    RECORD,     /* its fields follow */
    OPTIONAL,   /* a union of null, which is branch `number`, and of what follows */
    LIST,       /* of what follows */
    MAP,        /* a list of records, whose keys are column `number` */
    BOOLEAN,
    INT,
    LONG,
    INT_AS_LONG,
    FLOAT,
    DOUBLE,
    BYTES,
    STRING,
    FIXED,      /* of `number` bytes */
    ENUM,       /* an index; `number` is where its table begins */
    MILLIS,     /* as microseconds */
    DAY_MILLIS, /* as nanoseconds */
    DAY_MICROS,
    DECIMAL,    /* its table has its digits, its size (-1 behind a length), and how many bytes it may have */
    KINDS
};

#define DEPTH_MAX 64
#define DECIMAL_BYTES 16
#define DECIMAL_DIGITS_MAX 38
#define MICROS_A_DAY INT64_C(86400000000)

typedef struct {
    int32_t kind, column, end, number;
} Node;

typedef struct {
    const Node *nodes;
    const int32_t *tables;
    Columns columns;
    Bytes from;
} Reading;

static Column *column_of(Reading *reading, const Node *node)
{
    return node->column < 0 ? NULL : reading->columns.all + node->column;
}

static int is_list(const Node *node)
{
    return node->kind == LIST || node->kind == MAP;
}

/* A null in the columns of a node and, where it is no list, of all below it. */
static int put_nulls(Reading *reading, int32_t at)
{
    const Node *node = reading->nodes + at;
    Column *column = column_of(reading, node);
    if (column != NULL && !put_null(&reading->columns, column))
        return 0;
    if (is_list(node))
        return 1;
    for (int32_t child = at + 1; child < node->end; child = reading->nodes[child].end)
        if (!put_nulls(reading, child))
            return 0;
    return 1;
}

/* -- values */

static int read_size(Bytes *from, int64_t *size)
{
    return read_long(from, size) && *size >= 0 && *size <= from->end - from->at;
}

/* A number as a column has it; 0 where it is out of bounds. */
static int shape(int kind, int64_t *number)
{
    int64_t least = INT64_MIN, most = INT64_MAX, times = 1;
    switch (kind) {
    case INT: case INT_AS_LONG:
        least = INT32_MIN, most = INT32_MAX;
        break;
    case MILLIS:
        least = -(INT64_MAX / 1000), most = INT64_MAX / 1000, times = 1000;
        break;
    case DAY_MILLIS:
        least = 0, most = MICROS_A_DAY / 1000 - 1, times = 1000000;
        break;
    case DAY_MICROS:
        least = 0, most = MICROS_A_DAY - 1, times = 1000;
        break;
    }
    if (*number < least || *number > most)
        return 0;
    *number *= times;
    return 1;
}

static int read_number(Reading *reading, const Node *node)
{
    int64_t number;
    if (!read_long(&reading->from, &number) || !shape(node->kind, &number))
        return 0;
    Column *column = column_of(reading, node);
    int32_t narrow = (int32_t)number;
    const void *put = node->kind == INT ? (const void *)&narrow : &number;
    return column == NULL || put_number(&reading->columns, column, put);
}

static int read_plain(Reading *reading, const Node *node, int width)
{
    const uint8_t *at = reading->from.at;
    if (reading->from.end - at < width || (node->kind == BOOLEAN && *at > 1))
        return 0;
    reading->from.at += width;
    Column *column = column_of(reading, node);
    return column == NULL || put_number(&reading->columns, column, at);
}

static int read_symbol(Reading *reading, const Node *node)
{
    const int32_t *table = reading->tables + node->number;
    int64_t index;
    if (!read_long(&reading->from, &index) || index < 0 || index >= table[0] || table[1 + index] < 0)
        return 0;
    Column *column = column_of(reading, node);
    return column == NULL || put_number(&reading->columns, column, table + 1 + index);
}

static int read_text(Reading *reading, const Node *node)
{
    Bytes *from = &reading->from;
    int64_t size = node->number;
    if (node->kind == FIXED ? size > from->end - from->at : !read_size(from, &size))
        return 0;
    const uint8_t *at = from->at;
    from->at += size;
    if (node->kind == STRING && !is_utf8(at, from->at))
        return 0;
    Column *column = column_of(reading, node);
    return column == NULL || put_text(&reading->columns, column, at, (size_t)size);
}

/* A whole number, the highest byte first, which Arrow has in so many bytes, the lowest first. */
static int shape_decimal(const uint8_t *at, size_t size, int digits, uint8_t *number)
{
#ifdef __SIZEOF_INT128__
    unsigned __int128 limit = 1, found = 0;
    if (size > DECIMAL_BYTES)
        return 0;
    int is_negative = size && at[0] >> 7;
    for (size_t index = 0; index < DECIMAL_BYTES; index++) {
        uint8_t byte = index < size ? at[size - 1 - index] : is_negative ? 0xFF : 0;
        number[index] = byte;
        found |= (unsigned __int128)byte << (8 * index);
    }
    for (int index = 0; index < digits; index++)
        limit *= 10;
    return (is_negative ? -found : found) < limit;
#else
    (void)at, (void)size, (void)digits, (void)number;
    return 0;
#endif
}

static int read_decimal(Reading *reading, const Node *node)
{
    const int32_t *table = reading->tables + node->number;
    Bytes *from = &reading->from;
    int64_t size = table[1];
    if (size >= 0 ? size > from->end - from->at : !read_size(from, &size))
        return 0;
    const uint8_t *at = from->at;
    from->at += size;
    Column *column = column_of(reading, node);
    uint8_t number[DECIMAL_BYTES];
    return column == NULL || (size <= table[2] && shape_decimal(at, (size_t)size, table[0], number) &&
                              put_number(&reading->columns, column, number));
}

static int read_value(Reading *reading, int32_t at);

static int read_optional(Reading *reading, int32_t at)
{
    int64_t branch;
    if (!read_long(&reading->from, &branch) || (branch != 0 && branch != 1))
        return 0;
    return branch == reading->nodes[at].number ? put_nulls(reading, at + 1) : read_value(reading, at + 1);
}

static int end_list(Reading *reading, const Node *node, size_t count)
{
    Column *column = column_of(reading, node);
    if (column == NULL)
        return 1;
    column->items += count;
    if (node->kind == MAP && !are_different(reading->columns.all + node->number, count))
        return 0;
    return put_list(&reading->columns, column);
}

/* Blocks of items; each item takes a byte at least. */
static int read_list(Reading *reading, int32_t at)
{
    Bytes *from = &reading->from;
    for (size_t items = 0;;) {
        int64_t count, size;
        if (!read_long(from, &count) || count < -INT64_MAX || (count < 0 && !read_size(from, &size)))
            return 0;
        if (count == 0)
            return end_list(reading, reading->nodes + at, items);
        count = count < 0 ? -count : count;
        if (count > from->end - from->at)
            return 0;
        for (int64_t index = 0; index < count; index++)
            if (!read_value(reading, at + 1))
                return 0;
        items += (size_t)count;
    }
}

static int read_record(Reading *reading, int32_t at)
{
    const Node *node = reading->nodes + at;
    Column *column = column_of(reading, node);
    if (column != NULL && !put_struct(&reading->columns, column))
        return 0;
    for (int32_t child = at + 1; child < node->end; child = reading->nodes[child].end)
        if (!read_value(reading, child))
            return 0;
    return 1;
}

/* 0 where it is not sound, or there is no memory. */
static int read_value(Reading *reading, int32_t at)
{
    const Node *node = reading->nodes + at;
    switch (node->kind) {
    case RECORD:
        return read_record(reading, at);
    case OPTIONAL:
        return read_optional(reading, at);
    case LIST: case MAP:
        return read_list(reading, at);
    case BOOLEAN:
        return read_plain(reading, node, 1);
    case FLOAT:
        return read_plain(reading, node, 4);
    case DOUBLE:
        return read_plain(reading, node, 8);
    case BYTES: case STRING: case FIXED:
        return read_text(reading, node);
    case ENUM:
        return read_symbol(reading, node);
    case DECIMAL:
        return read_decimal(reading, node);
    default:
        return read_number(reading, node);
    }
}

static int read_row(void *reader, Bytes from)
{
    Reading *reading = reader;
    reading->from = from;
    return read_value(reading, 0) && reading->from.at == reading->from.end;
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
    case BOOLEAN:
        set_form(column, BITS, 1);
        break;
    case BYTES: case STRING: case FIXED:
        set_form(column, TEXTS, 4);
        break;
    case INT: case FLOAT: case ENUM:
        set_form(column, NUMBERS, 4);
        break;
    case DECIMAL:
        set_form(column, NUMBERS, DECIMAL_BYTES);
        break;
    default:
        set_form(column, NUMBERS, 8);
    }
}

typedef struct {
    Py_ssize_t nodes, tables;
    uint8_t *has_node; /* by column */
} Bounds;

/* A number of its own, or what stands in the tables from there on. */
static int check_number(const Reading *reading, const Node *node, const Bounds *bounds)
{
    Py_ssize_t left = bounds->tables - node->number;
    if (node->number < 0)
        return 0;
    const int32_t *table = left > 0 ? reading->tables + node->number : NULL;
    if (node->kind == ENUM)
        return left > 0 && table[0] >= 0 && table[0] < left;
    if (node->kind == DECIMAL)
        return left > 2 && table[0] >= 0 && table[0] <= DECIMAL_DIGITS_MAX;
    return 1;
}

/* A map is a list of records that begin with their keys. */
static int check_keys(const Reading *reading, int32_t at)
{
    const Node *node = reading->nodes + at;
    if (node->kind != MAP || node->column < 0)
        return 1;
    return node->end > at + 2 && node[1].kind == RECORD && node[1].end > at + 2 && node[2].kind == STRING &&
           node[2].column == node->number && node[2].column >= 0;
}

/* Whether a node stays within the program and its tables, and has a column of its own. */
static int check_node(Reading *reading, int32_t at, int32_t end, const Bounds *bounds, int depth)
{
    const Node *node = reading->nodes + at;
    if (depth > DEPTH_MAX || node->kind < 0 || node->kind >= KINDS || node->end <= at || node->end > end)
        return 0;
    if (node->column < -1 || node->column >= (int64_t)reading->columns.count || !check_number(reading, node, bounds))
        return 0;
    if (node->column >= 0) {
        if (node->kind == OPTIONAL || bounds->has_node[node->column]++)
            return 0;
        set_column(reading->columns.all + node->column, node->kind);
    }
    int children = 0;
    for (int32_t child = at + 1; child < node->end; child = reading->nodes[child].end, children++)
        if (!check_node(reading, child, node->end, bounds, depth + 1))
            return 0;
    if (node->kind != RECORD && children != (node->kind == OPTIONAL || is_list(node)))
        return 0;
    return check_keys(reading, at);
}

static int check_program(Reading *reading, const Bounds *bounds)
{
    if (bounds->nodes < 1 || bounds->nodes > INT32_MAX || !check_node(reading, 0, (int32_t)bounds->nodes, bounds, 0))
        return 0;
    for (size_t index = 0; index < reading->columns.count; index++)
        if (!bounds->has_node[index])
            return 0;
    return reading->nodes[0].end == bounds->nodes;
}

static PyObject *read_by_program(Reading *reading, const Rows *rows, Bounds bounds)
{
    bounds.has_node = calloc(reading->columns.count + 1, 1);
    if (bounds.has_node == NULL)
        return PyErr_NoMemory();
    int is_program = check_program(reading, &bounds);
    free(bounds.has_node);
    if (!check_request(is_program, rows))
        return NULL;
    return columns_of_rows(rows, &reading->columns, reading, read_row, put_null_row);
}

static PyObject *read_columns(PyObject *module, PyObject *args)
{
    (void)module;
    Request request;
    Reading reading = {0};
    if (!open_request(&request, args, &reading.columns))
        return NULL;
    reading.nodes = request.nodes.buf;
    reading.tables = request.tables.buf;
    Py_ssize_t nodes = request.nodes.len / (Py_ssize_t)sizeof(Node);
    PyObject *result = read_by_program(&reading, &request.rows, (Bounds){.nodes = nodes, .tables = request.tables.len / 4});
    close_request(&request, &reading.columns);
    return result;
}

static PyMethodDef functions[] = {
    {"read", read_columns, METH_VARARGS, "Columns of a binary array's rows, and the numbers of those that are bad."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.avro", .m_doc = "Avro records to Arrow columns.",
    .m_size = 0, .m_methods = functions,
};

PyMODINIT_FUNC PyInit_avro(void)
{
    return PyModuleDef_Init(&definition);
}
