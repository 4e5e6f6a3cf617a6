# SPDX-License-Identifier: Apache-2.0
# Small programs with something of everything that debug information is about, for tests that compare
# what is read of it: small.c, small.cc and small.rs here.

cat >small.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline __attribute__((always_inline)) int twice(int n) { return n + n; }
static inline __attribute__((always_inline)) int fourfold(int n)
{
    int half = twice(n);
    if (half > 100)
        half -= twice(half / 3);
    return twice(half);
}
static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) static void fill(int *list, int count)
{
    for (int i = 0; i < count; i++)
        list[i] = fourfold(rand() % 1000);
    qsort(list, (size_t)count, sizeof(*list), compare_ints);
}
__attribute__((cold, noinline)) static void refuse(const char *word)
{
    fprintf(stderr, "no: %s\n", word);
    abort();
}
int main(int argc, char **argv)
{
    int list[64], sum = 0;
    fill(list, 64);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "bad"))
            refuse(argv[i]);
        for (const char *at = argv[i]; *at; at++)
            sum += fourfold(*at) + list[(unsigned char)*at % 64];
    }
    printf("%d\n", sum);
    return sum == 0;
}
C
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
