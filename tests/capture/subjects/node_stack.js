// SPDX-License-Identifier: Apache-2.0
// Waits for input with functions of every kind on its stack, and prints what V8 says about them
// before: one line for each, innermost first, with name and file.
"use strict";
const fs = require("fs");
Error.stackTraceLimit = 100;
Error.prepareStackTrace = (_, sites) =>
    sites.map((site) => `${site.getFunctionName() || "(anonymous)"}\t${site.getFileName() || ""}`).join("\n");

class Shop {
    #secret() {
        const said = {};
        Error.captureStackTrace(said);
        fs.writeSync(1, `${said.stack}\nready\n`);
        fs.readSync(0, Buffer.alloc(1));
    }
    get price() {
        return this.#secret();
    }
    static open() {
        return new Shop().price;
    }
}
const närrisch = () => Shop.open();
function* generator() {
    yield närrisch();
}
function recurse(depth) {
    return depth ? recurse(depth - 1) : [...generator()];
}
async function asynchronous() {
    return recurse(30);
}
[1].map(() => eval("asynchronous()"));
