/* The header of a record batch: where its fields stand, what they may say, and the wire's numbers, which are big-endian.

   All of it is defined in `records/batch.py`; `tests/native/test_fields.py` compares the two. */

#ifndef OTTLA_BATCH_FIELDS_H
#define OTTLA_BATCH_FIELDS_H

#include <stdint.h>

#define LENGTH_AT 8
#define LEADER_EPOCH_AT 12
#define MAGIC_AT 16
#define CRC_AT 17
#define ATTRIBUTES_AT 21
#define LAST_OFFSET_DELTA_AT 23
#define BASE_TIMESTAMP_AT 27
#define MAX_TIMESTAMP_AT 35
#define PRODUCER_ID_AT 43
#define PRODUCER_EPOCH_AT 51
#define BASE_SEQUENCE_AT 53
#define COUNT_AT 57
#define HEADER_SIZE 61
/* Base offset and length, which the length does not count; and the least that it says. */
#define LOG_OVERHEAD 12
#define LENGTH_MIN (HEADER_SIZE - LOG_OVERHEAD)
#define MAGIC 2
#define CODEC_MAX 4

#define COMPRESSION_MASK 0x07
#define TIMESTAMP_TYPE_LOG_APPEND 0x08
#define TRANSACTIONAL 0x10
#define CONTROL 0x20

#define NO_SEQUENCE (-1)
/* The offset behind the last one has to be said in 64 bits as well. */
#define OFFSET_MAX 9223372036854775806

static inline uint16_t big16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t big32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline int64_t big64(const uint8_t *at)
{
    return (int64_t)((uint64_t)big32(at) << 32 | big32(at + 4));
}

static inline void put_big32(uint8_t *at, uint32_t value)
{
    for (int i = 3; i >= 0; i--, value >>= 8)
        at[i] = (uint8_t)value;
}

static inline void put_big64(uint8_t *at, int64_t value)
{
    put_big32(at, (uint32_t)((uint64_t)value >> 32));
    put_big32(at + 4, (uint32_t)value);
}

#endif
