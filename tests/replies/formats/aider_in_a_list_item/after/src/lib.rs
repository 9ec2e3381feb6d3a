const MAX: usize = 100;

fn main() {}
