// SPDX-License-Identifier: Apache-2.0
// Frames of every kind, for so many seconds of CPU time: deep recursion, interfaces, lambdas,
// exceptions, native methods, reflection, garbage collection, locks, classes that are made and
// thrown away. The thread is called "measured".

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

public class JavaMany {
    static volatile long sink;
    static final ThreadMXBean clock = ManagementFactory.getThreadMXBean();

    interface Shape {
        double area();
    }

    static final class Circle implements Shape {
        public double area() {
            return Math.PI * sink;
        }
    }

    static final class Square implements Shape {
        public double area() {
            return sink * sink;
        }
    }

    static final class Triangle implements Shape {
        public double area() {
            return sink / 2;
        }
    }

    static long spin(int times) {
        long count = sink;
        for (int i = 0; i < times; i++)
            count += (long) i * i ^ count;
        return sink = count;
    }

    static long recurse(int depth) {
        return depth > 0 ? recurse(depth - 1) + 1 : spin(2_000_000);
    }

    static void sorting() {
        Integer[] numbers = new Integer[20_000];
        Random random = new Random(1);
        for (int i = 0; i < numbers.length; i++)
            numbers[i] = random.nextInt();
        Arrays.sort(numbers, (x, y) -> x < y ? -1 : x > y ? 1 : 0);
        sink += numbers[5];
    }

    static void streams() {
        sink += IntStream.range(0, 50_000)
                .mapToObj(i -> "k" + i % 977)
                .collect(Collectors.groupingBy(s -> s, Collectors.counting()))
                .size();
    }

    static void shapes() {
        Shape[] shapes = {new Circle(), new Square(), new Triangle()};
        double total = 0;
        for (int k = 0; k < 300_000; k++)
            total += shapes[k % 3].area();
        sink += (long) total;
    }

    static void thrower(int i) {
        throw new IllegalStateException("x" + i);
    }

    static void raising() {
        for (int i = 0; i < 1000; i++)
            try {
                thrower(i);
            } catch (IllegalStateException e) {
                sink += e.getStackTrace().length;
            }
    }

    static void copying() {
        byte[] a = new byte[1 << 20], b = new byte[1 << 20];
        for (int i = 0; i < 60; i++)
            System.arraycopy(a, 0, b, i & 7, a.length - 8);
        sink += b[7];
    }

    static void garbage() {
        List<Object> list = new ArrayList<>();
        for (int i = 0; i < 200_000; i++) {
            list.add(new int[8]);
            if (list.size() > 5000)
                list.clear();
        }
        sink += list.size();
    }

    static void reflecting() throws Exception {
        Method method = JavaMany.class.getDeclaredMethod("spin", int.class);
        for (int i = 0; i < 200; i++)
            method.invoke(null, 1000);
    }

    // A loader of its own each time: its classes go away with it.
    static void thrownAway() {
        InvocationHandler handler = (proxy, method, arguments) -> {
            spin(100_000);
            return null;
        };
        ClassLoader loader = new ClassLoader(JavaMany.class.getClassLoader()) {
        };
        ((Runnable) Proxy.newProxyInstance(loader, new Class<?>[] {Runnable.class}, handler)).run();
    }

    static void work(double seconds) {
        try {
            while (clock.getCurrentThreadCpuTime() < seconds * 1e9) {
                recurse(400);
                sorting();
                streams();
                shapes();
                raising();
                copying();
                garbage();
                reflecting();
                thrownAway();
            }
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        final double seconds = Double.parseDouble(arguments[0]);
        long start = clock.getCurrentThreadCpuTime();
        while (clock.getCurrentThreadCpuTime() - start < 500_000_000)
            spin(1_000_000);
        Thread thread = new Thread(() -> work(seconds), "measured");
        thread.start();
        thread.join();
    }
}
