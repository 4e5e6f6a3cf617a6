// SPDX-License-Identifier: Apache-2.0
// Churns, and loses a little in each round: leak ROUNDS.

#[inline(never)]
fn churn(round: usize) -> usize {
    let words: Vec<String> = (0..200).map(|i| format!("word {} of {}", i, round)).collect();
    words.iter().map(|word| word.len()).sum()
}

#[inline(never)]
fn leak_one() {
    std::mem::forget(std::hint::black_box(vec![1u8; 2048]));
}

fn main() {
    let rounds: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut sum = 0;
    for round in 0..rounds {
        sum += churn(round);
        leak_one();
    }
    println!("{}", sum);
    std::process::abort(); // no release at the end
}
