<?php
// SPDX-License-Identifier: Apache-2.0
// Spends CPU time in three functions, about 60, 30 and 10 of 100, for so many seconds, and prints how
// much each really took. One of them is a generator, one a method. Before that the recorder has half
// a second to find the interpreter; from then on the process is called "measured".
function cpu() {
    $used = getrusage();
    return $used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec'] +
        ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) / 1e6;
}

function spin($seconds) {
    $end = cpu() + $seconds;
    $count = 0;
    while (cpu() < $end)
        for ($i = 0; $i < 2000; $i++)
            $count = ($count * 31 + $i) % 1000003;
    return $count;
}

function sixty() {
    spin(0.06);
}

function thirty() {
    for ($i = 0; $i < 3; $i++)
        yield spin(0.01);
}

class Worker {
    function ten() {
        spin(0.01);
    }
}

function measured(callable $call) {
    $start = cpu();
    $call();
    return cpu() - $start;
}

function main($seconds) {
    spin(0.5);
    file_put_contents('/proc/self/comm', 'measured');
    $worker = new Worker();
    $took = ['sixty' => 0, 'thirty' => 0, 'ten' => 0];
    while (array_sum($took) < $seconds) {
        $took['sixty'] += measured('sixty');
        $took['thirty'] += measured(fn() => iterator_to_array(thirty()));
        $took['ten'] += measured([$worker, 'ten']);
    }
    foreach ($took as $name => $seconds)
        echo $name, ' ', 100 * $seconds / array_sum($took), "\n";
}

main((float)$argv[1]);
