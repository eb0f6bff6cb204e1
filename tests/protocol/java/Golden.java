// Says messages in Apache Kafka's own encoder, so that ours is compared with somebody else's bytes.
//
// Run as `java -cp JARS Golden.java < APIS > LINES`. Each line of APIS is "name key first-version last-version"; each
// line of the output is one of
//
//     body    name  kind  version  variant  hex  json
//     header  name  key   version  hex of the request's header  hex of the response's header
//
// separated by tabs. Three variants: every field filled, with unknown tagged fields; everything null that can be; and
// the defaults.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

public class Golden {
    enum Variant { FULL, NULLS, DEFAULTS }

    private static final String PACKAGE = "org.apache.kafka.common.message.";
    private final Variant variant;
    private int counter;

    Golden(Variant variant, int seed) {
        this.variant = variant;
        this.counter = seed;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            short key = Short.parseShort(words[1]);
            for (short version = Short.parseShort(words[2]); version <= Short.parseShort(words[3]); version++) {
                output.println(header(words[0], key, version));
                for (String kind : List.of("Request", "Response")) {
                    for (Variant variant : Variant.values()) {
                        output.println(body(words[0], kind, version, variant));
                    }
                }
            }
        }
        output.flush();
    }

    private static String header(String name, short key, short version) {
        ApiMessageType type = ApiMessageType.fromApiKey(key);
        RequestHeaderData request = new RequestHeaderData()
            .setRequestApiKey(key).setRequestApiVersion(version).setCorrelationId(0x01020304 + version);
        short headerVersion = type.requestHeaderVersion(version);
        if (headerVersion >= 1) {
            request.setClientId(version % 2 == 0 ? "client-\u00e9" : null);
        }
        if (headerVersion >= 2 && version % 3 == 0) {
            request.unknownTaggedFields().add(new RawTaggedField(200, new byte[] {1, 2, 3}));
        }
        ResponseHeaderData response = new ResponseHeaderData().setCorrelationId(-5 - version);
        return String.join("\t", "header", name, "" + key, "" + version,
            hex(request, headerVersion), hex(response, type.responseHeaderVersion(version)));
    }

    private static String body(String name, String kind, short version, Variant variant) throws Exception {
        Class<?> type = Class.forName(PACKAGE + name + kind + "Data");
        Message message = (Message) type.getConstructor().newInstance();
        if (variant != Variant.DEFAULTS) {
            Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
            new Golden(variant, name.length() + 31 * version).fill(message, schemas[version]);
        }
        Class<?> converter = Class.forName(PACKAGE + name + kind + "DataJsonConverter");
        Method write = converter.getMethod("write", type, short.class, boolean.class);
        Object json = write.invoke(null, message, version, false);
        return String.join("\t", "body", name, kind, "" + version, variant.name(), hex(message, version), json.toString());
    }

    private static String hex(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException("size and bytes differ");
        }
        return HexFormat.of().formatHex(buffer.array());
    }

    private void fill(Message message, Schema schema) throws Exception {
        boolean flexible = false;
        for (var bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                flexible = true;
                if (variant == Variant.FULL) {
                    for (Field field : defined(tagged).values()) {
                        set(message, field.name, field.type);
                    }
                }
            } else {
                set(message, bound.def.name, bound.def.type);
            }
        }
        if (flexible && variant == Variant.FULL) {
            message.unknownTaggedFields().add(new RawTaggedField(1000 + counter % 7, new byte[counter % 5]));
        }
    }

    /** The tagged fields that Kafka knows, by tag: 3.9 has no way to ask for them. */
    @SuppressWarnings("unchecked")
    private static Map<Integer, Field> defined(TaggedFields tagged) throws Exception {
        var fields = TaggedFields.class.getDeclaredField("fields");
        fields.setAccessible(true);
        return (Map<Integer, Field>) fields.get(tagged);
    }

    private void set(Message message, String name, Type type) throws Exception {
        Method setter = setter(message.getClass(), name);
        Object value = null;
        if (variant != Variant.NULLS || !type.isNullable()) {
            if (type.isArray()) {
                value = array(setter, type.arrayElementType().get());
            } else {
                value = scalar(setter.getParameterTypes()[0], type);
            }
        }
        setter.invoke(message, value);
    }

    private static Method setter(Class<?> owner, String name) {
        String wanted = "set" + name.replace("_", "").toLowerCase(Locale.ROOT);
        for (Method method : owner.getMethods()) {
            if (method.getName().toLowerCase(Locale.ROOT).equals(wanted) && method.getParameterCount() == 1) {
                return method;
            }
        }
        throw new IllegalStateException(owner + " has no " + wanted);
    }

    @SuppressWarnings("unchecked")
    private Object array(Method setter, Type element) throws Exception {
        Class<?> container = setter.getParameterTypes()[0];
        Class<?> of;
        Collection<Object> values;
        if (container == List.class) {
            of = (Class<?>) ((ParameterizedType) setter.getGenericParameterTypes()[0]).getActualTypeArguments()[0];
            values = new ArrayList<>();
        } else {
            of = (Class<?>) ((ParameterizedType) container.getGenericSuperclass()).getActualTypeArguments()[0];
            values = (Collection<Object>) container.getConstructor().newInstance();
        }
        int count = variant == Variant.NULLS ? 1 : 1 + counter % 2;
        for (int index = 0; index < count; index++) {
            values.add(scalar(of, element));
        }
        return values;
    }

    private Object scalar(Class<?> of, Type type) throws Exception {
        counter++;
        if (type instanceof Schema schema) {
            Message inner = (Message) of.getConstructor().newInstance();
            fill(inner, schema);
            return inner;
        }
        long number = counter * 0x9E3779B97F4A7C15L;
        if (of == boolean.class || of == Boolean.class) {
            return counter % 3 != 0;
        } else if (of == byte.class || of == Byte.class) {
            return (byte) number;
        } else if (of == short.class || of == Short.class) {
            return (short) number;
        } else if (of == int.class || of == Integer.class) {
            return type.toString().equals("UINT16") ? (int) (number & 0xFFFF) : (int) number;
        } else if (of == long.class || of == Long.class) {
            return type.toString().equals("UINT32") ? number & 0xFFFFFFFFL : number;
        } else if (of == double.class || of == Double.class) {
            return counter + 0.25;
        } else if (of == String.class) {
            return counter % 11 == 0 ? "long-\u20ac".repeat(30) : "text-" + counter;
        } else if (of == Uuid.class) {
            return new Uuid(number, ~number);
        } else if (of == ByteBuffer.class) {
            return ByteBuffer.wrap(bytes());
        } else if (of == byte[].class) {
            return bytes();
        }
        return records().getMethod("readableRecords", ByteBuffer.class).invoke(null, ByteBuffer.wrap(bytes()));
    }

    /** Kafka 4.3 keeps the class in another package than Kafka 3.9 does. */
    private static Class<?> records() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.kafka.common.record.internal.MemoryRecords");
        } catch (ClassNotFoundException elsewhere) {
            return Class.forName("org.apache.kafka.common.record.MemoryRecords");
        }
    }

    private byte[] bytes() {
        byte[] out = new byte[counter % 9 == 0 ? 200 : counter % 13];
        for (int index = 0; index < out.length; index++) {
            out[index] = (byte) (counter + index);
        }
        return out;
    }
}
