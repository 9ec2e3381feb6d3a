fn b() {}
fn c() {}
