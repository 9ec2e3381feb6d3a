use std::collections::HashMap;

pub fn count<'a>(words: &[&'a str]) -> HashMap<&'a str, usize> {
    let mut seen = HashMap::new();
    for word in words {
        *seen.entry(*word).or_default() += 1;
    }
    seen
}
