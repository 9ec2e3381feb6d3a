use std::collections::HashMap;

pub fn count<'a>(words: &[&'a str]) -> HashMap<&'a str, usize> {
    let mut seen = HashMap::new();
    for word in words {
        *seen.entry(*word).or_insert(0) += 1;
    }
    seen
}
