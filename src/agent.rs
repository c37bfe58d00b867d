//! The loop: ask, run the calls of the reply, send their results, ask again, until there is an answer.
//!
//! Why a reply ended is looked at before what it holds, and a reply that was cut never has a call run. One reply is
//! asked for in `asking.rs`, where the limits are looked at first; its calls are run in `calls.rs`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::alarm::Alarm;
use crate::answer::{self, FinalAnswer};
use crate::budget::Budget;
use crate::config::{Config, Instructions, ModelNames, SkillRules, TextCalls};
use crate::conversation::{Call, Conversation, Message, Part, Parts, holds_call, texts};
use crate::error::Error;
use crate::http::Http;
use crate::http::net::Client;
use crate::http::recording::Recorder;
use crate::image_limits;
use crate::output::{Output, Said, Start, Summary};
use crate::provider::{self, Reply, Settings, Stop, Wire, thinking};
use crate::sandbox::permissions::{self, Mode};
use crate::session::{self, Begun, Session, Unkept};
use crate::skills::Skills;
use crate::skills::opening::Opening;
use crate::tools::Workspace;
use crate::tools::toolbox::Toolbox;

mod answers;
mod asking;
mod attempt;
mod calls;
mod client;
mod compaction;
mod model;
mod single_step;
mod skills;

use compaction::Room;
use model::only_model;

/// How often in a row a reply may be cut in the middle of its calls before the run ends.
const MOST_CUTS: u32 = 3;
/// How often in a row a server-side tool loop is continued.
const MOST_PAUSES: u32 = 10;

/// What is said to a model whose reply was empty.
const NUDGE: &str = "Your last message was empty. Go on, or give your answer.";
/// What is said to a model that failed to write a call.
const BOTCHED_NUDGE: &str =
    "Your last message tried to call a tool in a form that could not be read. Write the call anew.";

/// One run.
pub struct Agent {
    settings: Settings,
    url: String,
    /// Where the server lists its models.
    models_url: String,
    headers: Vec<(String, String)>,
    http: Http,
    toolbox: Toolbox,
    permission_mode: Mode,
    /// The variable or flag that the key comes from.
    key_source: &'static str,
    wire: Wire,
    conversation: Conversation,
    /// The answer that has a schema, or the way there.
    answer: Option<FinalAnswer>,
    images: image_limits::Held,
    /// Whether a conversation that is too long is made shorter.
    compacts: bool,
    room: Room,
    text_calls: TextCalls,
    /// The models that are left to be asked when this one stays overloaded.
    fallback_models: VecDeque<String>,
    budget: Budget,
    /// When the turn of the user's began, and what came of it since.
    begun: Instant,
    denied_before: usize,
    stop_reason: Option<&'static str>,
    /// The time that requests took in the whole run.
    api_time: Duration,
    /// The text of the last reply, kept for the summary of a run that fails.
    text: String,
    session_id: String,
    session: Option<Session>,
    instructions: Instructions,
    skills: Skills,
    skill_rules: SkillRules,
    /// Whether the conversation is one within the run's: a skill has it, nobody sees it and no file keeps it.
    is_apart: bool,
    /// What ends the run's waiting, and whose letters are heeded.
    alarm: Alarm,
    /// The model of the start.
    first_model: String,
    model_names: ModelNames,
}

impl Agent {
    /// A run that is about to begin, as part of this session.
    ///
    /// # Errors
    ///
    /// What keeps it from beginning: a folder that cannot be recorded into, no model to ask, or a session that
    /// cannot be kept though it was asked for.
    pub fn new(config: Config, start: session::Start, output: &mut Output) -> Result<Agent, Error> {
        let mut settings = config.settings;
        let permission_mode = config.permissions.mode;
        let mut toolbox = Toolbox::new(
            settings.tools.clone(),
            config.setup,
            config.now,
            config.rates_url,
            config.permissions,
        );
        toolbox.obey(config.alarm.clone());
        // Before any program of the user's runs, which could put something else in the place of the folder.
        let recorder = match &config.record {
            Some(folder) => {
                Some(Recorder::create(folder, settings.api, &config.host_name, config.secrets.clone())?)
            }
            None => None,
        };
        toolbox.add(config.executables)?;
        toolbox.name_places(config.skills.places.clone());
        settings.tools = toolbox.offered().to_vec();
        if config.answer_schema.is_some() && toolbox.has_executable(answer::TOOL) {
            return Err(Error::Usage(format!(
                "a tool may not be called \"{}\" beside --json-schema: that one takes the answer",
                answer::TOOL
            )));
        }
        let client = Client::new(config.network);
        let mut http = Http::new(client, recorder, config.replay, config.max_retries, config.loopback);
        let models_url = provider::models_endpoint(settings.api, &config.base_url);
        settings.learnt.window = http.recorded_window();
        if settings.model.is_empty() {
            let headers = [provider::headers(&settings), config.headers.clone()].concat();
            (settings.model, settings.learnt.window) = only_model(&mut http, &models_url, &headers)?;
            http.record_window(settings.learnt.window);
            output.detail(&format!("the server has one model: {}", settings.model));
        }
        // Which form it has depends on the model.
        settings.answer =
            config.answer_schema.as_ref().map(|schema| provider::answer_form::form(&settings, schema));
        settings.system = system_prompt(&config.instructions, &settings);
        let mut headers = provider::headers(&settings);
        // Who names a header of the protocol's own means the value to hold.
        headers.retain(|(name, _)| !config.headers.iter().any(|(asked, _)| asked == name));
        headers.extend(config.headers);
        let session_id = start.id.clone();
        let Begun { mut conversation, session, unkept } = start.begin(&settings.origin(), config.secrets)?;
        if let Some(session) = &session {
            toolbox.hold(session.file());
        }
        match unkept {
            Some(Unkept::Quiet(reason)) => output.detail(&reason),
            Some(Unkept::Warned(reason)) => output.warn(&reason),
            None if session.is_some() => output.detail(&format!("session {session_id}")),
            None => {}
        }
        let mut images = image_limits::Held::default();
        conversation.check_images(|shown| images.add(shown));
        if let Some(why) = thinking::without_counterpart(&settings) {
            output.warn(why);
        }
        if let Some(client) = config.alarm.client() {
            client.introduce(&settings.model, config.skills.commands());
        }
        let mut agent = Agent {
            first_model: settings.model.clone(),
            model_names: config.model_names,
            alarm: config.alarm.clone(),
            url: provider::endpoint(settings.api, &config.base_url),
            models_url,
            headers,
            http,
            permission_mode,
            key_source: config.key_source,
            toolbox,
            wire: Wire::new(&settings),
            settings,
            conversation,
            answer: config.answer_schema.map(FinalAnswer::new),
            images,
            compacts: config.compaction,
            room: Room::default(),
            text_calls: config.text_calls,
            fallback_models: config.fallback_models.into(),
            budget: Budget::new(config.limits, config.alarm),
            begun: Instant::now(),
            denied_before: 0,
            stop_reason: None,
            api_time: Duration::ZERO,
            text: String::new(),
            session_id,
            session,
            instructions: config.instructions,
            skills: config.skills,
            skill_rules: config.skill_rules,
            is_apart: false,
        };
        agent.expect_overload();
        Ok(agent)
    }

    /// Whether a program of this name was given as a tool.
    pub fn has_executable(&self, name: &str) -> bool {
        self.toolbox.has_executable(name)
    }

    /// The model that is asked.
    pub fn model(&self) -> &str {
        &self.settings.model
    }

    /// The beginning of what the conversation began with, on one line; none if nothing was said yet.
    pub fn first_words(&self) -> Option<String> {
        const MOST: usize = 60;
        let first = self.conversation.messages().first()?;
        let text = texts(&first.parts).join(" ");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(match words.char_indices().nth(MOST) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None => words,
        })
    }

    /// Where tools work.
    pub fn workspace(&self) -> &Workspace {
        self.toolbox.workspace()
    }

    /// The body of the first request, for `--dry-run`.
    ///
    /// # Errors
    ///
    /// `Usage` if the prompt shows what no API would take.
    pub fn first_request(mut self, prompt: Opening) -> Result<String, Error> {
        self.add_prompt(prompt.parts)?;
        self.wire.update(&self.settings, self.conversation.messages());
        Ok(String::from_utf8_lossy(&self.wire.body(&self.settings).concat()).into_owned())
    }

    /// Adds what the user says and shows.
    fn add_prompt(&mut self, prompt: Parts) -> Result<(), Error> {
        let Parts(parts) = prompt;
        for part in &parts {
            if let Part::Image(image) = part {
                self.images
                    .add(std::slice::from_ref(image))
                    .map_err(|why| Error::Usage(format!("an image of the prompt is {why}")))?;
            }
        }
        self.note_prompt();
        self.conversation.add_user(parts);
        Ok(())
    }

    /// How the turn of the user's stands.
    pub fn summary(&self) -> Summary {
        Summary {
            text: self.text.clone(),
            structured_output: self
                .answer
                .as_ref()
                .and_then(FinalAnswer::found)
                .map(|found| found.value.clone()),
            turns: self.budget.turns(),
            usage: self.budget.turn_usage(),
            models: self.budget.models().to_vec(),
            duration_ms: self.begun.elapsed().as_millis(),
            duration_api_ms: self.api_time.as_millis(),
            session_id: self.session_id.clone(),
            denied: self.toolbox.denied()[self.denied_before..].to_vec(),
            stop_reason: self.stop_reason,
            total_cost_usd: self.budget.cost(),
            api_error_status: self.http.failed_status(),
            is_kept: self.session.is_some() && self.budget.turns() > 0,
        }
    }

    /// A turn of the user's begins: what is counted for each begins anew.
    pub fn begin_turn(&mut self, output: &mut Output) -> Result<(), Error> {
        self.begun = Instant::now();
        self.budget.begin_turn();
        self.stop_reason = None;
        self.denied_before = self.toolbox.denied().len();
        self.text.clear();
        output.turn_begins(&Start {
            session_id: &self.session_id,
            folder: &self.toolbox.workspace().root,
            tools: &self.settings.offered(),
            model: &self.settings.model,
            permission_mode: permissions::name(self.permission_mode),
            key_source: self.key_source,
            skills: &self.skills.names(),
        })
    }

    /// Brings the session file up to date and onto the disk, behind the files that it says are written.
    pub fn end_session(&mut self, output: &mut Output) -> Result<(), Error> {
        if let Err(why) = self.toolbox.sync_folders() {
            output.warn(&format!("a file that was written may be gone after a loss of power: {why}"));
        }
        self.save()?;
        self.session.as_ref().map_or(Ok(()), Session::sync)
    }

    /// Ends what tools left running, and names the files of git's own that they have changed.
    pub fn end_tools(&mut self) -> Vec<String> {
        self.toolbox.end()
    }

    /// Runs a turn of the user's until the model has answered; the answer is in the summary.
    pub fn run(&mut self, mut opening: Opening, output: &mut Output) -> Result<(), Error> {
        self.begin_turn(output)?;
        if let Some(answer) = &mut self.answer {
            answer.begin();
        }
        if let Some(typed) = opening.forked.take() {
            return self.run_apart(&typed, opening, output);
        }
        self.open(opening, output)?;
        self.go_on(output)
    }

    /// Asks until there is an answer.
    fn go_on(&mut self, output: &mut Output) -> Result<(), Error> {
        let (mut nudged, mut cuts, mut pauses, mut botched) = (false, 0, 0, 0);
        loop {
            let reply = self.ask(output)?;
            self.text = texts(&reply.parts).join("\n");
            let has_calls = holds_call(&reply.parts);
            match reply.stop {
                Stop::Declined(_) | Stop::Filtered | Stop::WindowFull => {
                    return self.break_off(reply, output);
                }
                Stop::Cut if !has_calls => return self.break_off(reply, output),
                Stop::Cut => {
                    cuts += 1;
                    self.refuse_cut_calls(reply, output)?;
                    if cuts == MOST_CUTS {
                        return Err(Error::Incomplete(format!(
                            "{MOST_CUTS} replies in a row were cut at the output limit in the middle of a call: raise --max-output-tokens"
                        )));
                    }
                }
                Stop::Paused if !has_calls => {
                    pauses += 1;
                    if pauses > MOST_PAUSES {
                        return Err(Error::Incomplete(format!(
                            "the server paused its reply {MOST_PAUSES} times in a row"
                        )));
                    }
                    self.add_reply(reply, output)?;
                }
                Stop::Botched if !has_calls => {
                    botched += 1;
                    match botched {
                        1 => output.detail("the model failed to write a call: asking again"),
                        2 => self.conversation.add_user(BOTCHED_NUDGE),
                        _ => {
                            return Err(Error::Incomplete(
                                "the model failed three times to write a call".to_owned(),
                            ));
                        }
                    }
                }
                // A call beside a server's paused one is answered as any other: it may not stay open.
                Stop::Finished | Stop::Botched | Stop::Paused if has_calls => {
                    (nudged, cuts, pauses, botched) = (false, 0, 0, 0);
                    output.end_shown()?;
                    let calls = self.add_reply(reply, output)?;
                    self.run_calls(&calls, output)?;
                    if self.is_answered()? {
                        return Ok(());
                    }
                }
                Stop::Finished | Stop::Botched if self.text.trim().is_empty() => {
                    if nudged {
                        return Err(Error::Incomplete(
                            "the model's answer is empty, twice in a row: rephrase the request or choose another --model".to_owned(),
                        ));
                    }
                    nudged = true;
                    output.detail("the model's answer is empty: asking once more");
                    self.conversation.add_user(NUDGE);
                }
                Stop::Finished | Stop::Botched | Stop::Paused => {
                    self.add_reply(reply, output)?;
                    // What was said before a pause is the beginning of the same answer.
                    self.text = self.conversation.messages().last().map_or_else(String::new, Message::text);
                    if self.ends_with_text(output)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Takes a reply into the conversation and tells it; its calls have the ids that they keep.
    fn add_reply(&mut self, reply: Reply, output: &mut Output) -> Result<Vec<Call>, Error> {
        let Reply { parts, stop, usage, .. } = reply;
        let count = parts.len();
        let calls = self.conversation.add_reply(parts, &self.settings.origin());
        let parts = self.conversation.last_parts(count);
        output.replied(&Said { parts, stop: &stop, usage, model: &self.settings.model })?;
        Ok(calls)
    }

    /// Tells a reply that ends the run, since nothing can follow its end. The text of one that grew too long is kept,
    /// for a run that goes on from there; one that was refused or filtered would only be so again.
    fn break_off(&mut self, reply: Reply, output: &mut Output) -> Result<(), Error> {
        let Reply { parts, stop, usage, .. } = reply;
        if matches!(stop, Stop::Cut | Stop::WindowFull) {
            self.keep_text(self.text.clone());
        }
        output.replied(&Said { parts: &parts, stop: &stop, usage, model: &self.settings.model })?;
        Err(broken_off(&stop))
    }

    /// Keeps the text of a reply that has no end. Half of anything else could not be sent back.
    fn keep_text(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.conversation.add_reply(vec![Part::Text(text.clone())], &self.settings.origin());
            self.text = text;
        }
    }

    /// Writes what was said since to the session file, so that nothing can be lost that was sent.
    pub fn save(&mut self) -> Result<(), Error> {
        if let Some(session) = self.session.as_mut().filter(|_| !self.is_apart) {
            session.append(self.conversation.new_lines())?;
        }
        Ok(())
    }
}

/// The system prompt. Where the answer is to be given by a tool it says so, since the built-in one has it given as
/// text.
fn system_prompt(instructions: &Instructions, settings: &Settings) -> String {
    let text = instructions.text();
    match settings.answer.is_some() && settings.native_answer().is_none() && !text.is_empty() {
        true => format!("{text}\n\n{}", answer::INSTRUCTION),
        false => text,
    }
}

/// The error that a reply's end is, where nothing can follow it.
fn broken_off(stop: &Stop) -> Error {
    Error::Incomplete(match stop {
        Stop::Declined(why) if !why.trim().is_empty() => format!(
            "the model declined to answer ({}): rephrase the request or choose another --model",
            provider::excerpt(why)
        ),
        Stop::Declined(_) => {
            "the model declined to answer: rephrase the request or choose another --model".to_owned()
        }
        Stop::Filtered => "the answer was withheld by the API's content filter: rephrase the request or choose another --model".to_owned(),
        Stop::WindowFull => "the answer was cut because the context window is full: shorten the input or choose another --model".to_owned(),
        Stop::Finished | Stop::Cut | Stop::Paused | Stop::Botched => {
            "the answer was cut at the output limit: raise --max-output-tokens or ask for less".to_owned()
        }
    })
}
