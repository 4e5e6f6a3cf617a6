// SPDX-License-Identifier: Apache-2.0
// A program to record: it burns time in known shares, allocates, waits for a lock and parks, in
// threads with names of several kinds. Halfway through, the recording goes on in a new chunk.

import java.util.concurrent.locks.LockSupport;
import jdk.jfr.FlightRecorder;

public class Load {
    static volatile long sink;
    static volatile boolean paused;
    static final Object lock = new Object();
    static final Object[] kept = new Object[100];

    static void burn(long milliseconds) {
        long end = System.nanoTime() + milliseconds * 1000000, x = 1;
        while (System.nanoTime() < end)
            for (int i = 0; i < 20000; i++)
                x = x * 31 + i;
        sink += x;
    }

    static void heavy() {
        burn(30);
    }

    static void light() {
        burn(10);
    }

    /* Deeper than the recorder looks: these stacks are cut off. */
    static void deep(int depth) {
        if (depth == 0)
            burn(15);
        else
            deep(depth - 1);
    }

    static void allocate() {
        for (int i = 0; i < 300; i++) {
            kept[i % 100] = new byte[1024 + i];
            kept[(i + 1) % 100] = new String[16 + i % 7][3];
        }
        kept[0] = new long[300000];
    }

    /* An event that begins in one chunk and ends in the next may lose its stack: let there be none. */
    static void waitForChunk() {
        while (paused)
            Thread.onSpinWait();
    }

    static void startChunk() throws Exception {
        paused = true;
        Thread.sleep(200);
        FlightRecorder.getFlightRecorder().takeSnapshot().close();
        paused = false;
    }

    static void hold(long until) {
        while (System.currentTimeMillis() < until) {
            waitForChunk();
            synchronized (lock) {
                try {
                    Thread.sleep(15);
                } catch (InterruptedException e) {
                    return;
                }
            }
            Thread.yield();
        }
    }

    static void contend(long until) {
        while (System.currentTimeMillis() < until) {
            waitForChunk();
            synchronized (lock) {
                sink++;
            }
            LockSupport.parkNanos(12000000);
        }
    }

    public static void main(String[] arguments) throws Exception {
        long milliseconds = Long.parseLong(arguments[0]);
        long start = System.currentTimeMillis(), until = start + milliseconds;
        Thread[] threads = {new Thread(() -> hold(until), "h\u00f6lder \u2713"),
                            new Thread(() -> contend(until), "caf\u00e9")};
        for (Thread thread : threads)
            thread.start();
        boolean rotated = false;
        while (System.currentTimeMillis() < until) {
            heavy();
            light();
            deep(200);
            allocate();
            if (!rotated && System.currentTimeMillis() > start + milliseconds / 2) {
                startChunk();
                rotated = true;
            }
        }
        for (Thread thread : threads)
            thread.join();
    }
}
