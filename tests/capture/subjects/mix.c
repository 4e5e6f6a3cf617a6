// SPDX-License-Identifier: Apache-2.0
// mix ROUNDS: two dozen functions of different weight, called by each other in a fixed way.

#include "known.h"

#define F(name, weight, next)                                                                      \
    CALL void name(int depth)                                                                      \
    {                                                                                              \
        spin((weight)*UNIT / 20);                                                                  \
        if (depth)                                                                                 \
            next(depth - 1);                                                                       \
        STAY;                                                                                      \
    }

CALL void nothing(int depth)
{
    spin((uint64_t)depth + 1);
}
F(alder, 1, nothing)
F(apple, 2, alder)
F(ash, 3, apple)
F(aspen, 4, ash)
F(bay, 5, aspen)
F(beech, 6, bay)
F(birch, 7, beech)
F(box, 8, birch)
F(cedar, 9, box)
F(cherry, 10, cedar)
F(cypress, 11, cherry)
F(elder, 12, cypress)
F(elm, 13, elder)
F(fig, 14, elm)
F(fir, 15, fig)
F(hazel, 16, fir)
F(holly, 17, hazel)
F(juniper, 18, holly)
F(larch, 19, juniper)
F(lime, 20, larch)
F(maple, 21, lime)
F(oak, 22, maple)
F(olive, 23, oak)
F(pine, 24, olive)

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    for (int i = 0; i < rounds; i++) {
        pine(23);
        cedar(i % 8);
        holly(3);
    }
}
