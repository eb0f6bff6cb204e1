// The records of consumer groups in Apache Kafka 4.3's own hand.
//
//   java -cp "$OTTLA_KAFKA_JARS/*" GroupRecords.java          prints records with what they say
//   java -cp "$OTTLA_KAFKA_JARS/*" GroupRecords.java read     reads "key value" lines, prints what Kafka reads in them
//
// A line of the first form is: name, key, value (both hexadecimal, a missing value is "-"). The facts behind each name are
// in ../test_records.py. A line of the second form is the JSON of key and value.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue.ClassicMemberMetadata;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue.ClassicProtocol;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.group.modern.MemberState;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.ResolvedRegularExpression;

public class GroupRecords {
    private static final HexFormat HEX = HexFormat.of();
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();
    private static final Uuid ONE = new Uuid(1, 0x0102030405060708L);
    private static final Uuid TWO = new Uuid(2, -1);

    public static void main(String[] args) throws Exception {
        if (args.length > 0) {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                read(line.split(" "));
            }
        } else {
            records();
        }
        OUT.flush();
    }

    private static void records() {
        say("group-epoch", GroupCoordinatorRecordHelpers.newConsumerGroupEpochRecord("grüppe", 17, -42L));
        say("group-epoch-0", GroupCoordinatorRecordHelpers.newConsumerGroupEpochRecord("g", 1, 0L));
        say("group-epoch-gone", GroupCoordinatorRecordHelpers.newConsumerGroupEpochTombstoneRecord("g"));
        say("topics-gone", GroupCoordinatorRecordHelpers.newConsumerGroupSubscriptionMetadataTombstoneRecord("g"));
        say("target-epoch", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentMetadataRecord("g", 5, 1700000000123L));
        say("target-epoch-gone", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentMetadataTombstoneRecord("g"));
        TreeMap<Uuid, Set<Integer>> target = new TreeMap<>();
        target.put(ONE, new TreeSet<>(Set.of(0, 2, 300)));
        target.put(TWO, Set.of(1));
        say("target", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentRecord("g", "m", target));
        say("target-empty", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentRecord("g", "m", Map.of()));
        say("target-gone", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentTombstoneRecord("g", "m"));
        say("member-gone", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionTombstoneRecord("g", "m"));
        say("current-gone", GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentTombstoneRecord("g", "m"));
        say("regex", GroupCoordinatorRecordHelpers.newConsumerGroupRegularExpressionRecord(
            "g", "a.*|b", new ResolvedRegularExpression(new TreeSet<>(Set.of("ab", "b", "aa")), 7, 1700000000456L)));
        say("regex-gone", GroupCoordinatorRecordHelpers.newConsumerGroupRegularExpressionTombstone("g", "a.*|b"));
        members();
    }

    private static void members() {
        ConsumerGroupMember plain = new ConsumerGroupMember.Builder("m")
            .setClientId("client").setClientHost("/127.0.0.1").setRebalanceTimeoutMs(45000)
            .setSubscribedTopicNames(List.of("b", "a")).build();
        say("member", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord("g", plain));
        say("current", GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord("g", plain));
        TreeMap<Uuid, Map<Integer, Integer>> assigned = new TreeMap<>();
        assigned.put(ONE, new TreeMap<>(Map.of(0, 3, 5, 9)));
        assigned.put(TWO, Map.of(4, 9));
        ConsumerGroupMember full = new ConsumerGroupMember.Builder("m-é")
            .setClientId("c").setClientHost("h").setRebalanceTimeoutMs(1).setInstanceId("i").setRackId("r")
            .setServerAssignorName("range").setSubscribedTopicNames(List.of()).setSubscribedTopicRegex("x.*")
            .setMemberEpoch(9).setPreviousMemberEpoch(8).setState(MemberState.UNREVOKED_PARTITIONS)
            .setAssignedPartitions(assigned).setPartitionsPendingRevocation(Map.of(ONE, Map.of(1, 2)))
            .setClassicMemberMetadata(new ClassicMemberMetadata().setSessionTimeoutMs(6000).setSupportedProtocols(List.of(
                new ClassicProtocol().setName("range").setMetadata(new byte[] {0, 1, 2}),
                new ClassicProtocol().setName("sticky").setMetadata(new byte[0]))))
            .build();
        say("member-full", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord("g", full));
        say("current-full", GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord("g", full));
    }

    private static void say(String name, CoordinatorRecord record) {
        byte[] value = SERDE.serializeValue(record);
        OUT.println(name + " " + HEX.formatHex(SERDE.serializeKey(record)) + " " + (value == null ? "-" : HEX.formatHex(value)));
    }

    private static void read(String[] words) {
        ByteBuffer key = ByteBuffer.wrap(HEX.parseHex(words[0]));
        ByteBuffer value = words[1].equals("-") ? null : ByteBuffer.wrap(HEX.parseHex(words[1]));
        CoordinatorRecord record = SERDE.deserialize(key, value);
        String said = CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()).toString();
        if (record.value() != null) {
            said += " " + CoordinatorRecordJsonConverters.writeRecordValueAsJson(
                record.value().message(), record.value().version());
        }
        OUT.println(said);
    }
}
