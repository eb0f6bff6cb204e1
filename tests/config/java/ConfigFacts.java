import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints what Apache Kafka itself says about its properties, for the tests to compare with.
 *
 * <p>First come the facts: a line for each property, topic synonym and update mode. Then each line of the input is
 * answered. "value", a kind, a name and a value (base64): whether Kafka takes the value. "file" and a property file
 * (base64): its entries.
 */
public class ConfigFacts {
    public static void main(String[] args) throws Exception {
        facts();
        Map<String, Map<String, ConfigDef.ConfigKey>> keys = Map.of(
                "broker", kafka.server.KafkaConfig.configDef().configKeys(),
                "topic", LogConfig.configDefCopy().configKeys());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            if (parts[0].equals("value")) {
                judge(keys.get(parts[1]).get(parts[2]), new String(Base64.getDecoder().decode(parts[3]),
                        StandardCharsets.UTF_8));
            } else {
                read(Base64.getDecoder().decode(parts[1]));
            }
        }
    }

    private static void facts() {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        describe("broker", kafka.server.KafkaConfig.configDef(), modes);
        describe("topic", LogConfig.configDefCopy(), Map.of());
        for (Map.Entry<String, List<ConfigSynonym>> entry :
                new TreeMap<>(ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS).entrySet()) {
            List<String> names = entry.getValue().stream().map(ConfigSynonym::name).toList();
            System.out.println("synonyms\t" + entry.getKey() + "\t" + String.join(",", names));
        }
    }

    private static void describe(String kind, ConfigDef definitions, Map<String, String> modes) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definitions.configKeys()).values()) {
            String rule = key.validator == null ? "" : key.validator.getClass().getSimpleName() + ":" + key.validator;
            System.out.println(String.join("\t", kind, key.name, key.type.toString(), defaultOf(key), rule,
                    key.importance.toString(), String.valueOf(key.internalConfig),
                    modes.getOrDefault(key.name, "read-only")));
        }
    }

    private static String defaultOf(ConfigDef.ConfigKey key) {
        if (!key.hasDefault()) {
            return "<required>";
        }
        if (key.defaultValue == null) {
            return "<null>";
        }
        return key.defaultValue instanceof Password password
                ? password.value() : ConfigDef.convertToString(key.defaultValue, key.type);
    }

    private static void judge(ConfigDef.ConfigKey key, String text) {
        try {
            Object value = new ConfigDef().define(key).parse(Map.of(key.name, text)).get(key.name);
            System.out.println("yes\t" + base64(value instanceof Password password
                    ? password.value() : ConfigDef.convertToString(value, key.type)));
        } catch (Exception e) {
            System.out.println("no\t");
        }
    }

    private static void read(byte[] file) throws Exception {
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(file));
        } catch (IllegalArgumentException e) {
            System.out.println("fault");
            return;
        }
        StringBuilder out = new StringBuilder("read");
        for (Map.Entry<Object, Object> entry : new TreeMap<>(properties).entrySet()) {
            out.append('\t').append(base64((String) entry.getKey()))
                    .append(':').append(base64((String) entry.getValue()));
        }
        System.out.println(out);
    }

    private static String base64(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_16BE));
    }
}
