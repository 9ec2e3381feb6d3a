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

/// Quotes and escapes `s` as a JSON string (RFC 8259, section 7).
fn json_string(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn json_line(path: &str, c: &Counts) -> String {
    format!(
        r#"{{"file":{},"lines":{},"words":{},"chars":{}}}"#,
        json_string(path),
        c.lines,
        c.words,
        c.chars,
    )
}

fn main() -> ExitCode {
    let mut json = false;
    let mut paths: Vec<String> = Vec::new();
    for arg in env::args().skip(1) {
        if arg == "--json" {
            json = true;
        } else {
            paths.push(arg);
        }
    }
    if paths.iter().any(|p| p == "--help") {
        println!("usage: wcount [--json] [FILE]...\n\n  -       reads stdin\n  --json  one JSON object per file");
        return ExitCode::SUCCESS;
    }
    let mut total = Counts::default();
    let mut failed = false;
    for path in &paths {
        match read(path) {
            Ok(text) => {
                let c = Counts::of(&text);
                if json {
                    println!("{}", json_line(path, &c));
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
    if paths.len() > 1 && !json {
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
    fn json_plain() {
        assert_eq!(json_string("a.txt"), "\"a.txt\"");
        assert_eq!(json_string("ö/👋.txt"), "\"ö/👋.txt\"");
    }

    #[test]
    fn json_quotes_and_backslashes() {
        assert_eq!(json_string(r#"a"b\c"#), r#""a\"b\\c""#);
    }

    #[test]
    fn json_control_characters() {
        assert_eq!(json_string("\n\r\t"), r#""\n\r\t""#);
        assert_eq!(json_string("\u{1}\u{1f}"), r#""\u0001\u001f""#);
    }

    #[test]
    fn json_line_is_one_object() {
        let c = Counts { lines: 1, words: 2, chars: 3 };
        assert_eq!(
            json_line("-", &c),
            r#"{"file":"-","lines":1,"words":2,"chars":3}"#
        );
    }
}
