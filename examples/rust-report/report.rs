//! Names the sensors of a variable. It runs as a command, so what it prints is the result of its Task.

use std::env;

fn main() {
    let sensors = env::var("SENSORS").unwrap_or_default();
    let mut names: Vec<&str> = sensors.split(',').filter(|name| !name.is_empty()).collect();

    names.sort_unstable();
    println!("{} sensors: {}", names.len(), names.join(", "));
}
