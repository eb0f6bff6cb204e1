/* What JSON is made of: space, words, texts, numbers, and values that are only passed over. As Python's own reader has it,
   but that nothing nests deeper than 64. Each reader answers 0 where that is not what stands there. */

#ifndef OTTLA_JSON_TOKENS_H
#define OTTLA_JSON_TOKENS_H

#include <stdint.h>
#include <string.h>

#include "varints.h"

#define DEPTH_MAX 64

static void pass_space(Bytes *from)
{
    while (from->at < from->end && (*from->at == ' ' || *from->at == '\n' || *from->at == '\t' || *from->at == '\r'))
        from->at++;
}

static int takes(Bytes *from, uint8_t wanted)
{
    pass_space(from);
    if (from->at == from->end || *from->at != wanted)
        return 0;
    from->at++;
    return 1;
}

static int takes_word(Bytes *from, const char *word, ptrdiff_t size)
{
    if (from->end - from->at < size || memcmp(from->at, word, (size_t)size) != 0)
        return 0;
    from->at += size;
    return 1;
}

static uint64_t zero_bytes(uint64_t eight)
{
    return (eight - UINT64_C(0x0101010101010101)) & ~eight & UINT64_C(0x8080808080808080);
}

/* To the next quote, backslash or control character. */
static const uint8_t *plain_end(const uint8_t *at, const uint8_t *end)
{
    uint64_t eight;
    while (end - at >= 8) {
        memcpy(&eight, at, 8);
        uint64_t quotes = zero_bytes(eight ^ UINT64_C(0x2222222222222222));
        uint64_t escapes = zero_bytes(eight ^ UINT64_C(0x5C5C5C5C5C5C5C5C));
        uint64_t controls = (eight - UINT64_C(0x2020202020202020)) & ~eight & UINT64_C(0x8080808080808080);
        if (quotes | escapes | controls)
            break;
        at += 8;
    }
    while (at < end && *at != '"' && *at != '\\' && *at >= 0x20)
        at++;
    return at;
}

static int is_hex(const uint8_t *at, const uint8_t *end, uint32_t *number)
{
    if (end - at < 4)
        return 0;
    *number = 0;
    for (int index = 0; index < 4; index++) {
        uint8_t digit = at[index];
        uint32_t found = digit >= '0' && digit <= '9'                    ? (uint32_t)digit - '0'
                         : (digit | 0x20) >= 'a' && (digit | 0x20) <= 'f' ? (uint32_t)(digit | 0x20) - 'a' + 10
                                                                          : 16;
        if (found == 16)
            return 0;
        *number = *number << 4 | found;
    }
    return 1;
}

/* A text behind its first quote: what stands between them, and whether there are escapes in it. */
static int read_quoted(Bytes *from, Bytes *found, int *is_escaped)
{
    uint32_t number;
    found->at = from->at;
    *is_escaped = 0;
    for (;;) {
        from->at = plain_end(from->at, from->end);
        if (from->at == from->end || *from->at < 0x20)
            return 0;
        if (*from->at++ == '"') {
            found->end = from->at - 1;
            return 1;
        }
        *is_escaped = 1;
        if (from->at == from->end)
            return 0;
        uint8_t kind = *from->at++;
        if (kind == 'u') {
            if (!is_hex(from->at, from->end, &number))
                return 0;
            from->at += 4;
        } else if (kind == 0 || strchr("\"\\/bfnrt", kind) == NULL) {
            return 0;
        }
    }
}

static size_t put_character(uint8_t *to, uint32_t number)
{
    if (number < 0x80) {
        to[0] = (uint8_t)number;
        return 1;
    }
    if (number < 0x800) {
        to[0] = (uint8_t)(0xC0 | number >> 6);
        to[1] = (uint8_t)(0x80 | (number & 0x3F));
        return 2;
    }
    if (number < 0x10000) {
        to[0] = (uint8_t)(0xE0 | number >> 12);
        to[1] = (uint8_t)(0x80 | (number >> 6 & 0x3F));
        to[2] = (uint8_t)(0x80 | (number & 0x3F));
        return 3;
    }
    to[0] = (uint8_t)(0xF0 | number >> 18);
    to[1] = (uint8_t)(0x80 | (number >> 12 & 0x3F));
    to[2] = (uint8_t)(0x80 | (number >> 6 & 0x3F));
    to[3] = (uint8_t)(0x80 | (number & 0x3F));
    return 4;
}

/* What an escape stands for; 0 for half of a surrogate pair, which is no text. */
static int read_escape(Bytes *from, uint32_t *number)
{
    static const char kinds[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    uint8_t kind = *from->at++;
    if (kind != 'u') {
        *number = (uint8_t)meant[strchr(kinds, kind) - kinds];
        return 1;
    }
    uint32_t low;
    if (!is_hex(from->at, from->end, number))
        return 0;
    from->at += 4;
    if (*number < 0xD800 || *number > 0xDFFF)
        return 1;
    if (*number > 0xDBFF || from->end - from->at < 6 || from->at[0] != '\\' || from->at[1] != 'u' ||
        !is_hex(from->at + 2, from->end, &low) || low < 0xDC00 || low > 0xDFFF)
        return 0;
    from->at += 6;
    *number = 0x10000 + ((*number - 0xD800) << 10) + (low - 0xDC00);
    return 1;
}

static int is_digit(const Bytes *from)
{
    return from->at < from->end && *from->at >= '0' && *from->at <= '9';
}

static void pass_digits(Bytes *from)
{
    while (is_digit(from))
        from->at++;
}

typedef struct {
    Bytes whole, part; /* digits before the point and behind it */
    const uint8_t *at, *end;
    int is_negative, has_exponent;
} Number;

static int read_number(Bytes *from, Number *number)
{
    *number = (Number){.at = from->at};
    number->is_negative = from->at < from->end && *from->at == '-';
    from->at += number->is_negative;
    number->whole.at = from->at;
    if (!is_digit(from))
        return 0;
    if (*from->at == '0')
        from->at++;
    else
        pass_digits(from);
    number->whole.end = number->part.at = number->part.end = from->at;
    Bytes behind = *from;
    if (behind.at < behind.end && *behind.at == '.' && (behind.at++, is_digit(&behind))) {
        number->part.at = behind.at;
        pass_digits(&behind);
        number->part.end = behind.at;
        *from = behind;
    }
    behind = *from;
    if (behind.at < behind.end && (*behind.at | 0x20) == 'e') {
        behind.at++;
        if (behind.at < behind.end && (*behind.at == '+' || *behind.at == '-'))
            behind.at++;
        if (is_digit(&behind)) {
            pass_digits(&behind);
            number->has_exponent = 1;
            *from = behind;
        }
    }
    number->end = from->at;
    return 1;
}

/* -- what is passed over */

static int pass_value(Bytes *from, int depth);

static int pass_members(Bytes *from, int depth)
{
    Bytes name;
    int is_escaped;
    if (takes(from, '}'))
        return 1;
    do {
        if (!takes(from, '"') || !read_quoted(from, &name, &is_escaped) || !takes(from, ':') || !pass_value(from, depth))
            return 0;
    } while (takes(from, ','));
    return takes(from, '}');
}

static int pass_items(Bytes *from, int depth)
{
    if (takes(from, ']'))
        return 1;
    do {
        if (!pass_value(from, depth))
            return 0;
    } while (takes(from, ','));
    return takes(from, ']');
}

static int pass_value(Bytes *from, int depth)
{
    Bytes text;
    Number number;
    int is_escaped;
    pass_space(from);
    if (from->at == from->end || depth > DEPTH_MAX)
        return 0;
    switch (*from->at) {
    case '{':
        from->at++;
        return pass_members(from, depth + 1);
    case '[':
        from->at++;
        return pass_items(from, depth + 1);
    case '"':
        from->at++;
        return read_quoted(from, &text, &is_escaped);
    case 't':
        return takes_word(from, "true", 4);
    case 'f':
        return takes_word(from, "false", 5);
    case 'n':
        return takes_word(from, "null", 4);
    default:
        return read_number(from, &number);
    }
}

#endif
