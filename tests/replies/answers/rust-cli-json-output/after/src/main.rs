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

/// The text as a JSON string, with its quotes.
fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0c}' => out.push_str("\\f"),
            c if c < ' ' || c == '\u{7f}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// One file's counts as a JSON object on one line.
fn json_object(path: &str, c: &Counts) -> String {
    format!(
        "{{\"file\":{},\"lines\":{},\"words\":{},\"chars\":{}}}",
        json_string(path),
        c.lines,
        c.words,
        c.chars
    )
}

fn main() -> ExitCode {
    let mut paths: Vec<String> = env::args().skip(1).collect();
    if paths.iter().any(|p| p == "--help") {
        println!("usage: wcount [--json] [FILE]...\n\n  -       reads stdin\n  --json  prints one JSON object per file");
        return ExitCode::SUCCESS;
    }
    let json = paths.iter().any(|p| p == "--json");
    paths.retain(|p| p != "--json");
    let mut total = Counts::default();
    let mut failed = false;
    for path in &paths {
        match read(path) {
            Ok(text) => {
                let c = Counts::of(&text);
                if json {
                    println!("{}", json_object(path, &c));
                } else {
                    println!("{:>8}{:>8}{:>8} {path}", c.lines, c.words, c.chars);
                }
                total += &c;
            }
            Err(e) => {
                eprintln!("wcount: {path}: {e}");
                failed = true;
            }
        }
    }
    if !json && paths.len() > 1 {
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

    #[test]
    fn json_leaves_plain_text_alone() {
        assert_eq!(json_string("src/main.rs"), r#""src/main.rs""#);
        assert_eq!(json_string(""), r#""""#);
        assert_eq!(json_string("Grüße 👋/x"), r#""Grüße 👋/x""#);
    }

    #[test]
    fn json_escapes_quotes_and_backslashes() {
        assert_eq!(json_string(r#"a"b"#), r#""a\"b""#);
        assert_eq!(json_string(r"C:\new\t.txt"), r#""C:\\new\\t.txt""#);
    }

    #[test]
    fn json_escapes_control_characters() {
        assert_eq!(json_string("a\nb\rc\td"), r#""a\nb\rc\td""#);
        assert_eq!(json_string("\u{08}\u{0c}"), r#""\b\f""#);
        assert_eq!(json_string("\0\u{1b}\u{7f}"), r#""\u0000\u001b\u007f""#);
    }

    #[test]
    fn json_object_has_all_counts() {
        let c = Counts { lines: 1, words: 2, chars: 3 };
        assert_eq!(json_object("-", &c), r#"{"file":"-","lines":1,"words":2,"chars":3}"#);
    }
}
