import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * What the assignors of Java's client give to whom.
 *
 * <p>A line of standard input is a group as JSON: {@code assignor}; {@code topics}, for each a list of partitions, for
 * each the racks of its replicas; {@code members}, for each {@code topics}, {@code owned}, {@code generation}, {@code
 * rack} and {@code instance}. The answering line has {@code assigned} and {@code user_data} by member.
 */
public final class Assignors {

    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws IOException {
        BufferedReader cases = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            System.out.flush();
        }
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static ObjectNode answer(JsonNode group) {
        String name = group.get("assignor").asText();
        ObjectNode answer = JSON.createObjectNode();
        ObjectNode userData = answer.putObject("user_data");
        Map<String, Subscription> members = new HashMap<>();
        group.get("members").fields().forEachRemaining(entry -> {
            Subscription subscription = subscription(name, entry.getKey(), entry.getValue());
            ByteBuffer data = subscription.userData();
            userData.put(entry.getKey(), data == null ? null : hex(data));
            members.put(entry.getKey(), subscription);
        });
        ObjectNode assigned = answer.putObject("assigned");
        assignor(name).assign(cluster(group.get("topics")), new GroupSubscription(members)).groupAssignment()
            .forEach((member, assignment) -> {
                ArrayNode partitions = assigned.putArray(member);
                for (TopicPartition partition : assignment.partitions()) {
                    partitions.addArray().add(partition.topic()).add(partition.partition());
                }
            });
        return answer;
    }

    private static Subscription subscription(String name, String id, JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = new ArrayList<>();
        member.get("owned").forEach(pair -> owned.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt())));
        int generation = member.get("generation").asInt();
        Optional<String> instance = Optional.ofNullable(member.get("instance").textValue());
        Optional<String> rack = Optional.ofNullable(member.get("rack").textValue());
        ConsumerPartitionAssignor mine = assignor(name);
        if (generation >= 0) {
            mine.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("group", generation, id, instance));
        }
        ByteBuffer data = mine.subscriptionUserData(new HashSet<>(topics));
        List<TopicPartition> told = name.equals("cooperative-sticky") ? owned : List.of();
        Subscription subscription = new Subscription(topics, data, told, generation, rack);
        subscription.setGroupInstanceId(instance);
        return subscription;
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new LinkedHashMap<>();
        Set<PartitionInfo> partitions = new HashSet<>();
        topics.fields().forEachRemaining(entry -> {
            int number = 0;
            for (JsonNode racks : entry.getValue()) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : racks) {
                    replicas.add(nodes.computeIfAbsent(rack.asText(), each ->
                        new Node(nodes.size(), "host", 9092 + nodes.size(), each.isEmpty() ? null : each)));
                }
                Node[] array = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(entry.getKey(), number, array[0], array, array));
                number++;
            }
        });
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static String hex(ByteBuffer data) {
        byte[] bytes = new byte[data.remaining()];
        data.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
