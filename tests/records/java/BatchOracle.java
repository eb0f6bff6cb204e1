// Apache Kafka's own record classes (kafka-clients and kafka-storage 4.3), asked about batches.
//
//   java -cp "$OTTLA_KAFKA_JARS/*" BatchOracle.java golden           prints batches and what they hold
//   java -cp "$OTTLA_KAFKA_JARS/*" BatchOracle.java read    < hex    prints the records of each batch
//   java -cp "$OTTLA_KAFKA_JARS/*" BatchOracle.java verdict < lines  prints the broker's answer to each produced batch
//   java -cp "$OTTLA_KAFKA_JARS/*" BatchOracle.java filter  < lines  prints what the cleaner leaves of each batch
//
// Bytes are written in hexadecimal, none as ".", null as "-".

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.Crc32C;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

public class BatchOracle {
    private static final HexFormat HEX = HexFormat.of();
    private static final long NOW = 1_764_000_000_000L;
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        if (args[0].equals("golden")) {
            golden();
        } else {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] words = line.split(" ");
                switch (args[0]) {
                    case "read" -> read(words[0]);
                    case "verdict" -> OUT.println(verdict(words));
                    case "filter" -> OUT.println(filter(words));
                    default -> throw new IllegalArgumentException(args[0]);
                }
            }
        }
        OUT.flush();
    }

    // ---- batches as Kafka writes them -------------------------------------------------------------------------

    private static void golden() {
        for (CompressionType type : CompressionType.values()) {
            Compression codec = Compression.of(type).build();
            show("plain-" + type.name, MemoryRecords.withRecords(codec, plain()));
            show("mixed-" + type.name, MemoryRecords.withRecords(40L, codec, 7, mixed()));
            if (type != CompressionType.NONE)
                show("large-" + type.name, MemoryRecords.withRecords(codec, large()));
        }
        Compression none = Compression.NONE;
        show("idempotent", MemoryRecords.withIdempotentRecords(none, 4711L, (short) 3, 2147483646, plain()));
        show("transactional",
            MemoryRecords.withTransactionalRecords(1000L, Compression.zstd().build(), 4711L, (short) 3, 0, 9, plain()));
        show("append-time", appendTime());
        show("offset-gaps", gaps());
        show("commit", MemoryRecords.withEndTransactionMarker(77L, NOW, 4, 4711L, (short) 3,
            new EndTransactionMarker(ControlRecordType.COMMIT, 12)));
        show("abort", MemoryRecords.withEndTransactionMarker(78L, NOW, 4, 4711L, (short) 3,
            new EndTransactionMarker(ControlRecordType.ABORT, 12)));
        show("leader-change", MemoryRecords.withLeaderChangeMessage(3L, NOW, 2, ByteBuffer.allocate(512),
            new LeaderChangeMessage().setLeaderId(1)));
        ByteBuffer empty = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(empty, RecordBatch.CURRENT_MAGIC_VALUE, 4711L, (short) 3, 10, 100L, 104L, 6,
            TimestampType.CREATE_TIME, NOW, true, false);
        empty.flip();
        show("emptied", MemoryRecords.readableRecords(empty));
    }

    private static SimpleRecord[] plain() {
        SimpleRecord[] records = new SimpleRecord[5];
        for (int i = 0; i < records.length; i++)
            records[i] = new SimpleRecord(NOW + 37L * i, ("key" + i).getBytes(), ("a value, number " + i).getBytes());
        return records;
    }

    private static SimpleRecord[] mixed() {
        Header[] headers = {new RecordHeader("trace", new byte[] {1, 2, 3}), new RecordHeader("größe", null),
            new RecordHeader("", new byte[0])};
        return new SimpleRecord[] {
            new SimpleRecord(NOW, (byte[]) null, null, new Header[0]),
            new SimpleRecord(NOW - 86_400_000L, new byte[0], new byte[0], new Header[0]),
            new SimpleRecord(NOW + 4_000_000_000L, "k".getBytes(), null, headers),
            new SimpleRecord(NOW - 64, (byte[]) null, new byte[200], new Header[] {headers[0]}),
            new SimpleRecord(NOW + 64, new byte[8300], "v".getBytes(), headers),
        };
    }

    /** More than one block of snappy (32 KiB) and of lz4 (64 KiB). */
    private static SimpleRecord[] large() {
        return new SimpleRecord[] {
            new SimpleRecord(NOW, (byte[]) null, "{\"name\": \"the same again\"}".repeat(4000).getBytes()),
            new SimpleRecord(NOW, (byte[]) null, "short".getBytes()),
        };
    }

    private static MemoryRecords appendTime() {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(16384),
            RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE, TimestampType.LOG_APPEND_TIME, 5L, NOW + 999);
        for (SimpleRecord record : mixed())
            builder.append(record);
        return builder.build();
    }

    private static MemoryRecords gaps() {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1024), Compression.NONE,
            TimestampType.CREATE_TIME, 1_000_000_000_000L);
        builder.appendWithOffset(1_000_000_000_003L, NOW, "a".getBytes(), "1".getBytes());
        builder.appendWithOffset(1_000_000_000_100L, NOW, "b".getBytes(), "2".getBytes());
        builder.appendWithOffset(1_000_000_070_000L, NOW, "c".getBytes(), "3".getBytes());
        return builder.build();
    }

    private static void show(String name, MemoryRecords records) {
        String bytes = hex(records.buffer());
        OUT.println("batch " + name + " " + bytes);
        read(bytes);
    }

    private static void read(String hex) {
        MutableRecordBatch batch = batchOf(hex);
        batch.ensureValid();
        int count = 0;
        for (Record record : batch) {
            StringBuilder headers = new StringBuilder();
            for (Header header : record.headers())
                headers.append(' ').append(hexOf(header.key().getBytes(StandardCharsets.UTF_8)))
                    .append('=').append(hexOf(header.value()));
            OUT.println("record " + record.offset() + " " + record.timestamp() + " " + hex(record.key()) + " "
                + briefly(record.value()) + headers);
            count++;
        }
        OUT.println("end " + count);
    }

    // ---- what a broker says to a produced batch ---------------------------------------------------------------

    /** compacted(true|false) type(0|1) beforeMs afterMs nowMs maxBytes apiVersion targetCodec hex */
    private static String verdict(String[] words) {
        boolean compacted = Boolean.parseBoolean(words[0]);
        TimestampType type = words[1].equals("1") ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        long now = Long.parseLong(words[4]);
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(words[8])));
        try {
            ProduceRequest.validateRecords(Short.parseShort(words[6]), records);
            CompressionType source = analyze(records, Integer.parseInt(words[5]));
            Compression target = words[7].equals("-") ? Compression.of(source).build() : Compression.of(words[7]).build();
            LogValidator validator = new LogValidator(records, new TopicPartition("t", 0), new FixedTime(now), source,
                target, compacted, RecordBatch.CURRENT_MAGIC_VALUE, type, Long.parseLong(words[2]),
                Long.parseLong(words[3]), RecordBatch.NO_PARTITION_LEADER_EPOCH, AppendOrigin.CLIENT);
            LogValidator.ValidationResult result = validator.validateMessagesAndAssignOffsets(
                PrimitiveRef.ofLong(0), new NoMetrics(), BufferSupplier.create());
            return "NONE " + hex(result.validatedRecords().buffer());
        } catch (RecordValidationException e) {
            String indexes = e.recordErrors().stream().map(error -> String.valueOf(error.batchIndex))
                .collect(Collectors.joining(","));
            return Errors.forException(e.invalidException()) + " " + indexes;
        } catch (Throwable e) { // as the broker does: a codec may throw an Error
            return Errors.forException(e) + " -";
        }
    }

    /** The checks between those of the request and those of LogValidator, which stand in a method private to the log. */
    private static CompressionType analyze(MemoryRecords records, int maxBytes) {
        CompressionType source = CompressionType.NONE;
        for (MutableRecordBatch batch : records.batches()) {
            if (batch.baseOffset() != 0)
                throw new InvalidRecordException("base offset");
            if (batch.sizeInBytes() > maxBytes)
                throw new RecordTooLargeException("size");
            if (!batch.isValid())
                throw new CorruptRecordException("checksum");
            if (batch.compressionType() != CompressionType.NONE)
                source = batch.compressionType();
        }
        return source;
    }

    private static final class FixedTime implements Time {
        private final long now;

        FixedTime(long now) {
            this.now = now;
        }

        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000L;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, java.util.function.Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    private static final class NoMetrics implements LogValidator.MetricsRecorder {
        @Override
        public void recordInvalidMagic() { }

        @Override
        public void recordInvalidOffset() { }

        @Override
        public void recordInvalidSequence() { }

        @Override
        public void recordInvalidChecksums() { }

        @Override
        public void recordNoKeyCompactedTopic() { }
    }

    // ---- what the cleaner leaves ------------------------------------------------------------------------------

    /** nowMs deleteRetentionMs keptOffsets(comma separated, or "-") hex; a delete horizon is set as the cleaner does */
    private static String filter(String[] words) {
        Set<Long> kept = words[2].equals("-") ? new HashSet<>()
            : Arrays.stream(words[2].split(",")).map(Long::valueOf).collect(Collectors.toSet());
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(words[3])));
        ByteBuffer target = ByteBuffer.allocate(1 << 20);
        MemoryRecords.FilterResult result = records.filterTo(
            new MemoryRecords.RecordFilter(Long.parseLong(words[0]), Long.parseLong(words[1])) {
                @Override
                protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                    return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, batch.isControlBatch());
                }

                @Override
                protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                    return kept.contains(record.offset());
                }
            }, target, BufferSupplier.create());
        ByteBuffer out = result.outputBuffer();
        out.flip();
        return hex(out);
    }

    // ---- bytes ------------------------------------------------------------------------------------------------

    private static MutableRecordBatch batchOf(String hex) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(hex))).batches().iterator().next();
    }

    private static byte[] bytes(String hex) {
        return hex.equals(".") ? new byte[0] : HEX.parseHex(hex);
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null)
            return "-";
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return hexOf(bytes);
    }

    /** A long value as its length and checksum. */
    private static String briefly(ByteBuffer buffer) {
        return buffer == null || buffer.remaining() <= 1000 ? hex(buffer)
            : "#" + buffer.remaining() + ":" + Crc32C.compute(buffer, 0, buffer.remaining());
    }

    private static String hexOf(byte[] bytes) {
        return bytes == null ? "-" : bytes.length == 0 ? "." : HEX.formatHex(bytes);
    }
}
