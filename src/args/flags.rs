//! The table of flags, and the names of those that are not in it but known.
//!
//! It says what there is, and reads and prints nothing.

/// One flag, as the parser, the help, the man page and the completions know it.
pub struct Flag {
    /// The heading it stands under.
    pub group: &'static str,
    /// Its letters, each with one dash; empty for none.
    pub short: &'static str,
    /// Its name with two dashes.
    pub long: &'static str,
    /// What its value is called; empty for a switch.
    pub value: &'static str,
    /// What it does.
    pub help: &'static str,
}

const fn flag(
    group: &'static str,
    short: &'static str,
    long: &'static str,
    value: &'static str,
    help: &'static str,
) -> Flag {
    Flag { group, short, long, value, help }
}

/// Every flag there is.
pub const FLAGS: &[Flag] = &[
    flag("Prompt", "p", "print", "", "answer once and exit, also on a terminal"),
    flag("Prompt", "f", "prompt-file", "FILE", "read the prompt from FILE; a first line `#!…` is skipped"),
    flag("Prompt", "n", "no-stdin", "", "do not read standard input"),
    flag(
        "Prompt",
        "",
        "input-format",
        "FORMAT",
        "text, or stream-json: messages as JSON lines on standard input, each a turn",
    ),
    flag(
        "Prompt",
        "",
        "replay-user-messages",
        "",
        "repeat each of these messages on stdout as its turn begins",
    ),
    flag("Prompt", "", "system-prompt", "TEXT", "use TEXT in place of the built-in system prompt"),
    flag("Prompt", "", "system-prompt-file", "FILE", "the same, from FILE"),
    flag("Prompt", "", "append-system-prompt", "TEXT", "add TEXT to the system prompt"),
    flag("Prompt", "", "append-system-prompt-file", "FILE", "the same, from FILE"),
    flag("Prompt", "", "bare", "", "read no context files and no skills"),
    flag(
        "Prompt",
        "",
        "setting-sources",
        "LIST",
        "whose context files and skills are read: user, project, local (default all)",
    ),
    flag(
        "Prompt",
        "",
        "disable-slash-commands",
        "",
        "use no skills: a prompt that begins with /name is text",
    ),
    flag("Prompt", "C", "directory", "DIR", "run in DIR"),
    flag("Prompt", "", "dry-run", "", "print the first request's body and stop"),
    flag("Model", "", "model", "NAME", "which model to ask (else COTTER_MODEL, else the API's default)"),
    flag(
        "Model",
        "",
        "fallback-model",
        "NAMES",
        "which models to ask from then on when the first stays overloaded",
    ),
    flag("Model", "", "api", "NAME", "which protocol to speak: openai or anthropic"),
    flag(
        "Model",
        "",
        "base-url",
        "URL",
        "where the API is, up to but without /chat/completions or /v1/messages",
    ),
    flag("Model", "", "api-key-file", "FILE", "read the key from FILE"),
    flag("Model", "", "header", "'NAME: VALUE'", "send this header with every request (repeatable)"),
    flag("Model", "", "betas", "NAMES", "beta features to ask Anthropic's API for, with commas (repeatable)"),
    flag("Model", "", "max-output-tokens", "N", "limit each reply to N tokens"),
    flag("Model", "", "context-window", "N", "the model reads N tokens; make room before that is too little"),
    flag("Model", "", "no-compaction", "", "end with code 4 rather than make a long conversation shorter"),
    flag("Model", "", "temperature", "X", "sampling temperature, 0 to 2 (else the model's own)"),
    flag("Model", "", "stop", "TEXT", "end a reply at TEXT (repeatable, at most 4)"),
    flag("Model", "", "effort", "LEVEL", "how much an answer is worth: low, medium, high, xhigh, max …"),
    flag("Model", "", "thinking", "MODE", "adaptive, enabled or disabled (else the model's own way)"),
    flag("Model", "", "max-thinking-tokens", "N", "think for at most N tokens a reply; 0 for not at all"),
    flag("Model", "", "thinking-display", "FORM", "what Anthropic shows of it: summarized or omitted"),
    flag("Model", "", "cacert", "FILE", "trust the certificates in FILE (PEM) in place of the built-in ones"),
    flag(
        "Model",
        "",
        "idle-timeout",
        "SECS",
        "give up a connection silent for SECS (default 120; 600 on loopback)",
    ),
    flag(
        "Model",
        "",
        "max-retries",
        "N",
        "ask again at most N times after overload or a broken connection (4)",
    ),
    flag(
        "Model",
        "",
        "text-tool-calls",
        "WHEN",
        "run calls printed as text: on or off (default: on only on loopback)",
    ),
    flag("Tools", "", "tools", "LIST", "which tools the model has: names, \"\" for none, default for all"),
    flag(
        "Tools",
        "",
        "tool",
        "FILE",
        "let the model run this program, described by FILE.json or FILE --schema",
    ),
    flag("Tools", "", "tool-dir", "DIR", "the same for each program in DIR"),
    flag(
        "Tools",
        "",
        "allowedTools",
        "RULES",
        "write and run by these alone: \"Edit(src/**),Bash(git log:*)\"",
    ),
    flag("Tools", "", "disallowedTools", "RULES", "forbid these calls; a tool's name alone takes it away"),
    flag("Tools", "", "list-tools", "", "print the tools and their schemas as JSON lines"),
    flag(
        "Containment",
        "",
        "sandbox",
        "MODE",
        "where tools write: workspace-write (default), read-only, or off",
    ),
    flag("Containment", "", "allow-net", "", "let tools use the network"),
    flag(
        "Containment",
        "",
        "add-dir",
        "DIR",
        "let tools write in DIR too (repeatable; `.` means the current folder)",
    ),
    flag(
        "Containment",
        "",
        "pass-env",
        "NAME",
        "pass NAME to tools though it looks like a credential (repeatable)",
    ),
    flag(
        "Containment",
        "",
        "permission-mode",
        "MODE",
        "default, acceptEdits, plan (change nothing), dontAsk, bypassPermissions",
    ),
    flag(
        "Containment",
        "",
        "permission-prompt-tool",
        "stdio",
        "ask the client of --input-format stream-json about calls that no rule allows",
    ),
    flag(
        "Containment",
        "",
        "dangerously-skip-permissions",
        "",
        "allow all calls, with no sandbox unless --sandbox is given",
    ),
    flag("Output", "o", "output", "FILE", "write the answer to FILE, complete or not at all"),
    flag("Output", "", "output-format", "FORMAT", "text, json, or stream-json"),
    flag(
        "Output",
        "",
        "json-schema",
        "SCHEMA|@FILE",
        "answer in JSON that fits this JSON Schema, or end with code 8",
    ),
    flag("Output", "", "include-partial-messages", "", "stream-json: tell replies while they grow, too"),
    flag("Output", "", "verbose", "", "one line on stderr for each request and each call"),
    flag(
        "Output",
        "q",
        "quiet",
        "",
        "nothing on stderr but errors, a wait for input, and news of the sandbox",
    ),
    flag("Limits", "", "max-turns", "N", "end with code 20 rather than ask the model an N+1st time"),
    flag("Limits", "", "max-tool-calls", "N", "end with code 21 rather than run an N+1st call of a tool"),
    flag("Limits", "", "max-total-tokens", "N", "end with code 22 once N tokens are used, read and written"),
    flag("Limits", "", "max-budget-usd", "X", "end with code 23 once X dollars are spent, or none can tell"),
    flag("Limits", "", "timeout", "SECS", "end with code 24 after SECS, such as 90 or 0.5"),
    flag(
        "Limits",
        "",
        "price",
        "PRICES",
        "dollars per million tokens: IN,OUT or IN,OUT,CACHE_READ,CACHE_WRITE",
    ),
    flag("Sessions", "c", "continue", "", "go on with the last session of this folder"),
    flag("Sessions", "r", "resume", "ID", "go on with this session; the beginning of an id will do"),
    flag("Sessions", "", "session-id", "UUID", "keep the conversation under this id, which must be new"),
    flag("Sessions", "", "fork-session", "", "with -c or -r: go on with a copy under an id of its own"),
    flag("Sessions", "", "no-session-persistence", "", "do not write to a session file"),
    flag("Recording", "", "record", "DIR", "write every exchange with the API to DIR"),
    flag("Recording", "", "replay", "DIR", "answer requests from DIR, offline and without a key"),
    flag(
        "Recording",
        "",
        "replay-strict",
        "",
        "with --replay: the whole request must equal the recorded one",
    ),
    flag(
        "Other",
        "",
        "single-step",
        "",
        "one request; run the first call it asks for and print its raw result",
    ),
    flag("Other", "", "completions", "SHELL", "print completions for bash, zsh or fish"),
    flag("Other", "", "man", "", "print the manual page (try: cotter --man | man -l -)"),
    flag("Other", "h", "help", "", "print this help"),
    flag("Other", "vV", "version", "", "print the version"),
];

/// Flags of `claude` that cannot change what was asked for here: accepted, and named by `--verbose`.
pub const ACCEPTED: &[&str] = &["ide", "no-chrome", "strict-mcp-config"];

/// Other spellings of flags.
pub const SPELLINGS: &[(&str, &str)] =
    &[("allowed-tools", "allowedTools"), ("disallowed-tools", "disallowedTools"), ("safe-mode", "bare")];

/// Flags that would change what was asked for and are not there: refused, with the nearest way.
pub const REFUSED: &[(&str, &str)] = &[
    ("agent", "put the agent's instructions into --append-system-prompt-file"),
    ("agents", "put the agent's instructions into --append-system-prompt-file"),
    ("mcp-config", NOT_YET),
    ("plugin-dir", "there are no plugins"),
    ("settings", "no settings files are read; put flags into the file named by COTTER_CONFIG"),
];

const NOT_YET: &str = "it is not in this version";

/// The flags of `cotter sandbox`.
pub const SANDBOX_FLAGS: [&str; 6] = ["sandbox", "allow-net", "add-dir", "pass-env", "directory", "help"];

/// The groups in the order of the table.
pub fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&str> = FLAGS.iter().map(|flag| flag.group).collect();
    groups.dedup();
    groups
}

impl Flag {
    /// All spellings with the value, as help and manual show them: `-o, --output FILE`.
    pub fn spellings(&self) -> String {
        let spellings = dashed(self).join(", ");
        if self.value.is_empty() { spellings } else { format!("{spellings} {}", self.value) }
    }
}

/// All spellings of a flag without its value: `-o`, `--output`.
pub fn dashed(flag: &Flag) -> Vec<String> {
    let letters = flag.short.chars().map(|letter| format!("-{letter}"));
    letters.chain([format!("--{}", flag.long)]).collect()
}
