/* Times in ISO 8601 with all their digits, as programs write them. */

#ifndef OTTLA_ISO_TIMES_H
#define OTTLA_ISO_TIMES_H

#include <stdint.h>

#include "json_tokens.h"

#define SECONDS_A_DAY 86400
#define MICROS_A_SECOND 1000000

/* So many digits. */
static int read_digits(Bytes *from, int count, int *number)
{
    *number = 0;
    for (; count; count--) {
        if (!is_digit(from))
            return 0;
        *number = *number * 10 + (*from->at++ - '0');
    }
    return 1;
}

static int takes_next(Bytes *from, uint8_t wanted)
{
    if (from->at == from->end || *from->at != wanted)
        return 0;
    from->at++;
    return 1;
}

/* Days since 1970; a year away from both ends of the calendar that Python has, so that no zone leads beyond them. */
static int read_day(Bytes *from, int32_t *days)
{
    static const uint8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day;
    if (!read_digits(from, 4, &year) || !takes_next(from, '-') || !read_digits(from, 2, &month) ||
        !takes_next(from, '-') || !read_digits(from, 2, &day))
        return 0;
    if (year < 2 || year > 9998 || month < 1 || month > 12 || day < 1)
        return 0;
    int is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day > lengths[month - 1] + (month == 2 && is_leap))
        return 0;
    int shifted = month > 2 ? year : year - 1; /* years that begin in March */
    int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    *days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + of_year - 719468;
    return 1;
}

/* Of a day, in microseconds; digits behind the sixth are cut off. */
static int read_clock(Bytes *from, int64_t *micros)
{
    int hour, minute, second, part = 0, digits = 0;
    if (!read_digits(from, 2, &hour) || !takes_next(from, ':') || !read_digits(from, 2, &minute) ||
        !takes_next(from, ':') || !read_digits(from, 2, &second) || hour > 23 || minute > 59 || second > 59)
        return 0;
    if (takes_next(from, '.')) {
        for (; digits < 6 && is_digit(from); digits++)
            part = part * 10 + (*from->at++ - '0');
        pass_digits(from);
    }
    for (; digits < 6; digits++)
        part *= 10;
    *micros = ((int64_t)hour * 3600 + minute * 60 + second) * MICROS_A_SECOND + part;
    return 1;
}

static int read_zone(Bytes *from, int64_t *micros)
{
    int hours, minutes;
    if (takes_next(from, 'Z'))
        return 1;
    int is_behind = takes_next(from, '-');
    if (!is_behind && !takes_next(from, '+'))
        return 0;
    if (!read_digits(from, 2, &hours) || !takes_next(from, ':') || !read_digits(from, 2, &minutes) || hours > 17 ||
        minutes > 59)
        return 0;
    int64_t ahead = ((int64_t)hours * 3600 + minutes * 60) * MICROS_A_SECOND;
    *micros += is_behind ? ahead : -ahead;
    return 1;
}

#endif
