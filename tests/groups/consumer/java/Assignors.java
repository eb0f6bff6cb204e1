// Apache Kafka 4.3's server-side assignors, asked about groups.
//
//   java -cp "$OTTLA_KAFKA_JARS/*" Assignors.java < questions
//
// A question is a line of JSON: {"assignor": "range", "counts": {topic: partitions}, "members": [{"id", "instance",
// "topics": [topic], "before": {topic: [partition]}}]}, topics being UUIDs as Kafka writes them. The answer is a line:
// {member: {topic: [partition]}}.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class Assignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, ConsumerGroupPartitionAssignor> ASSIGNORS =
        Map.of("range", new RangeAssignor(), "uniform", new UniformAssignor());

    record Counts(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        public int numPartitions(Uuid topic) {
            return counts.getOrDefault(topic, -1);
        }

        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(JSON.readTree(line)));
        }
        out.flush();
    }

    private static JsonNode answer(JsonNode question) {
        Map<Uuid, Integer> counts = new HashMap<>();
        question.get("counts").fields().forEachRemaining(
            entry -> counts.put(Uuid.fromString(entry.getKey()), entry.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (JsonNode member : question.get("members")) {
            String id = member.get("id").asText();
            Set<Uuid> topics = new HashSet<>();
            member.get("topics").forEach(topic -> topics.add(Uuid.fromString(topic.asText())));
            subscriptions.add(topics);
            Map<Uuid, Set<Integer>> before = new HashMap<>();
            member.get("before").fields().forEachRemaining(entry -> {
                Uuid topic = Uuid.fromString(entry.getKey());
                Set<Integer> partitions = new HashSet<>();
                entry.getValue().forEach(partition -> partitions.add(partition.asInt()));
                before.put(topic, partitions);
                partitions.forEach(one -> owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(one, id));
            });
            members.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.ofNullable(member.get("instance").textValue()), topics,
                new Assignment(Collections.unmodifiableMap(before))));
        }
        SubscriptionType type = subscriptions.size() == 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        var assigned = ASSIGNORS.get(question.get("assignor").asText())
            .assign(new GroupSpecImpl(members, type, owners), new Counts(counts));
        ObjectNode answer = JSON.createObjectNode();
        assigned.members().forEach((id, assignment) -> {
            ObjectNode topics = answer.putObject(id);
            assignment.partitions().forEach((topic, partitions) ->
                topics.set(topic.toString(), JSON.valueToTree(new TreeSet<>(partitions))));
        });
        return answer;
    }
}
