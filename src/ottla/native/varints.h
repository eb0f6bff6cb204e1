/* What a record is made of: numbers as varints, and bytes behind their length. Nothing is read beyond an end.

   A number is refused, with 0 as the answer, where it goes beyond the end or has more bits than its kind. */

#ifndef OTTLA_VARINTS_H
#define OTTLA_VARINTS_H

#include <stddef.h>
#include <stdint.h>

/* Of a record: its length, attributes, two distances, two lengths and the number of headers, one byte each. */
#define RECORD_BYTES_MIN 7
/* Of a number with 32 bits and of one with 64. */
#define VARINT_BYTES_MAX 5
#define VARLONG_BYTES_MAX 10

typedef struct {
    const uint8_t *at, *end;
} Bytes;

static inline int read_folded(Bytes *from, int bytes_max, uint64_t *number)
{
    uint64_t found = 0;
    for (int index = 0; index < bytes_max && from->at < from->end; index++) {
        uint8_t byte = *from->at++;
        if (index == VARLONG_BYTES_MAX - 1 && byte > 1)
            return 0;
        found |= (uint64_t)(byte & 0x7F) << (7 * index);
        if (byte < 0x80) {
            *number = found;
            return 1;
        }
    }
    return 0;
}

static inline int64_t unfolded(uint64_t number)
{
    return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

static inline int read_int(Bytes *from, int64_t *number)
{
    uint64_t folded;
    if (from->end - from->at >= 2) { /* nearly all are short */
        const uint8_t *at = from->at;
        if (at[0] < 0x80) {
            from->at = at + 1;
            *number = unfolded(at[0]);
            return 1;
        }
        if (at[1] < 0x80) {
            from->at = at + 2;
            *number = unfolded((uint64_t)(at[0] & 0x7F) | (uint64_t)at[1] << 7);
            return 1;
        }
    }
    if (!read_folded(from, VARINT_BYTES_MAX, &folded) || folded > UINT32_MAX)
        return 0;
    *number = unfolded(folded);
    return 1;
}

static inline int read_long(Bytes *from, int64_t *number)
{
    uint64_t folded;
    if (from->at < from->end && *from->at < 0x80) {
        *number = unfolded(*from->at++);
        return 1;
    }
    if (!read_folded(from, VARLONG_BYTES_MAX, &folded))
        return 0;
    *number = unfolded(folded);
    return 1;
}

/* Bytes behind their length; `at` is NULL for null, which is any negative length. */
static inline int read_bytes(Bytes *from, Bytes *found)
{
    int64_t length;
    if (!read_int(from, &length))
        return 0;
    if (length < 0) {
        found->at = found->end = NULL;
        return 1;
    }
    if (length > from->end - from->at)
        return 0;
    found->at = from->at;
    found->end = from->at += length;
    return 1;
}

#endif
