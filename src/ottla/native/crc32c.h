/* CRC-32C, which a batch's checksum is: by the processor where that can, else by a table.

   Each module of this folder that needs it has it for its own; `choose_crc32c` is called when the module is loaded. */

#ifndef OTTLA_CRC32C_H
#define OTTLA_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint32_t crc_table[256];

static void make_crc_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0x82F63B78u : value >> 1;
        crc_table[i] = value;
    }
}

static uint32_t crc32c_by_table(const uint8_t *at, size_t size)
{
    uint32_t crc = ~0u;
    while (size--)
        crc = crc_table[(crc ^ *at++) & 255] ^ crc >> 8;
    return ~crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_by_processor(const uint8_t *at, size_t size)
{
    uint64_t crc = ~0u;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    uint32_t rest = (uint32_t)crc;
    while (size--)
        rest = __builtin_ia32_crc32qi(rest, *at++);
    return ~rest;
}
#define PROCESSOR_HAS_CRC32C __builtin_cpu_supports("sse4.2")
#else
#define crc32c_by_processor crc32c_by_table
#define PROCESSOR_HAS_CRC32C 0
#endif

static uint32_t (*crc32c)(const uint8_t *, size_t) = crc32c_by_table;

static void choose_crc32c(void)
{
    make_crc_table();
    if (PROCESSOR_HAS_CRC32C)
        crc32c = crc32c_by_processor;
}

#endif
