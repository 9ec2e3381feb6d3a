const MAX: usize = 10;

fn main() {}
