//! Behaviour through the program: each test is a story about one run of the binary, with recorded
//! replies served over a real socket. Read `story.rs` first, then `quirks.rs` for its use.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod arguments;
mod budgets;
mod check;
mod client;
mod command_line;
mod compaction;
mod containment;
mod context;
mod control;
mod crashes;
mod cuts;
mod dates;
mod demo;
mod empty_root;
mod events;
mod exchange_rates;
mod executables;
mod exit_codes;
mod faults;
mod files;
mod hostile;
mod images;
mod interactive;
mod json_schema;
mod keys;
mod long_arguments;
mod many;
mod permissions;
mod processes;
mod proxies;
mod quirks;
mod reading;
mod readme;
mod recorded;
mod recordings;
mod requests;
mod retries;
mod scripts;
mod search;
mod server;
mod sessions;
mod single_step;
mod skills;
mod stage;
mod story;
mod streams;
mod talk;
mod text_calls;
mod thinking;
mod tls;
mod turns;
mod untrusted;
mod your_program;
