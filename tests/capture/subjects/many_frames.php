<?php
// SPDX-License-Identifier: Apache-2.0
// PHP frames of every kind, for so many seconds of CPU time: deep recursion, a built-in function that
// calls back, a child, code that is made and thrown away, garbage collection, exceptions, a fiber,
// destructors, included code. See shares_of.php for the first half second.
function cpu() {
    $used = getrusage();
    return $used['ru_utime.tv_sec'] + $used['ru_utime.tv_usec'] / 1e6 + $used['ru_stime.tv_sec'] +
        $used['ru_stime.tv_usec'] / 1e6;
}

function spin($seconds = 0.002) {
    $end = cpu() + $seconds;
    while (cpu() < $end)
        for ($i = 0; $i < 300; $i++)
            $x = $i * $i;
}

function recurse($depth) {
    return $depth ? recurse($depth - 1) : spin(0.02);
}

function called_back($left, $right) {
    spin(0.001);
    return $left - $right;
}

function through_sort() {
    $numbers = [5, 3, 4, 1, 2];
    usort($numbers, 'called_back');
}

function raising() {
    try {
        spin();
        throw new ValueError();
    } catch (ValueError) {
        spin();
    } finally {
        spin();
    }
}

class Ending {
    function __destruct() {
        spin();
    }
}

function in_fiber() {
    $fiber = new Fiber(function () {
        spin();
        Fiber::suspend();
        spin();
    });
    $fiber->start();
    $fiber->resume();
}

function thrown_away($number) {
    eval("function made_$number() { spin(); gc_collect_cycles(); }");
    "made_$number"();
}

function main($seconds) {
    spin(0.5);
    file_put_contents('/proc/self/comm', 'measured');
    $number = 0;
    $end = cpu() + $seconds;
    while (cpu() < $end) {
        recurse(700);
        through_sort();
        raising();
        in_fiber();
        $ending = new Ending();
        $ending = null;
        for ($i = 0; $i < 10; $i++)
            thrown_away($number++);
    }
}

main((float)$argv[1]);
