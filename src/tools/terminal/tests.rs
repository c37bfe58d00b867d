//! What is left on the screen, case by case and against a plain model.

use super::*;

/// Small, so that they are met everywhere.
const MAX_ROWS: usize = 6;
const MAX_BYTES: usize = 200;

fn reduced_in(pieces: impl Iterator<Item = impl AsRef<[u8]>>) -> String {
    let (mut terminal, mut text) = (Terminal::new(MAX_ROWS, MAX_BYTES), String::new());
    for piece in pieces {
        terminal.push(piece.as_ref(), &mut |passed_on| text.push_str(passed_on));
    }
    terminal.finish(&mut |passed_on| text.push_str(passed_on));
    text
}

fn reduced(bytes: impl AsRef<[u8]>) -> String {
    reduced_in([bytes].into_iter())
}

#[track_caller]
fn becomes(cases: &[(&str, &str)]) {
    for (printed, left) in cases {
        assert_eq!(reduced(printed), *left, "{printed:?}");
    }
}

#[test]
fn text_without_control_characters_is_unchanged() {
    let long = "0123456789 ä € \u{1f980}\tend\n".repeat(5000);
    let line = "é".repeat(3 * MAX_BYTES);
    for text in ["", "a", "a\n", "\n\n a \tb\t\n", "naïve €\n\u{1f980}", &long, &line] {
        assert!(reduced(text) == *text, "{} bytes", text.len());
    }
}

#[test]
fn a_line_is_left_as_it_was_last_written() {
    becomes(&[
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("one\r\r\n", "one\n"),
        (" 10%\r 50%\r100%\n", "100%\n"),
        ("100%\rab", "ab0%"),
        ("\r\rab", "ab"),
        ("ab\u{8}\u{8}cde", "cde"),
        ("\u{8}a", "a"),
        // As man pages print bold and underlined letters.
        ("N\u{8}NA\u{8}AM\u{8}M _\u{8}x", "NAM x"),
        ("a long line\r\u{1b}[Kshort\n", "short\n"),
        ("a long line\u{1b}[2K\rshort\n", "short\n"),
        ("a long line\u{1b}[4D\u{1b}[1K\n", "        ine\n"),
        ("abcdef\u{1b}[3G\u{1b}[2Xx\n", "abx ef\n"),
        ("abcdef\u{1b}[3G\u{1b}[99X\n", "ab    \n"),
        ("ab\u{1b}[5Gx\u{1b}[2D\u{1b}[Cy", "ab  y"),
        // Where there is text, a tab moves over it; at its end it is kept.
        ("a\tb\n", "a\tb\n"),
        ("0123456789\ra\tb\n", "a1234567b9\n"),
        ("██░░\r███\n", "███░\n"),
    ]);
}

#[test]
fn rows_above_are_rewritten_and_erased() {
    becomes(&[
        ("one: 1%\ntwo: 1%\n\u{1b}[2Aone: 9%\n\u{1b}[Ktwo: 9%\nend\n", "one: 9%\ntwo: 9%\nend\n"),
        ("one\ntwo\n\u{1b}[Fthree\u{1b}[K\u{1b}[99Efour", "one\nthree\nfour"),
        ("one\ntwo\nthree\n\u{1b}[3A\u{1b}[Jdone\n", "done\n"),
        ("one\ntwo\u{1b}[A\u{1b}[Jdone\n", "onedone\n"),
        ("\u{1b}[5Aone\u{1b}[5B two\n", "one two\n"),
        ("a\n\u{1b}[A\u{1b}[3Gb\n", "a b\n"),
    ]);
    // What has left the rows stays as it is.
    let rows = "row\n".repeat(MAX_ROWS);
    assert_eq!(reduced(format!("{rows}\u{1b}[999A\rxyz")), format!("row\nxyz\n{}", &rows[8..]));
}

#[test]
fn whole_screens_are_told_one_after_the_other() {
    becomes(&[
        ("\u{1b}[H\u{1b}[2J\u{1b}[3Jone\u{1b}[2;1Htwo\u{1b}[H\u{1b}[Jthree\n", "one\ntwo\nthree\n"),
        ("\u{1b}[?1049h\u{1b}[Hone\n\u{1b}[?1049ltwo\n", "one\ntwo\n"),
    ]);
}

#[test]
fn colours_titles_and_other_sequences_are_dropped() {
    becomes(&[
        ("\u{1b}[1;31mred\u{1b}[0m and \u{1b}[38;5;200mpink\u{1b}[m\n", "red and pink\n"),
        ("\u{1b}[38:2::1:2:3mtrue\n", "true\n"),
        ("\u{1b}]0;a title\u{7}text", "text"),
        ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\ text", "link text"),
        ("\u{1b}P1;2|data\u{1b}\\a\u{1b}_data\u{1b}\\b\u{1b}^data\u{1b}\\c\u{1b}Xdata\u{1b}\\d", "abcd"),
        ("\u{1b}(Ba\u{1b}=b\u{1b}7c\u{1b}8d\u{1b}Me\u{1b}cf", "abcdef"),
        ("a\u{0}b\u{7}c\u{b}d\u{c}e\u{e}f\u{7f}g", "abcdefg"),
        ("\u{1b}[?25la\u{1b}[>1ub\u{1b}[!pc\u{1b}[5 qd", "abcd"),
    ]);
}

#[test]
fn what_is_no_sequence_after_all_is_text_again() {
    becomes(&[
        ("\u{1b}[12\nnext", "\nnext"),
        ("\u{1b}[12\u{18}next", "next"),
        ("\u{1b}[1\u{1b}[31mred", "red"),
        ("\u{1b}\u{1b}[31mred", "red"),
        ("\u{1b}[1é", "é"),
        ("\u{1b}é", "é"),
        ("\u{1b}\rnext", "next"),
        // A title that is never ended ends with its line.
        ("\u{1b}]0;never ended\nnext\n", "\nnext\n"),
        ("\u{1b}", ""),
        ("text\u{1b}[", "text"),
        ("text\u{1b}]", "text"),
    ]);
}

#[test]
fn bytes_that_are_not_utf8_are_shown_lossily() {
    for bytes in [&b"a\xffb\xe2\x82"[..], b"\xe2\x82\x1b[mx", b"\xf0\x9f\n\xa6", b"\xc3\xc3\xa9\xff\xfe"] {
        let without_sequences = String::from_utf8_lossy(bytes).replace("\u{1b}[m", "");
        assert_eq!(reduced(bytes), without_sequences);
        assert_eq!(reduced_in(bytes.chunks(1)), without_sequences);
    }
}

#[test]
fn memory_and_output_are_bounded_whatever_comes_in() {
    let endless = [
        "text without an end ",
        "\u{1b}[1;2",
        "1;2",
        "\u{1b}]0;title",
        "title",
        "\n",
        "é\u{8}\u{8}",
        "\u{1b}[999999999999999999999999C\u{1b}[A",
        "\u{1b}[79Gx\n",
        "\u{1b}[99A\u{1b}[99Gxyz\u{1b}[B\u{1b}[K",
        "a\r\t\tb\u{1b}[H",
    ];
    for piece in endless {
        let (mut terminal, mut passed_on) = (Terminal::new(MAX_ROWS, MAX_BYTES), 0);
        for _ in 0..20_000 {
            terminal.push(piece.as_bytes(), &mut |text| passed_on += text.len());
            let held: usize = terminal.rows.iter().map(|row| bytes_of(row.letters.iter()) + 1).sum();
            assert_eq!(held, terminal.bytes + 1, "{piece:?}");
            assert!(held <= MAX_BYTES + 1 && terminal.rows.len() <= MAX_ROWS, "{piece:?}");
            assert!(terminal.unfinished.len() < 4, "{piece:?}");
        }
        terminal.finish(&mut |text| passed_on += text.len());
        assert!(passed_on <= WIDTH * 20_000 * piece.len(), "{piece:?}");
    }
}

/// A row that was long and is erased again and again would hold as much memory as it ever had.
#[test]
fn rows_that_are_erased_give_their_memory_back() {
    let mut terminal = Terminal::new(MAX_ROWS, 100 * MAX_BYTES);
    for _ in 0..MAX_ROWS {
        let row = format!("{}\u{1b}[2K\n", "x".repeat(100 * MAX_BYTES));
        terminal.push(row.as_bytes(), &mut |_| {});
    }
    let memory: usize = terminal.rows.iter().map(|row| 4 * row.letters.capacity()).sum();
    assert!(memory <= 200 * MAX_BYTES, "{memory} bytes");
}

/// Counting a row's characters again for each one that is written or erased took minutes.
#[test]
fn any_column_of_a_long_row_is_found_at_once() {
    const LENGTH: usize = 5000;
    let row = "€".repeat(LENGTH);
    let reduced = |moves: &str| {
        let (mut terminal, mut text) = (Terminal::new(MAX_ROWS, 16 * 1024), String::new());
        let mut pass_on = |passed_on: &str| text.push_str(passed_on);
        terminal.push(format!("{row}{moves}").as_bytes(), &mut pass_on);
        terminal.finish(&mut pass_on);
        text
    };
    let expected: String =
        (0..LENGTH).map(|column| if column % 8 == 0 && column > 0 { 'a' } else { '€' }).collect();
    assert!(reduced(&format!("\r{}\r", "\ta".repeat(LENGTH / 8 - 1)).repeat(40)) == expected);
    let expected = format!("{} {}", "€".repeat(4989), "€".repeat(LENGTH - 4990));
    assert!(reduced(&"\u{1b}[4990G\u{1b}[X".repeat(20_000)) == expected);
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn stream(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let pieces = [3, 10, 30, 300][self.below(4)];
        for _ in 0..pieces {
            match self.below(24) {
                0 => bytes.extend("é€\u{1f980}█".as_bytes()),
                1 => bytes.push(self.below(256) as u8),
                2 => bytes.extend(b"\x1b]0;t\x07\x1b[1;31m"),
                3 => bytes.extend(b"\x1b"),
                4 => bytes.extend(b"\x1b["),
                5..=10 => {
                    let name = b"ABCDEFGHJKXma`f"[self.below(15)];
                    let number = ["", "0", "1", "2", "3", "7", "50", "?2", "2;3"][self.below(9)];
                    bytes.extend(format!("\x1b[{number}{}", char::from(name)).as_bytes());
                }
                11 => bytes.extend("w".repeat(self.below(400)).as_bytes()),
                12 => bytes.extend("é".repeat(self.below(100)).as_bytes()),
                13 => bytes.extend("\n".repeat(self.below(10)).as_bytes()),
                14 => bytes.extend(b"\r"),
                15 => bytes.extend(b"\x08\x08"),
                16 => bytes.extend(b"\t"),
                17 => bytes.extend(b"\r\n"),
                _ => bytes.extend(b"some text"),
            }
        }
        bytes
    }

    fn pieces<'a>(&mut self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let (mut pieces, mut rest) = (Vec::new(), bytes);
        let longest = [1, 3, 50, 1000][self.below(4)];
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(rest.len().min(1 + self.below(longest)));
            pieces.push(piece);
            rest = others;
        }
        pieces
    }
}

#[test]
fn any_split_of_any_stream_gives_what_a_plain_model_gives() {
    let mut dice = Dice(1);
    for round in 0..400 {
        let bytes = dice.stream();
        let expected = model::screen(&bytes);
        let pieces = dice.pieces(&bytes);
        for text in [reduced(&bytes), reduced_in(pieces.iter())] {
            let printed = String::from_utf8_lossy(&bytes);
            assert!(text == expected, "round {round}: {printed:?} became {text:?} instead of {expected:?}");
        }
    }
}

/// The same written as simply as it can be: everything is there at once, a row is a list of characters,
/// and after each step the limits are looked at.
mod model {
    use super::super::WIDTH;
    use super::{MAX_BYTES, MAX_ROWS};

    #[derive(Default)]
    struct Screen {
        passed_on: String,
        rows: Vec<Vec<char>>,
        row: usize,
        column: usize,
    }

    pub fn screen(bytes: &[u8]) -> String {
        let text: Vec<char> = String::from_utf8_lossy(bytes).chars().collect();
        let mut screen = Screen { rows: vec![Vec::new()], ..Screen::default() };
        let mut at = 0;
        while at < text.len() {
            at += screen.step(&text[at..]);
            screen.keep_to_limits();
        }
        let rows: Vec<String> = screen.rows.iter().map(|row| row.iter().collect()).collect();
        screen.passed_on + &rows.join("\n")
    }

    impl Screen {
        /// Does what the beginning of the text says and returns how much of it that was.
        fn step(&mut self, text: &[char]) -> usize {
            match text {
                ['\u{1b}', '[', rest @ ..] => {
                    let length = rest.iter().take_while(|letter| (' '..='?').contains(*letter)).count();
                    let Some(name) = rest.get(length).filter(|name| ('@'..='~').contains(*name)) else {
                        return 2 + length;
                    };
                    let words: String = rest[..length].iter().collect();
                    if words.chars().all(|letter| letter.is_ascii_digit() || ";:".contains(letter)) {
                        let first = words.split([';', ':']).next().unwrap();
                        self.obey(*name, first.parse().unwrap_or(0));
                    }
                    3 + length
                }
                ['\u{1b}', ']' | 'P' | 'X' | '^' | '_', rest @ ..] => {
                    let ends = ['\u{7}', '\u{18}', '\u{1a}', '\u{1b}', '\n'];
                    let end = rest.iter().position(|letter| ends.contains(letter));
                    let is_part = end.is_some_and(|end| !['\u{1b}', '\n'].contains(&rest[end]));
                    2 + end.unwrap_or(rest.len()) + usize::from(is_part)
                }
                ['\u{1b}', rest @ ..] => {
                    let length = rest.iter().take_while(|letter| (' '..='/').contains(*letter)).count();
                    let has_name = rest.get(length).is_some_and(|name| ('0'..='~').contains(name));
                    1 + length + usize::from(has_name)
                }
                [letter, ..] => {
                    self.letter(*letter);
                    1
                }
                [] => 0,
            }
        }

        fn letter(&mut self, letter: char) {
            let row = &mut self.rows[self.row];
            match letter {
                '\r' => self.column = 0,
                '\n' => self.end_line(),
                '\u{8}' => self.column = self.column.saturating_sub(1),
                '\t' if self.column != row.len() => self.move_to(self.row, self.column / 8 * 8 + 8),
                letter if letter < ' ' && letter != '\t' || letter == '\u{7f}' => {}
                letter => {
                    while row.len() <= self.column {
                        row.push(' ');
                    }
                    row[self.column] = letter;
                    self.column += 1;
                }
            }
        }

        fn end_line(&mut self) {
            (self.row, self.column) = (self.row + 1, 0);
            if self.row == self.rows.len() {
                self.rows.push(Vec::new());
            }
        }

        fn obey(&mut self, name: char, number: usize) {
            let count = number.max(1);
            let (row, column) = (self.row, self.column);
            let length = self.rows[row].len();
            match (name, number) {
                ('A', _) => self.move_to(row.saturating_sub(count), column),
                ('B', _) => self.move_to(row + count, column),
                ('C' | 'a', _) => self.move_to(row, column + count),
                ('D', _) => self.move_to(row, column.saturating_sub(count)),
                ('E', _) => self.move_to(row + count, 0),
                ('F', _) => self.move_to(row.saturating_sub(count), 0),
                ('G' | '`', _) => self.move_to(row, count - 1),
                ('H' | 'f', _) => {
                    self.move_to(self.rows.len() - 1, 0);
                    if !self.rows[self.row].is_empty() {
                        self.end_line();
                    }
                }
                ('J', 0) => {
                    self.rows.truncate(row + 1);
                    self.rows[row].truncate(column);
                }
                ('K', 0) => self.rows[row].truncate(column),
                ('K', 1) => self.rows[row][..length.min(column + 1)].fill(' '),
                ('K', 2) => self.rows[row].clear(),
                ('X', _) => self.rows[row][column.min(length)..length.min(column + count)].fill(' '),
                _ => {}
            }
        }

        fn move_to(&mut self, row: usize, column: usize) {
            self.row = row.min(self.rows.len() - 1);
            self.column = column.min(self.rows[self.row].len().max(WIDTH - 1));
        }

        fn keep_to_limits(&mut self) {
            let size = |rows: &[Vec<char>]| -> usize {
                rows.iter().flatten().map(|letter| letter.len_utf8()).sum::<usize>() + rows.len() - 1
            };
            while self.rows.len() > MAX_ROWS || size(&self.rows) > MAX_BYTES {
                if self.rows.len() <= MAX_ROWS && !self.rows[0].is_empty() {
                    self.passed_on.push(self.rows[0].remove(0));
                    if self.row == 0 {
                        self.column = self.column.saturating_sub(1);
                    }
                    continue;
                }
                self.passed_on.extend(self.rows.remove(0));
                self.passed_on.push('\n');
                self.row = self.row.saturating_sub(1);
            }
        }
    }
}
