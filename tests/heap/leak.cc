// SPDX-License-Identifier: Apache-2.0
// A C++ program that churns and leaks through new, delete and exceptions.

#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

static std::vector<std::string *> leaked;
static char *volatile sink;
static volatile size_t too_much = static_cast<size_t>(1) << 60;

__attribute__((noinline)) void leak_some(size_t count)
{
    for (size_t i = 0; i < count; i++)
        leaked.push_back(new std::string(1000, 'x'));
}

__attribute__((noinline)) size_t churn_some(size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        std::map<int, std::string> map;
        for (int j = 0; j < 20; j++)
            map[j] = std::string(100, 'y');
        sum += map.size();
    }
    return sum;
}

int main()
{
    size_t thrown = 0;
    for (int i = 0; i < 1000; i++)
        try {
            std::unique_ptr<char[]> kept(new char[10000]);
            sink = kept.get(); // so that the compiler leaves neither out
            sink = new char[too_much];
            return 1;
        } catch (const std::bad_alloc &) {
            thrown++;
        }
    leak_some(100000);
    std::printf("%zu %zu\n", churn_some(20000), thrown);
    return thrown != 1000;
}
