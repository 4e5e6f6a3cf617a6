// SPDX-License-Identifier: Apache-2.0
// Threads that wait, each in calls of another kind: interpreted, compiled, in a lambda, in a class
// initialiser, deep in recursion. Prints a line when all of them wait.

import java.util.concurrent.CountDownLatch;

public class JavaDump {
    static final CountDownLatch never = new CountDownLatch(1), ready = new CountDownLatch(4);

    static void await() {
        try {
            ready.countDown();
            never.await();
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static long deep(int depth, boolean wait) {
        if (depth > 0)
            return deep(depth - 1, wait) + 1;
        if (wait)
            await();
        return 0;
    }

    // Often enough for every compiler, before it waits in what was compiled.
    static void compiled() {
        for (int i = 0; i < 30_000; i++)
            deep(20, false);
        deep(20, true);
    }

    static class Initialised {
        static final int value = begin();

        static int begin() {
            await();
            return 1;
        }
    }

    interface Step {
        void run(Step next);
    }

    public static void main(String[] arguments) throws Exception {
        new Thread(() -> deep(50, true), "interpreted").start();
        new Thread(JavaDump::compiled, "compiled").start();
        new Thread(() -> System.out.println(Initialised.value), "initialiser").start();
        Step last = next -> await();
        Step first = next -> next.run(null);
        new Thread(() -> first.run(last), "lambdas").start();
        ready.await();
        System.out.println("ready");
        System.out.flush();
        never.await();
    }
}
