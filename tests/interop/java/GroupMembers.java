import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Group members of Java's consumer, as many as asked for, in one virtual machine.
 *
 * <p>Standard input has a command a line: {@code start NAME TOPIC,TOPIC KEY=VALUE ...}, {@code leave NAME}, and {@code
 * stay NAME}, which ends the member without telling the group. Standard output has an event a line, its first word the
 * kind and its second the member: {@code assigned}, {@code revoked} and {@code lost} with partitions, {@code record} with
 * topic, partition, offset and value in base64, {@code ended}, and {@code failed} with what was thrown.
 */
public final class GroupMembers {

    private static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws IOException {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "start" -> start(words);
                case "leave" -> MEMBERS.remove(words[1]).end(GroupMembershipOperation.DEFAULT);
                case "stay" -> MEMBERS.remove(words[1]).end(GroupMembershipOperation.REMAIN_IN_GROUP);
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.exit(0);
    }

    private static void start(String[] words) {
        Properties settings = new Properties();
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        for (int i = 3; i < words.length; i++) {
            String[] setting = words[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        Member member = new Member(words[1], Arrays.asList(words[2].split(",")), settings);
        MEMBERS.put(words[1], member);
        member.start();
    }

    private static synchronized void say(String what) {
        System.out.println(what);
        System.out.flush();
    }

    private static final class Member extends Thread implements ConsumerRebalanceListener {
        private final String name;
        private final List<String> topics;
        private final Properties settings;
        private volatile GroupMembershipOperation ending;

        Member(String name, List<String> topics, Properties settings) {
            this.name = name;
            this.topics = topics;
            this.settings = settings;
            setDaemon(true);
        }

        void end(GroupMembershipOperation operation) {
            ending = operation;
        }

        @Override
        public void run() {
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
                consumer.subscribe(topics, this);
                while (ending == null) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50))) {
                        String value = Base64.getEncoder().encodeToString(record.value());
                        say(String.join(" ", "record", name, record.topic(), String.valueOf(record.partition()),
                                String.valueOf(record.offset()), value));
                    }
                }
                consumer.close(CloseOptions.groupMembershipOperation(ending).withTimeout(Duration.ofSeconds(60)));
                say("ended " + name);
            } catch (Exception thrown) {
                say("failed " + name + " " + thrown.toString().replace('\n', ' '));
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            tell("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            tell("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            tell("lost", partitions);
        }

        private void tell(String kind, Collection<TopicPartition> partitions) {
            List<String> named = new ArrayList<>();
            for (TopicPartition partition : partitions) {
                named.add(partition.toString());
            }
            say(kind + " " + name + " " + String.join(",", named));
        }
    }
}
