//! The completions that shells are given, made from the table of flags.

use super::flags::{FLAGS, Flag, dashed};

/// Completions for a shell.
pub fn completions(shell: &str) -> String {
    match shell {
        "bash" => bash_completions(),
        "zsh" => zsh_completions(),
        _ => fish_completions(),
    }
}

fn bash_completions() -> String {
    let words: Vec<String> = FLAGS.iter().flat_map(dashed).collect();
    let mut script = String::from(
        "_cotter() {\n  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n  case $before in\n",
    );
    for flag in FLAGS {
        let way = match (flag.value, choices(flag)) {
            (_, Some(choice)) => format!("-W \"{choice}\""),
            ("DIR", None) => "-d".to_owned(),
            ("FILE", None) => "-f".to_owned(),
            _ => continue,
        };
        script.push_str(&format!(
            "    {}) COMPREPLY=($(compgen {way} -- \"$word\")); return ;;\n",
            dashed(flag).join("|")
        ));
    }
    script.push_str(&format!(
        "  esac\n  case $word in\n    -*) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")) ;;\n",
        words.join(" ")
    ));
    script.push_str("    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n");
    script.push_str("  esac\n}\ncomplete -o filenames -F _cotter cotter\n");
    script
}

fn zsh_completions() -> String {
    let mut script = String::from("#compdef cotter\n_arguments -s \\\n");
    for flag in FLAGS {
        let help = flag.help.replace('\'', "").replace('[', "(").replace(']', ")").replace(':', ";");
        let value = match (flag.value, choices(flag)) {
            ("", _) => String::new(),
            (_, Some(choice)) => format!(":value:({choice})"),
            ("FILE", None) => ":file:_files".to_owned(),
            ("DIR", None) => ":folder:_files -/".to_owned(),
            _ => ":value: ".to_owned(),
        };
        for spelling in dashed(flag) {
            script.push_str(&format!("  '*{spelling}[{help}]{value}' \\\n"));
        }
    }
    script.push_str("  '*:prompt:_files'\n");
    script
}

fn fish_completions() -> String {
    let mut script = String::new();
    for flag in FLAGS {
        let letters: String = flag.short.chars().map(|letter| format!(" -s {letter}")).collect();
        let value = match (flag.value, choices(flag)) {
            ("", _) => String::new(),
            (_, Some(choice)) => format!(" -x -a '{choice}'"),
            ("FILE" | "DIR", None) => " -r -F".to_owned(),
            _ => " -x".to_owned(),
        };
        let help = flag.help.replace('\'', "\\'");
        script.push_str(&format!("complete -c cotter{letters} -l {}{value} -d '{help}'\n", flag.long));
    }
    script
}

const VALUE_CHOICES: &[(&str, &str)] = &[
    ("api", "openai anthropic"),
    ("output-format", "text json stream-json"),
    ("sandbox", "workspace-write read-only off"),
    ("completions", "bash zsh fish"),
    ("permission-mode", "default acceptEdits plan dontAsk bypassPermissions"),
];

fn choices(flag: &Flag) -> Option<String> {
    if flag.long == "tools" {
        let names: Vec<&str> = crate::tools::all().iter().map(|spec| spec.name).collect();
        return Some(names.join(" "));
    }
    VALUE_CHOICES.iter().find(|(name, _)| *name == flag.long).map(|(_, choice)| (*choice).to_owned())
}
