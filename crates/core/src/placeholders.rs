//! Placeholders in the sentences of a conclusion: `{kind:ARM|REFERENCE}`. This file knows their
//! form; what stands in their place is for [`crate::conclusion`] to say.

/// The kinds of placeholders.
pub const KINDS: &[&str] = &["fast", "fast-settled", "space", "factor"];

/// Checks that sentences can be filled in.
///
/// # Errors
/// Names the placeholder that cannot.
pub fn check(sentences: &[String], is_arm: &dyn Fn(&str) -> bool) -> Result<(), String> {
    for sentence in sentences {
        fill(sentence, &mut |kind, arm, reference| {
            if !KINDS.contains(&kind) {
                return Err(format!("conclusion: there is no placeholder `{kind}`"));
            }
            match [arm, reference].into_iter().find(|name| !is_arm(name)) {
                Some(name) => Err(format!("conclusion: there is no arm `{name}`")),
                None => Ok(String::new()),
            }
        })?;
    }
    Ok(())
}

/// Replaces every `{kind:arm|reference}` by what `with` makes of it.
///
/// # Errors
/// A placeholder that has no such form, or what `with` says of one.
pub fn fill(
    sentence: &str,
    with: &mut dyn FnMut(&str, &str, &str) -> Result<String, String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let bad = || format!("conclusion: `{{{after}` is no placeholder");
        let (inside, after) = after.split_once('}').ok_or_else(bad)?;
        let (kind, names) = inside.split_once(':').ok_or_else(bad)?;
        let (arm, reference) = names.split_once('|').ok_or_else(bad)?;
        filled.push_str(&with(kind, arm, reference)?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_and_bad_ones_are_named() {
        let mut seen = Vec::new();
        let filled = fill(
            "a {fast:b|c} d {factor:e|f}.",
            &mut |kind, arm, reference| {
                seen.push(format!("{kind} {arm} {reference}"));
                Ok("X".to_owned())
            },
        );
        assert_eq!(filled.as_deref(), Ok("a X d X."));
        assert_eq!(seen, ["fast b c", "factor e f"]);
        assert!(fill("{fast b}", &mut |_, _, _| Ok(String::new())).is_err());
        assert!(fill("{fast:b|c", &mut |_, _, _| Ok(String::new())).is_err());
    }
}
