# SPDX-License-Identifier: Apache-2.0
"""Computes with numpy, and loses an array in each round."""
import os

import numpy

kept = []


def churn():
    matrix = numpy.random.rand(200, 200)
    return float((matrix @ matrix).sum())


def leak_one():
    kept.append(numpy.zeros(4096))


for _ in range(3000):
    churn()
    leak_one()
os._exit(0)
