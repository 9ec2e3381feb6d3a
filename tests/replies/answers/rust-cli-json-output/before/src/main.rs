use std::{env, fs, io, process::ExitCode};

#[derive(Debug, Default, PartialEq)]
struct Counts {
    lines: usize,
    words: usize,
    chars: usize,
}

impl Counts {
    fn of(text: &str) -> Self {
        Counts {
            lines: text.matches('\n').count(),
            words: text.split_whitespace().count(),
            chars: text.chars().count(),
        }
    }
}

impl std::ops::AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        self.lines += other.lines;
        self.words += other.words;
        self.chars += other.chars;
    }
}

fn read(path: &str) -> io::Result<String> {
    if path == "-" {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(path)
    }
}

fn main() -> ExitCode {
    let paths: Vec<String> = env::args().skip(1).collect();
    if paths.iter().any(|p| p == "--help") {
        println!("usage: wcount [FILE]...\n\n  -  reads stdin");
        return ExitCode::SUCCESS;
    }
    let mut total = Counts::default();
    let mut failed = false;
    for path in &paths {
        match read(path) {
            Ok(text) => {
                let c = Counts::of(&text);
                println!("{:>8}{:>8}{:>8} {path}", c.lines, c.words, c.chars);
                total += &c;
            }
            Err(e) => {
                eprintln!("wcount: {path}: {e}");
                failed = true;
            }
        }
    }
    if paths.len() > 1 {
        println!("{:>8}{:>8}{:>8} total", total.lines, total.words, total.chars);
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(Counts::of("a b\nö\n"), Counts { lines: 2, words: 3, chars: 6 });
    }
}
