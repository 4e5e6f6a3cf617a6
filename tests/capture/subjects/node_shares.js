// SPDX-License-Identifier: Apache-2.0
// Spends CPU time in three functions, about 60, 30 and 10 of 100, for so many seconds, and prints how
// much each really took. Half a second after the start the thread is called "measured".
"use strict";
let sink = 0;
function spin(times) {
    let count = sink;
    for (let k = 0; k < times; k++)
        for (let i = 0; i < 1000; i++) count = (count * 31 + i) | 0;
    sink = count;
}
function sixty(times) {
    spin(6 * times);
}
function thirty(times) {
    spin(3 * times);
}
const worker = {
    ten(times) {
        spin(times);
    },
};
const cpu = () => {
    const used = process.cpuUsage();
    return used.user + used.system;
};
// More targets than a call site remembers, so that no compiler inlines them.
const nothing = [() => 1, () => 2, () => 3, () => 4];
function work(seconds) {
    const all = [sixty, thirty, worker.ten, ...nothing];
    const took = [0, 0, 0, 0, 0, 0, 0];
    let times = 1;
    while (took[0] + took[1] + took[2] < seconds * 1e6) {
        const start = cpu();
        for (let i = 0; i < all.length; i++) {
            const before = cpu();
            all[i](times);
            took[i] += cpu() - before;
        }
        if (cpu() - start < 10000) times *= 2;
    }
    const total = took[0] + took[1] + took[2];
    ["sixty", "thirty", "ten"].forEach((name, i) => console.log(name, (100 * took[i]) / total));
}
const start = cpu();
while (cpu() - start < 500000) spin(100);
process.title = "measured";
work(Number(process.argv[2]));
