/* CRC-32C of bytes: by the processor's own instruction where it has one, three streams at once, else by a table.

   One instruction takes eight bytes and three cycles, but the next may begin a cycle later: three sums of neighbouring
   stretches keep it busy. To join them, a sum is moved over as many zeros as the next stretch is long, by a table that
   is made once (four look-ups). */

#ifndef OTTLA_CRC32C_H
#define OTTLA_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRC32C_POLYNOMIAL 0x82F63B78u
/* The length of each of the three stretches: a batch of 16 KB has five times three. */
#define CRC32C_STRETCH 1024

static uint32_t crc32c_bytes[256];
/* What a sum becomes behind CRC32C_STRETCH zeros, for each value of each of its four bytes. */
static uint32_t crc32c_moved[4][256];

static uint32_t crc32c_by_table(uint32_t sum, const uint8_t *at, size_t size)
{
    for (; size; size--)
        sum = crc32c_bytes[(sum ^ *at++) & 255] ^ sum >> 8;
    return sum;
}

static uint32_t crc32c_move(uint32_t sum)
{
    return crc32c_moved[0][sum & 255] ^ crc32c_moved[1][sum >> 8 & 255] ^ crc32c_moved[2][sum >> 16 & 255] ^
           crc32c_moved[3][sum >> 24];
}

#if defined(__x86_64__) && defined(__GNUC__)
#define CRC32C_ATTRIBUTES __attribute__((target("sse4.2")))
#define CRC32C_WORD(sum, word) __builtin_ia32_crc32di(sum, word)
#define CRC32C_HERE() (__builtin_cpu_init(), __builtin_cpu_supports("sse4.2"))
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32) && defined(__GNUC__) && !defined(__clang__)
#define CRC32C_ATTRIBUTES
#define CRC32C_WORD(sum, word) __builtin_aarch64_crc32cx((uint32_t)(sum), word)
#define CRC32C_HERE() 1
#endif

#ifdef CRC32C_WORD
CRC32C_ATTRIBUTES static uint32_t crc32c_by_processor(uint32_t sum, const uint8_t *at, size_t size)
{
    uint64_t first = sum, word;
    while (size >= 3 * CRC32C_STRETCH) {
        uint64_t second = 0, third = 0, words[3];
        for (const uint8_t *end = at + CRC32C_STRETCH; at < end; at += 8) {
            memcpy(&words[0], at, 8);
            memcpy(&words[1], at + CRC32C_STRETCH, 8);
            memcpy(&words[2], at + 2 * CRC32C_STRETCH, 8);
            first = CRC32C_WORD(first, words[0]);
            second = CRC32C_WORD(second, words[1]);
            third = CRC32C_WORD(third, words[2]);
        }
        first = crc32c_move(crc32c_move((uint32_t)first) ^ (uint32_t)second) ^ third;
        at += 2 * CRC32C_STRETCH;
        size -= 3 * CRC32C_STRETCH;
    }
    for (; size >= 8; size -= 8, at += 8) {
        memcpy(&word, at, 8);
        first = CRC32C_WORD(first, word);
    }
    return crc32c_by_table((uint32_t)first, at, size);
}
#endif

static uint32_t (*crc32c_sum)(uint32_t, const uint8_t *, size_t) = crc32c_by_table;

static uint32_t crc32c(const uint8_t *at, size_t size)
{
    return ~crc32c_sum(~0u, at, size);
}

/* Before the first sum: called when a module is made. A second call changes nothing. */
static void crc32c_prepare(void)
{
    static const uint8_t zeros[CRC32C_STRETCH];
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t sum = value;
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ CRC32C_POLYNOMIAL : sum >> 1;
        crc32c_bytes[value] = sum;
    }
    /* Moving is linear, so the bits' own are enough: 32 sums instead of 1024. */
    uint32_t of_bit[32];
    for (int bit = 0; bit < 32; bit++)
        of_bit[bit] = crc32c_by_table(1u << bit, zeros, sizeof zeros);
    for (int byte = 0; byte < 4; byte++)
        for (int value = 0; value < 256; value++) {
            uint32_t sum = 0;
            for (int bit = 0; bit < 8; bit++)
                if (value >> bit & 1)
                    sum ^= of_bit[8 * byte + bit];
            crc32c_moved[byte][value] = sum;
        }
#ifdef CRC32C_WORD
    if (CRC32C_HERE())
        crc32c_sum = crc32c_by_processor;
#endif
}

#endif
