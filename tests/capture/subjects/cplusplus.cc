// SPDX-License-Identifier: Apache-2.0
// cplusplus MS: exceptions thrown, cleaned up after and caught at depth, virtual calls, templates,
// callbacks, a constructor before main and a thread of the C++ library's.

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "known.h"

static volatile uint64_t sink;

struct Cleanup {
    CALL ~Cleanup() { sink = sink + 1; }
};

CALL void thrower(int n)
{
    spin(UNIT / 10);
    if (n >= 0)
        throw std::runtime_error("known");
    STAY;
}
CALL void middle(int n)
{
    Cleanup cleanup;
    thrower(n);
    STAY;
}
CALL void depth(int left, int n)
{
    if (left)
        depth(left - 1, n);
    else
        middle(n);
    STAY;
}
CALL void caught_leaf() { spin(UNIT / 10); }
CALL void catcher()
{
    try {
        depth(19, static_cast<int>(sink & 1));
    } catch (const std::exception &) {
        caught_leaf();
    }
    STAY;
}

struct Shape {
    virtual ~Shape() = default;
    virtual void draw() = 0;
};
struct Circle : Shape {
    CALL void fill() { spin(UNIT); }
    CALL void draw() override { fill(); STAY; }
};
struct Square : Shape {
    std::unique_ptr<Shape> inner = std::make_unique<Circle>();
    CALL void draw() override { inner->draw(); STAY; }
};
CALL void drawing()
{
    static std::unique_ptr<Shape> shape = std::make_unique<Square>();
    shape->draw();
    STAY;
}

CALL void order_leaf() { spin(UNIT / 20); }
CALL bool before(int a, int b)
{
    order_leaf();
    return a < b;
}
CALL void sorting()
{
    std::vector<int> numbers(64);
    for (int i = 0; i < 64; i++)
        numbers[static_cast<size_t>(i)] = i * 37 % 64;
    std::sort(numbers.begin(), numbers.end(), before);
    sink = sink + static_cast<uint64_t>(numbers[0]);
}

template <typename T> CALL void templated_leaf(T rounds) { spin(rounds); }
template <typename T> CALL void templated(const std::function<void(T)> &callback)
{
    callback(UNIT);
    STAY;
}
CALL void functional()
{
    templated<unsigned long>([](unsigned long rounds) {
        templated_leaf(rounds);
        STAY;
    });
    STAY;
}

CALL void thread_leaf() { spin(UNIT); }
CALL void thread_body(int64_t limit)
{
    while (thread_cpu_ns() < limit)
        thread_leaf();
}

CALL void early_leaf(int64_t limit)
{
    while (thread_cpu_ns() < limit)
        spin(UNIT);
}
struct Early {
    CALL Early() { early_leaf(100000000); STAY; }
};
static Early early;

CALL void run(void (*section)(), int64_t limit)
{
    int64_t start = thread_cpu_ns();
    while (thread_cpu_ns() - start < limit)
        section();
}

int main(int argc, char **argv)
{
    int64_t limit = (argc > 1 ? atoi(argv[1]) : 100) * 1000000LL;
    std::thread thread(thread_body, limit);
    for (auto section : {catcher, drawing, sorting, functional})
        run(section, limit);
    thread.join();
}
