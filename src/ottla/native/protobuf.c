/* Protobuf messages to Arrow columns: what `ottla.formats.protobuf` does row by row in Python, compiled.

   A program, which `formats/protobuf/programs.py` makes of a message's type, has a node for the message and for each field
   below it. The fields of a message stand together, by their numbers; those of the next message in the program follow.

   All columns of a message's fields have as many rows as its own, so that a field has come where its column has one more.

   Nothing may be taken here that is refused, or read otherwise, in Python; what is refused here is read once more there. That
   is so for what is rare, too: a field that comes twice, groups, numbers of more bits than their field. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <stdint.h>

#include "columns_of_rows.h"
#include "varints.h"

/* As `programs.py` numbers them, and Absent too. */
enum Kind {
    MESSAGE,  /* its fields are `count` nodes from `first` on */
    ENTRY,    /* of a map: a message of a key and a value */
    BOOL,
    INT32,
    INT64,
    UINT32,   /* as 64 bits */
    UINT64,   /* as a decimal of 128 bits */
    SINT32,
    SINT64,
    PLAIN32,  /* as it stands there: sfixed32, float */
    PLAIN64,  /* sfixed64, double */
    FIXED32,  /* as UINT32 */
    FIXED64,  /* as UINT64 */
    STRING,
    BYTES,
    ENUM,     /* a place among `count` numbers, which ascend, in the tables from `first` on */
    TIMESTAMP,
    DURATION,
    KINDS
};

/* What a field is that has not come. */
enum Absent { ZERO, NIL, REFUSED, ABSENTS };

enum Wire { VARINT, EIGHT_BYTES, SIZED, FOUR_BYTES = 5 };

#define DEPTH_MAX 64
/* Rounded down; the others are Python's to judge. */
#define SECONDS_MAX INT64_C(9000000000000)

typedef struct {
    int32_t field, kind, column;
    int32_t list;       /* of a repeated field the column of its offsets; -1 */
    int32_t absent;
    int32_t oneof;      /* the oneof that it belongs to, with others; -1 */
    int32_t first, count;
    int32_t is_wrapped; /* the value is the only field of a message: Int64Value and its like */
} Node;

/* Of a map, whose entries are read behind their message, in the order of their keys. */
typedef struct {
    const Node *node;
    Bytes from;
    Bytes text; /* the key, or what `number` is */
    uint64_t number;
} Entry;

typedef struct {
    const Node *nodes;
    const int32_t *tables;
    Columns columns;
    uint64_t messages;
    uint64_t *oneofs; /* the message that has last had one of its members */
    Entry *entries;   /* those of messages that are being read, the outermost one's first */
    size_t entries_used, entries_max;
} Reading;

static Column *column_of(Reading *reading, int32_t column)
{
    return reading->columns.all + column;
}

static int has_fields(const Node *node)
{
    return node->kind == MESSAGE || node->kind == ENTRY;
}

/* A null in the columns of a node and, where it is no list, of all below it. */
static int put_nulls(Reading *reading, const Node *node)
{
    if (node->list >= 0)
        return put_null(&reading->columns, column_of(reading, node->list));
    if (!put_null(&reading->columns, column_of(reading, node->column)))
        return 0;
    for (int32_t index = 0; has_fields(node) && index < node->count; index++)
        if (!put_nulls(reading, reading->nodes + node->first + index))
            return 0;
    return 1;
}

/* -- the wire */

/* A tag or a size in its shortest form, which is what writers have. */
static inline int read_small(Bytes *from, uint32_t *number)
{
    uint64_t found;
    if (from->at < from->end && *from->at < 0x80) {
        *number = *from->at++;
        return 1;
    }
    if (!read_folded(from, VARINT_BYTES_MAX, &found) || found > UINT32_MAX || from->at[-1] == 0)
        return 0;
    *number = (uint32_t)found;
    return 1;
}

static inline int read_sized(Bytes *from, Bytes *found)
{
    uint32_t size;
    if (!read_small(from, &size) || size > (size_t)(from->end - from->at))
        return 0;
    found->at = from->at;
    found->end = from->at += size;
    return 1;
}

static inline int read_varint(Bytes *from, uint64_t *number)
{
    if (from->at < from->end && *from->at < 0x80) {
        *number = *from->at++;
        return 1;
    }
    return read_folded(from, VARLONG_BYTES_MAX, number);
}

/* A field that the schema does not know. */
static int pass_over(Bytes *from, uint32_t wire)
{
    Bytes passed;
    uint64_t number;
    if (wire == VARINT)
        return read_varint(from, &number);
    if (wire == SIZED)
        return read_sized(from, &passed);
    int size = wire == EIGHT_BYTES ? 8 : wire == FOUR_BYTES ? 4 : 0;
    if (size == 0 || from->end - from->at < size)
        return 0;
    from->at += size;
    return 1;
}

static uint32_t wire_of(const Node *node)
{
    if (node->is_wrapped)
        return SIZED;
    switch (node->kind) {
    case PLAIN32: case FIXED32:
        return FOUR_BYTES;
    case PLAIN64: case FIXED64:
        return EIGHT_BYTES;
    case BOOL: case INT32: case INT64: case UINT32: case UINT64: case SINT32: case SINT64: case ENUM:
        return VARINT;
    default:
        return SIZED;
    }
}

/* -- values */

/* The place of an enum's number; -1 where it has no name. */
static int32_t place_of(const Reading *reading, const Node *node, int64_t number)
{
    const int32_t *numbers = reading->tables + node->first;
    int32_t low = 0, high = node->count;
    if (number >= 0 && number < high && numbers[number] == number)
        return (int32_t)number;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (numbers[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < node->count && numbers[low] == number ? low : -1;
}

static int put_unsigned(Reading *reading, const Node *node, uint64_t number)
{
    uint64_t wide[2] = {number, 0}; /* a column of 64 bits takes the first */
    return put_number(&reading->columns, column_of(reading, node->column), wide);
}

static int put_32_bits(Reading *reading, const Node *node, int32_t number)
{
    return put_number(&reading->columns, column_of(reading, node->column), &number);
}

static int put_varint(Reading *reading, const Node *node, uint64_t number)
{
    int64_t as_signed = (int64_t)number;
    switch (node->kind) {
    case BOOL: {
        uint8_t bit = (uint8_t)number;
        return number <= 1 && put_number(&reading->columns, column_of(reading, node->column), &bit);
    }
    case INT32:
        return as_signed == (int32_t)as_signed && put_32_bits(reading, node, (int32_t)as_signed);
    case SINT32:
        return number <= UINT32_MAX && put_32_bits(reading, node, (int32_t)unfolded(number));
    case SINT64:
        return put_unsigned(reading, node, (uint64_t)unfolded(number));
    case UINT32:
        return number <= UINT32_MAX && put_unsigned(reading, node, number);
    case ENUM: {
        int32_t place = place_of(reading, node, as_signed);
        return place >= 0 && put_32_bits(reading, node, place);
    }
    default:
        return put_unsigned(reading, node, number);
    }
}

static uint64_t fixed(Bytes from)
{
    uint64_t number = 0;
    while (from.end > from.at)
        number = number << 8 | *--from.end;
    return number;
}

static int read_fixed(Reading *reading, const Node *node, Bytes *from, int size)
{
    const uint8_t *at = from->at;
    if (from->end - at < size)
        return 0;
    from->at += size;
    if (node->kind == PLAIN32 || node->kind == PLAIN64)
        return put_number(&reading->columns, column_of(reading, node->column), at);
    return put_unsigned(reading, node, fixed((Bytes){at, from->at}));
}

/* A Timestamp or a Duration in microseconds; what is finer is cut off. */
static int read_time(Reading *reading, const Node *node, Bytes from)
{
    uint64_t parts[2] = {0, 0};
    int came[2] = {0, 0};
    while (from.at < from.end) {
        uint8_t tag = *from.at++;
        int part = tag == (1 << 3 | VARINT) ? 0 : tag == (2 << 3 | VARINT) ? 1 : -1;
        if (part < 0 || came[part]++ || !read_varint(&from, parts + part))
            return 0;
    }
    int64_t seconds = (int64_t)parts[0], nanos = (int64_t)parts[1];
    if (seconds < -SECONDS_MAX || seconds > SECONDS_MAX || nanos != (int32_t)nanos)
        return 0;
    if (node->kind == TIMESTAMP && nanos < 0)
        return 0;
    return put_unsigned(reading, node, (uint64_t)(seconds * 1000000 + nanos / 1000));
}

static int read_message(Reading *reading, const Node *node, Bytes from);

static int read_value(Reading *reading, const Node *node, Bytes *from, uint32_t wire)
{
    Bytes inside;
    uint64_t number;
    if (wire == VARINT)
        return read_varint(from, &number) && put_varint(reading, node, number);
    if (wire != SIZED)
        return read_fixed(reading, node, from, wire == FOUR_BYTES ? 4 : 8);
    if (!read_sized(from, &inside))
        return 0;
    if (has_fields(node))
        return read_message(reading, node, inside);
    if (node->kind == TIMESTAMP || node->kind == DURATION)
        return read_time(reading, node, inside);
    if (node->kind == STRING && !is_utf8(inside.at, inside.end))
        return 0;
    return put_text(&reading->columns, column_of(reading, node->column), inside.at, (size_t)(inside.end - inside.at));
}

static int put_zero(Reading *reading, const Node *node)
{
    if (node->kind == STRING || node->kind == BYTES)
        return put_text(&reading->columns, column_of(reading, node->column), NULL, 0);
    if (node->kind == ENUM)
        return put_varint(reading, node, 0);
    return put_unsigned(reading, node, 0);
}

static int read_wrapped(Reading *reading, const Node *node, Bytes *from)
{
    Bytes inside;
    Node bare = *node;
    bare.is_wrapped = 0;
    if (!read_sized(from, &inside))
        return 0;
    if (inside.at == inside.end)
        return put_zero(reading, node);
    uint32_t wire = wire_of(&bare);
    return *inside.at++ == (1 << 3 | wire) && read_value(reading, node, &inside, wire) && inside.at == inside.end;
}

/* -- maps */

/* So that it compares as it does without a sign. */
static uint64_t without_sign(int64_t number)
{
    return (uint64_t)number ^ UINT64_C(1) << 63;
}

static uint64_t key_of(const Node *key, uint64_t number)
{
    switch (key->kind) {
    case UINT64: case FIXED64:
        return number;
    case SINT32: case SINT64:
        return without_sign(unfolded(number));
    case PLAIN32:
        return without_sign((int32_t)(uint32_t)number);
    default:
        return without_sign((int64_t)number);
    }
}

static void set_key(const Node *key, Entry *entry, Bytes value)
{
    uint64_t number = 0;
    switch (wire_of(key)) {
    case SIZED:
        read_sized(&value, &entry->text);
        break;
    case VARINT:
        read_varint(&value, &number);
        entry->number = key_of(key, number);
        break;
    default:
        entry->number = key_of(key, fixed(value));
    }
}

/* Whether the entry is sound is found out where it is read. */
static int find_key(const Node *key, Entry *entry)
{
    static const uint8_t nothing[1];
    uint32_t tag, wanted = (uint32_t)key->field << 3 | wire_of(key);
    Bytes from = entry->from;
    entry->text = (Bytes){nothing, nothing};
    entry->number = key_of(key, 0);
    while (from.at < from.end) {
        if (!read_small(&from, &tag))
            return 0;
        Bytes value = from;
        if (!pass_over(&from, tag & 7))
            return 0;
        value.end = from.at;
        if (tag == wanted)
            set_key(key, entry, value);
    }
    return 1;
}

static int keep_entry(Reading *reading, const Node *node, Bytes from)
{
    if (reading->entries_used == reading->entries_max) {
        size_t entries_max = 2 * reading->entries_max + 64;
        Entry *grown = realloc(reading->entries, entries_max * sizeof(Entry));
        if (grown == NULL) {
            reading->columns.no_memory = 1;
            return 0;
        }
        reading->entries = grown;
        reading->entries_max = entries_max;
    }
    Entry *entry = reading->entries + reading->entries_used++;
    *entry = (Entry){.node = node, .from = from};
    return find_key(reading->nodes + node->first, entry);
}

static int compare(const void *one, const void *other)
{
    const Entry *first = one, *second = other;
    if (first->node != second->node)
        return first->node < second->node ? -1 : 1;
    size_t size = (size_t)(first->text.end - first->text.at), other_size = (size_t)(second->text.end - second->text.at);
    int order = memcmp(first->text.at, second->text.at, size < other_size ? size : other_size);
    if (order || size != other_size)
        return order ? order : size < other_size ? -1 : 1;
    return first->number < second->number ? -1 : first->number > second->number;
}

/* By their maps and keys; of two with one key the library has the last. */
static int sort_entries(Entry *entries, size_t count)
{
    int are_sorted = 1;
    for (size_t index = 1; index < count && are_sorted; index++)
        are_sorted = compare(entries + index - 1, entries + index) < 0;
    if (are_sorted)
        return 1;
    qsort(entries, count, sizeof(Entry), compare);
    for (size_t index = 1; index < count; index++)
        if (compare(entries + index - 1, entries + index) == 0)
            return 0;
    return 1;
}

/* -- messages */

static const Node *find_field(const Node *first, const Node *end, uint32_t field)
{
    while (first < end) {
        const Node *middle = first + (end - first) / 2;
        if ((uint32_t)middle->field == field)
            return middle;
        if ((uint32_t)middle->field < field)
            first = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

static int read_items(Reading *reading, const Node *node, Bytes *from, uint32_t wire)
{
    Column *list = column_of(reading, node->list);
    uint32_t own = wire_of(node);
    Bytes items;
    if (node->kind == ENTRY)
        return wire == SIZED && read_sized(from, &items) && keep_entry(reading, node, items);
    if (wire == own) {
        list->items++;
        return node->is_wrapped ? read_wrapped(reading, node, from) : read_value(reading, node, from, wire);
    }
    if (wire != SIZED || !read_sized(from, &items))
        return 0;
    for (; items.at < items.end; list->items++)
        if (!read_value(reading, node, &items, own))
            return 0;
    return 1;
}

/* Of a message that has this number among all, and comes to this row. */
static int read_field(Reading *reading, const Node *node, Bytes *from, uint32_t wire, size_t row, uint64_t message)
{
    if (node->list >= 0)
        return read_items(reading, node, from, wire);
    if (wire != wire_of(node) || column_of(reading, node->column)->rows != row)
        return 0;
    if (node->oneof >= 0) {
        if (reading->oneofs[node->oneof] == message)
            return 0;
        reading->oneofs[node->oneof] = message;
    }
    return node->is_wrapped ? read_wrapped(reading, node, from) : read_value(reading, node, from, wire);
}

/* What there is to do for a field behind its message, whose next entry of a map is `entry`. */
static int end_field(Reading *reading, const Node *node, size_t row, size_t *entry)
{
    if (node->list >= 0) {
        Column *list = column_of(reading, node->list);
        while (node->kind == ENTRY && *entry < reading->entries_used && reading->entries[*entry].node == node) {
            list->items++;
            if (!read_message(reading, node, reading->entries[(*entry)++].from))
                return 0;
        }
        return put_list(&reading->columns, list);
    }
    if (column_of(reading, node->column)->rows != row)
        return 1;
    if (node->absent == NIL)
        return put_nulls(reading, node);
    return node->absent == ZERO && put_zero(reading, node);
}

static int end_fields(Reading *reading, const Node *first, const Node *end, size_t row, size_t entry)
{
    size_t entries_before = entry;
    size_t count = reading->entries_used - entry;
    if (count && !sort_entries(reading->entries + entry, count))
        return 0;
    for (const Node *field = first; field < end; field++)
        if (!end_field(reading, field, row, &entry))
            return 0;
    reading->entries_used = entries_before;
    return 1;
}

/* 0 where it is not sound, or there is no memory. */
static int read_message(Reading *reading, const Node *node, Bytes from)
{
    const Node *first = reading->nodes + node->first, *end = first + node->count, *next = first;
    Column *column = column_of(reading, node->column);
    size_t row = column->rows, entries_before = reading->entries_used;
    uint64_t message = ++reading->messages;
    while (from.at < from.end) {
        uint32_t tag;
        if (!read_small(&from, &tag) || tag < 1 << 3)
            return 0;
        const Node *field = next < end && (uint32_t)next->field == tag >> 3 ? next : find_field(first, end, tag >> 3);
        if (field == NULL) {
            if (node->kind == ENTRY || !pass_over(&from, tag & 7)) /* an entry that has more is none for the library */
                return 0;
            continue;
        }
        if (!read_field(reading, field, &from, tag & 7, row, message))
            return 0;
        next = field->list < 0 ? field + 1 : field;
    }
    return end_fields(reading, first, end, row, entries_before) && put_struct(&reading->columns, column);
}

static int read_row(void *reader, Bytes from)
{
    Reading *reading = reader;
    reading->entries_used = 0;
    return read_message(reading, reading->nodes, from);
}

static int put_null_row(void *reader)
{
    Reading *reading = reader;
    return put_nulls(reading, reading->nodes);
}

/* -- programs */

static void set_column(Column *column, int kind)
{
    switch (kind) {
    case MESSAGE: case ENTRY:
        set_form(column, NOTHING, 0);
        break;
    case BOOL:
        set_form(column, BITS, 1);
        break;
    case STRING: case BYTES:
        set_form(column, TEXTS, 4);
        break;
    case INT32: case SINT32: case PLAIN32: case ENUM:
        set_form(column, NUMBERS, 4);
        break;
    case UINT64: case FIXED64:
        set_form(column, NUMBERS, 16);
        break;
    default:
        set_form(column, NUMBERS, 8);
    }
}

typedef struct {
    int64_t nodes, tables;
    uint8_t *has_node; /* by column */
    uint8_t *depths;   /* by node */
} Bounds;

static int takes_column(const Reading *reading, const Bounds *bounds, int32_t column)
{
    return column >= 0 && (size_t)column < reading->columns.count && !bounds->has_node[column]++;
}

static int check_node(Reading *reading, const Node *node, const Bounds *bounds)
{
    if (node->kind < 0 || node->kind >= KINDS || node->absent < 0 || node->absent >= ABSENTS || node->oneof < -1 ||
        node->oneof >= bounds->nodes || node->list < -1 || node->count < 0 || node->first < 0)
        return 0;
    if (!takes_column(reading, bounds, node->column))
        return 0;
    set_column(column_of(reading, node->column), node->kind);
    if (node->list >= 0) {
        if (!takes_column(reading, bounds, node->list))
            return 0;
        set_form(column_of(reading, node->list), ITEMS, 4);
    }
    if (has_fields(node) && (node->is_wrapped || (node->list < 0 && node->absent == ZERO)))
        return 0;
    return node->kind != ENUM || (int64_t)node->first + node->count <= bounds->tables;
}

/* Whether the fields of a message are there, in order and not too deep. */
static int check_fields(const Reading *reading, int64_t at, const Bounds *bounds)
{
    const Node *node = reading->nodes + at;
    if (node->first <= at || (int64_t)node->first + node->count > bounds->nodes || bounds->depths[at] >= DEPTH_MAX)
        return 0;
    const Node *fields = reading->nodes + node->first;
    for (int32_t index = 0; index < node->count; index++) {
        if (fields[index].field <= (index ? fields[index - 1].field : 0))
            return 0;
        bounds->depths[node->first + index] = bounds->depths[at] + 1;
    }
    if (node->kind != ENTRY)
        return 1;
    return node->list >= 0 && node->count == 2 && !has_fields(fields) && fields->list < 0;
}

static int check_program(Reading *reading, const Bounds *bounds)
{
    int64_t next = 1;
    if (bounds->nodes < 1 || bounds->nodes > INT32_MAX || reading->nodes->kind != MESSAGE || reading->nodes->list >= 0)
        return 0;
    for (int64_t at = 0; at < bounds->nodes; at++) {
        const Node *node = reading->nodes + at;
        if (!check_node(reading, node, bounds))
            return 0;
        if (!has_fields(node))
            continue;
        if (node->first != next || !check_fields(reading, at, bounds))
            return 0;
        next += node->count;
    }
    for (size_t index = 0; index < reading->columns.count; index++)
        if (!bounds->has_node[index])
            return 0;
    return next == bounds->nodes;
}

static PyObject *read_by_program(Reading *reading, const Rows *rows, Bounds bounds)
{
    PyObject *result = NULL;
    bounds.has_node = calloc(reading->columns.count + 1, 1);
    bounds.depths = calloc((size_t)bounds.nodes + 1, 1);
    reading->oneofs = calloc((size_t)bounds.nodes + 1, sizeof(uint64_t));
    if (bounds.has_node == NULL || bounds.depths == NULL || reading->oneofs == NULL)
        PyErr_NoMemory();
    else if (check_request(check_program(reading, &bounds), rows))
        result = columns_of_rows(rows, &reading->columns, reading, read_row, put_null_row);
    free(bounds.has_node);
    free(bounds.depths);
    free(reading->oneofs);
    free(reading->entries);
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
    PyModuleDef_HEAD_INIT, .m_name = "ottla.native.protobuf", .m_doc = "Protobuf messages to Arrow columns.",
    .m_size = 0, .m_methods = functions,
};

PyMODINIT_FUNC PyInit_protobuf(void)
{
    return PyModuleDef_Init(&definition);
}
