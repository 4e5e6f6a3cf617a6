#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions, inlined functions, files and lines by debug information, against addr2line and, where
# the two differ, llvm-symbolizer: our own programs, C++ and Rust, the C library where its debug
# information is installed, and all the ways in which debug information is kept.

for tool in addr2line llvm-symbolizer readelf objcopy strip; do
    command -v "$tool" >/dev/null || {
        echo "There is no $tool here to compare with."
        exit 77
    }
done
compare() { python3 "$ROOT/tests/peers/compare_frames.py" "$DUMP_SYMBOLS" "$@"; }

compare "$ASSAY" 5000
compare "$DUMP_SYMBOLS" 2000

library=/lib/x86_64-linux-gnu/libc.so.6
if [ -e $library ]; then
    id=$(readelf -n $library | sed -n 's/.*Build ID: //p')
    debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
    [ ! -e "$debug" ] || compare $library 5000 "$debug"
fi

if rustc --version >/dev/null 2>&1; then
    cat >small.rs <<'RUST'
use std::collections::HashMap;
trait Area { fn area(&self) -> f64; }
struct Square(f64);
impl Area for Square { fn area(&self) -> f64 { self.0 * self.0 } }
mod deep { #[inline(never)] pub fn count(words: &[String]) -> super::HashMap<String, usize> {
    let mut counts = super::HashMap::new();
    for word in words { *counts.entry(word.to_lowercase()).or_insert(0) += 1; }
    counts
} }
fn main() {
    let words: Vec<String> = std::env::args().collect();
    let shapes: Vec<Box<dyn Area>> = vec![Box::new(Square(deep::count(&words).len() as f64))];
    println!("{}", shapes.iter().map(|shape| shape.area()).sum::<f64>());
}
RUST
    rustc -g -C opt-level=2 -o rust small.rs
    compare rust 3000
fi

command -v c++ >/dev/null || exit 0
cat >small.cc <<'CC'
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace {
struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square : Shape {
    explicit Square(double side) : side(side) {}
    double area() const override { return side * side; }
    double side;
};
template <typename T> T twice(T value) { return value + value; }
int hidden(int n) { return n < 2 ? n : hidden(n - 1) + hidden(n - 2); }
}
namespace outer { namespace inner {
static std::string join(const std::vector<std::string> &parts)
{
    std::string all;
    std::for_each(parts.begin(), parts.end(), [&](const std::string &part) { all += part + "/"; });
    return all;
}
extern "C" int exported(int n) { return n * 3; }
} }
int main(int argc, char **argv)
{
    std::map<std::string, std::vector<int>> counts;
    for (int i = 0; i < argc; i++)
        counts[argv[i]].push_back(i);
    std::vector<std::unique_ptr<Shape>> shapes;
    for (auto &entry : counts) {
        std::sort(entry.second.begin(), entry.second.end(), [](int a, int b) { return a > b; });
        shapes.push_back(std::unique_ptr<Shape>(new Square(entry.second.size())));
    }
    std::function<double(const Shape &)> measure = [](const Shape &s) { return twice(s.area()); };
    double sum = outer::inner::join({argv[0], "b"}).size();
    for (auto &shape : shapes)
        sum += measure(*shape);
    return sum > hidden(argc) + outer::inner::exported(argc);
}
CC
c++ -g -O2 -o whole small.cc
compare whole 3000
c++ -gdwarf-4 -O1 -fdebug-types-section -o older small.cc
compare older 1000
c++ -g -O2 -flto -o linked small.cc
compare linked 1000
! command -v clang++ >/dev/null || { clang++ -g -O2 -o clang small.cc && compare clang 2000; }

for method in zlib zstd; do
    # Not every objcopy knows every method.
    objcopy --compress-debug-sections=$method whole packed && compare packed 1000 whole
done
objcopy --only-keep-debug whole small.debug
strip -o small whole
objcopy --add-gnu-debuglink=small.debug small
compare small 1000 whole
if command -v dwz >/dev/null; then
    cp whole first
    cp whole second
    dwz -m shared -M "$PWD/shared" first second
    compare first 1000 whole
fi
