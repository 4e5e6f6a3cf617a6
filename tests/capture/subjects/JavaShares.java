// SPDX-License-Identifier: Apache-2.0
// Spends CPU time in three methods, about 60, 30 and 10 of 100, for so many seconds, and prints how
// much each really took. The thread is called "measured".

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

public class JavaShares {
    static volatile long sink;
    static final ThreadMXBean clock = ManagementFactory.getThreadMXBean();

    static void spin(int times) {
        long count = sink;
        for (int k = 0; k < times; k++)
            for (int i = 0; i < 1000; i++)
                count += (long) i * i ^ count;
        sink = count;
    }

    static void sixty(int times) {
        spin(6 * times);
    }

    static void thirty(int times) {
        spin(3 * times);
    }

    static void ten(int times) {
        spin(times);
    }

    static void work(double seconds) {
        long[] took = new long[3];
        // As many turns as take some milliseconds, however fast the machine runs its code.
        int times = 1;
        while (took[0] + took[1] + took[2] < seconds * 1e9) {
            long start = clock.getCurrentThreadCpuTime();
            sixty(times);
            long second = clock.getCurrentThreadCpuTime();
            thirty(times);
            long third = clock.getCurrentThreadCpuTime();
            ten(times);
            long end = clock.getCurrentThreadCpuTime();
            took[0] += second - start;
            took[1] += third - second;
            took[2] += end - third;
            if (end - start < 10_000_000)
                times = times * 2;
        }
        double all = took[0] + took[1] + took[2];
        System.out.println("sixty " + 100 * took[0] / all);
        System.out.println("thirty " + 100 * took[1] / all);
        System.out.println("ten " + 100 * took[2] / all);
    }

    public static void main(String[] arguments) throws Exception {
        final double seconds = Double.parseDouble(arguments[0]);
        // Time for the recorder to find the virtual machine.
        long start = clock.getCurrentThreadCpuTime();
        while (clock.getCurrentThreadCpuTime() - start < 500_000_000)
            spin(100);
        Thread thread = new Thread(() -> work(seconds), "measured");
        thread.start();
        thread.join();
    }
}
