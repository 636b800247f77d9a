//! Words on the command line in kvtest's own style: a verb, what it works on, then options with
//! one dash or two. What an option means is left to the verbs.

use std::ffi::OsString;
use std::path::PathBuf;

use sqlitmus_core::names::nearest;
use sqlitmus_core::units::parse_kvtest_integer;

use crate::failure::Failure;

/// A verb as far as its words go.
pub(super) struct Grammar {
    /// Its name.
    pub(super) verb: &'static str,
    /// Names of what it works on, in order, all of them required.
    pub(super) paths: &'static [&'static str],
    /// Options that stand alone, without dashes.
    pub(super) flags: &'static [&'static str],
    /// Options that take a value, without dashes.
    pub(super) values: &'static [&'static str],
}

/// The words of one call, checked against a grammar.
pub(super) struct Words {
    verb: &'static str,
    paths: Vec<PathBuf>,
    /// In the order given: of several, the last counts.
    options: Vec<(&'static str, String)>,
}

impl Grammar {
    /// Sorts the words that follow the verb.
    ///
    /// # Errors
    /// An unknown option, a missing value, too many or too few paths.
    pub(super) fn read(&self, words: &[OsString]) -> Result<Words, Failure> {
        let mut read = Words {
            verb: self.verb,
            paths: Vec::new(),
            options: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            let Some(option) = text.strip_prefix('-') else {
                if read.paths.len() == self.paths.len() {
                    return Err(self.superfluous(&text));
                }
                read.paths.push(PathBuf::from(word));
                continue;
            };
            let option = option.strip_prefix('-').unwrap_or(option);
            let (name, attached) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            if let Some(flag) = self.flags.iter().find(|flag| **flag == name) {
                if attached.is_some() {
                    return Err(self.error(format!("--{flag} takes no value")));
                }
                read.options.push((flag, String::new()));
                continue;
            }
            let Some(known) = self.values.iter().find(|known| **known == name) else {
                return Err(self.unknown(&text, name));
            };
            let following = || words.next().map(|word| word.to_string_lossy().into_owned());
            let value = attached.or_else(following);
            let value = value.ok_or_else(|| self.error(format!("--{known} needs a value")))?;
            read.options.push((known, value));
        }
        match self.paths.get(read.paths.len()) {
            Some(missing) => Err(self.error(format!("{missing} is missing"))),
            None => Ok(read),
        }
    }

    fn error(&self, message: String) -> Failure {
        let verb = self.verb;
        let paths = self.paths.join(" ");
        Failure::bad_input(
            format!("kvtest {verb}: {message}"),
            format!(
                "write: sqlitmus kvtest {verb} {paths} [options]; \
                 all options: sqlitmus kvtest {verb} --help"
            ),
        )
    }

    fn unknown(&self, text: &str, name: &str) -> Failure {
        let verb = self.verb;
        let known = self.flags.iter().chain(self.values).copied();
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean --{near}?"),
            None => format!("all options: sqlitmus kvtest {verb} --help"),
        };
        Failure::bad_input(format!("kvtest {verb} has no option {text}"), hint)
    }

    fn superfluous(&self, text: &str) -> Failure {
        self.error(format!("`{text}` is one word too many"))
    }
}

impl Words {
    /// One of the paths, counted from 0 in the grammar's order.
    pub(super) fn path(&self, index: usize) -> PathBuf {
        self.paths.get(index).cloned().unwrap_or_default()
    }

    /// Whether an option that stands alone was given.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.options.iter().any(|(name, _)| *name == flag)
    }

    /// Which of these options was given last.
    pub(super) fn last_of(&self, flags: &[&'static str]) -> Option<&'static str> {
        let given = self.options.iter().rev();
        given
            .map(|(name, _)| *name)
            .find(|name| flags.contains(name))
    }

    /// Value of an option, as text.
    pub(super) fn text(&self, option: &str) -> Option<&str> {
        let given = self.options.iter().rev();
        given
            .filter(|(name, _)| *name == option)
            .map(|(_, value)| value.as_str())
            .next()
    }

    /// Value of an option that is a number in kvtest's spelling.
    ///
    /// # Errors
    /// It is no number, or one that does not fit in 64 bits.
    pub(super) fn integer(&self, option: &str) -> Result<Option<i64>, Failure> {
        let Some(text) = self.text(option) else {
            return Ok(None);
        };
        parse_kvtest_integer(text).map(Some).map_err(|error| {
            Failure::bad_input(
                format!("kvtest {}: --{option}: {error}", self.verb),
                format!("write a number such as 1000, 0x100, 10K or 4KiB: --{option} 1000"),
            )
        })
    }

    /// Value of an option that is a number from 1 on.
    ///
    /// # Errors
    /// As [`Words::integer`], or the number is below 1.
    pub(super) fn positive(&self, option: &str, default: u64) -> Result<u64, Failure> {
        let Some(value) = self.integer(option)? else {
            return Ok(default);
        };
        match u64::try_from(value) {
            Ok(value) if value > 0 => Ok(value),
            _ => Err(Failure::bad_input(
                format!(
                    "kvtest {}: --{option} must be at least 1, not {value}",
                    self.verb
                ),
                format!("leave --{option} out for {default}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::ExitCode;

    const GRAMMAR: Grammar = Grammar {
        verb: "run",
        paths: &["DBFILE"],
        flags: &["asc", "blob-api", "random"],
        values: &["cache-size", "count"],
    };

    fn read(words: &[&str]) -> Result<Words, Failure> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        GRAMMAR.read(&words)
    }

    #[test]
    fn one_dash_or_two_and_the_last_counts() {
        let words = read(&["x.db", "-count", "5", "--count", "10k", "--random", "-asc"]);
        let words = words.expect("valid");
        assert_eq!(words.path(0), PathBuf::from("x.db"));
        assert_eq!(words.positive("count", 1).expect("number"), 10_000);
        assert_eq!(words.last_of(&["asc", "random"]), Some("asc"));
        assert!(words.has("random") && !words.has("blob-api"));
        assert_eq!(words.positive("cache-size", 7).expect("default"), 7);
    }

    #[test]
    fn numbers_may_be_negative_hexadecimal_or_attached() {
        let words = read(&["x.db", "--cache-size", "-4kib"]).expect("valid");
        assert_eq!(words.integer("cache-size").expect("number"), Some(-4096));
        let words = read(&["x.db", "--count=0x10"]).expect("valid");
        assert_eq!(words.positive("count", 1).expect("number"), 16);
    }

    #[test]
    fn what_is_wrong_is_told_with_a_hint() {
        let told = |words: &[&str]| {
            let error = read(words).err().expect("wrong");
            assert_eq!(error.code, ExitCode::BadInput);
            format!("{error}; {}", error.hint)
        };
        assert!(told(&["x.db", "--cuont", "5"]).contains("did you mean --count?"));
        assert!(told(&["x.db", "--count"]).contains("--count needs a value"));
        assert!(told(&["x.db", "y.db"]).contains("`y.db` is one word too many"));
        assert!(told(&[]).contains("DBFILE is missing"));
        assert!(told(&["x.db", "--asc=1"]).contains("takes no value"));
        let words = read(&["x.db", "--count", "0"]).expect("words are right");
        assert!(words.positive("count", 1).is_err());
        let words = read(&["x.db", "--count", "12X"]).expect("words are right");
        assert!(words.positive("count", 1).is_err());
    }
}
