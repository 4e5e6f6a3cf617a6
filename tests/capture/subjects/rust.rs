// SPDX-License-Identifier: Apache-2.0
// rust ROUNDS: traits, closures, iterators, a panic that is caught, and a named thread.

use std::hint::black_box;
use std::panic;
use std::thread;

#[inline(never)]
fn work(rounds: u64) -> u64 {
    let mut sum = 0u64;
    for i in 0..rounds {
        sum = black_box(sum.wrapping_add(i));
    }
    sum
}

trait Shape {
    fn draw(&self) -> u64;
}
struct Circle;
impl Shape for Circle {
    #[inline(never)]
    fn draw(&self) -> u64 {
        work(50_000) + black_box(1)
    }
}
#[inline(never)]
fn dynamic(shape: &dyn Shape) -> u64 {
    shape.draw() + black_box(1)
}

#[inline(never)]
fn apply<F: Fn(u64) -> u64>(function: F) -> u64 {
    function(black_box(50_000)) + black_box(1)
}
#[inline(never)]
fn closures() -> u64 {
    apply(#[inline(never)] |rounds| work(rounds) + black_box(1)) + black_box(1)
}

#[inline(never)]
fn falls(left: u32) -> u64 {
    if left == 0 {
        work(5_000);
        panic!("known");
    }
    falls(left - 1) + black_box(1)
}
#[inline(never)]
fn panics() -> u64 {
    panic::catch_unwind(|| falls(black_box(10))).unwrap_or(1)
}

#[inline(never)]
fn threaded(rounds: u32) -> u64 {
    let mut sum = 0u64;
    for _ in 0..rounds {
        sum = sum.wrapping_add(work(50_000));
    }
    sum
}

#[inline(never)]
fn run(section: fn() -> u64, rounds: u32) -> u64 {
    let mut sum = 0u64;
    for _ in 0..rounds {
        sum = sum.wrapping_add(section());
    }
    sum
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    panic::set_hook(Box::new(|_| {}));
    let other = thread::Builder::new().name("rusty".into()).spawn(move || threaded(rounds)).unwrap();
    let dynamics: fn() -> u64 = || dynamic(black_box(&Circle));
    let mut sum = 0u64;
    for section in [dynamics, closures, panics] {
        sum = sum.wrapping_add(run(section, rounds));
    }
    println!("{}", sum.wrapping_add(other.join().unwrap()) & 1);
}
