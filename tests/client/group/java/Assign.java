import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
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

/** Reads a case as JSON from each line, and writes what Kafka's assignor gives to whom. */
public class Assign {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(given(JSON.readTree(line))));
            out.flush();
        }
    }

    private static Map<String, Object> given(JsonNode told) {
        Map<String, Subscription> members = new HashMap<>();
        told.get("members").fields().forEachRemaining(each -> members.put(each.getKey(), member(each.getValue())));
        Map<String, Object> result = new LinkedHashMap<>();
        assignor(told.get("assignor").asText())
                .assign(cluster(told.get("topics")), new GroupSubscription(members))
                .groupAssignment()
                .forEach((name, assignment) -> {
                    List<Object> partitions = new ArrayList<>();
                    for (TopicPartition one : assignment.partitions()) {
                        partitions.add(List.of(one.topic(), one.partition()));
                    }
                    result.put(name, partitions);
                });
        return result;
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

    private static Subscription member(JsonNode told) {
        List<String> topics = new ArrayList<>();
        told.get("topics").forEach(topic -> topics.add(topic.asText()));
        Optional<String> rack = told.get("rack").isNull() ? Optional.empty() : Optional.of(told.get("rack").asText());
        Subscription made = new Subscription(topics, null, Collections.emptyList(), -1, rack);
        if (!told.get("instance").isNull()) {
            made.setGroupInstanceId(Optional.of(told.get("instance").asText()));
        }
        return made;
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new HashMap<>();
        Set<PartitionInfo> partitions = new HashSet<>();
        topics.fields().forEachRemaining(topic -> {
            int number = 0;
            for (JsonNode racks : topic.getValue()) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : racks) {
                    replicas.add(nodes.computeIfAbsent(
                            rack.asText(), name -> new Node(nodes.size(), "localhost", 9092, name)));
                }
                Node[] all = replicas.toArray(new Node[0]);
                Node leader = all.length == 0 ? Node.noNode() : all[0];
                partitions.add(new PartitionInfo(topic.getKey(), number++, leader, all, all));
            }
        });
        return new Cluster("cluster", nodes.values(), partitions, Collections.emptySet(), Collections.emptySet());
    }
}
