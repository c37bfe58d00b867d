//! The loop: ask, run the calls of the reply, send their results, ask again, until there is an answer.
//!
//! Every limit is checked here, before a request is made. Why a reply ended is looked at before what it
//! holds, and a reply that was cut never has a call run.

mod client;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::alarm::Alarm;
use crate::answer::{self, FinalAnswer};
use crate::budget::Budget;
use crate::config::{Config, SkillRules, TextCalls};
use crate::conversation::{Call, CallResult, Conversation, Message, Part, Parts, texts};
use crate::error::Error;
use crate::http::net::{self, Client};
use crate::http::recording::Recorder;
use crate::http::{self, Asked, Http, Request, Trouble};
use crate::image_limits;
use crate::output::{Output, Said, Start, Summary, stdout_error};
use crate::provider::errors::Verdict;
use crate::provider::shown::Growing;
use crate::provider::{
    self, ApiError, Fault, Learnt, Reader, Reply, Settings, Stated, Stop, Usage, Wire, text_calls, thinking,
};
use crate::response::{self, Broken};
use crate::sandbox::permissions::{self, Mode};
use crate::session::{self, Begun, Session, Unkept};
use crate::skills::Skills;
use crate::skills::opening::Opening;
use crate::tools::read::{self, RawError};
use crate::tools::toolbox::Toolbox;
use crate::tools::{Outcome, Workspace, skill};

mod answers;
mod skills;

/// How often in a row a reply may be cut in the middle of its calls before the run ends.
const MOST_CUTS: u32 = 3;
/// How often in a row a server-side tool loop is continued.
const MOST_PAUSES: u32 = 10;
/// How often an overloaded model is asked again where another one can be asked instead.
const RETRIES_BEFORE_FALLBACK: u32 = 2;

/// What is said to a model whose reply was empty.
const NUDGE: &str = "Your last message was empty. Go on, or give your answer.";
/// What is said to a model that failed to write a call.
const BOTCHED_NUDGE: &str =
    "Your last message tried to call a tool in a form that could not be read. Write the call anew.";

/// One run.
pub struct Agent {
    settings: Settings,
    url: String,
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
    skills: Skills,
    skill_rules: SkillRules,
    /// Whether the conversation is one within the run's: a skill has it, nobody sees it and no file keeps it.
    is_apart: bool,
    /// What ends the run's waiting, and whose letters are heeded.
    alarm: Alarm,
    /// The model of the start.
    first_model: String,
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
        if settings.model.is_empty() {
            let headers = [provider::headers(&settings), config.headers.clone()].concat();
            settings.model =
                only_model(&mut http, &provider::models_endpoint(settings.api, &config.base_url), &headers)?;
            output.detail(&format!("the server has one model: {}", settings.model));
        }
        // Which form it has depends on the model.
        settings.answer =
            config.answer_schema.as_ref().map(|schema| provider::answer_form::form(&settings, schema));
        if settings.answer.is_some() && settings.native_answer().is_none() && !settings.system.is_empty() {
            settings.system = format!("{}\n\n{}", settings.system, answer::INSTRUCTION);
        }
        let mut headers = provider::headers(&settings);
        // Who names a header of the protocol's own means the value to hold.
        headers.retain(|(name, _)| !config.headers.iter().any(|(asked, _)| asked == name));
        headers.extend(config.headers);
        let session_id = start.id.clone();
        let Begun { mut conversation, session, unkept } = start.begin(&settings.origin(), config.secrets)?;
        match unkept {
            Some(Unkept::Usual(reason)) => output.detail(&reason),
            Some(Unkept::Named(reason)) => output.warn(&reason),
            None if session.is_some() => output.detail(&format!("session {session_id}")),
            None => {}
        }
        let mut images = image_limits::Held::default();
        conversation.check_images(|shown| images.add(shown));
        if let Some(why) = thinking::without_counterpart(&settings) {
            output.warn(why);
        }
        if let Some(client) = config.alarm.client() {
            client.set_model(&settings.model);
        }
        let mut agent = Agent {
            first_model: settings.model.clone(),
            alarm: config.alarm.clone(),
            url: provider::endpoint(settings.api, &config.base_url),
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

    /// Where tools work.
    pub fn workspace(&self) -> &Workspace {
        self.toolbox.workspace()
    }

    /// The body of the first request, for `--dry-run`.
    ///
    /// # Errors
    ///
    /// `Usage` if the prompt shows what no API would take.
    pub fn first_request(mut self, prompt: impl Into<Opening>) -> Result<String, Error> {
        self.add_prompt(prompt.into().parts)?;
        self.wire.update(&self.settings, self.conversation.messages());
        Ok(String::from_utf8_lossy(&self.wire.body(&self.settings).concat()).into_owned())
    }

    /// Adds what the user says and shows.
    fn add_prompt(&mut self, prompt: impl Into<Parts>) -> Result<(), Error> {
        let Parts(parts) = prompt.into();
        for part in &parts {
            if let Part::Image(image) = part {
                self.images
                    .add(std::slice::from_ref(image))
                    .map_err(|why| Error::Usage(format!("an image of the prompt is {why}")))?;
            }
        }
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

    /// Brings the session file up to date and onto the disk.
    pub fn end_session(&mut self) -> Result<(), Error> {
        self.save()?;
        self.session.as_ref().map_or(Ok(()), Session::sync)
    }

    /// Ends what tools left running, and names the files of git's own that they have changed.
    pub fn end_tools(&mut self) -> Vec<String> {
        self.toolbox.end()
    }

    /// Runs a turn of the user's until the model has answered; the answer is in the summary.
    pub fn run(&mut self, prompt: impl Into<Opening>, output: &mut Output) -> Result<(), Error> {
        self.begin_turn(output)?;
        if let Some(answer) = &mut self.answer {
            answer.begin();
        }
        let mut opening = prompt.into();
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
            let has_calls = reply.parts.iter().any(|part| matches!(part, Part::Call(_)));
            match reply.stop {
                Stop::Declined(_) | Stop::Filtered | Stop::WindowFull => {
                    return self.break_off(&reply, output);
                }
                Stop::Cut if !has_calls => return self.break_off(&reply, output),
                Stop::Cut => {
                    cuts += 1;
                    if cuts == MOST_CUTS {
                        return Err(Error::Incomplete(format!(
                            "{MOST_CUTS} replies in a row were cut at the output limit in the middle of a call: raise --max-output-tokens"
                        )));
                    }
                    self.refuse_cut_calls(reply, output)?;
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

    /// Tells a reply that ends the run, since nothing can follow its end.
    fn break_off(&self, reply: &Reply, output: &mut Output) -> Result<(), Error> {
        let Reply { parts, stop, usage, .. } = reply;
        output.replied(&Said { parts, stop, usage: *usage, model: &self.settings.model })?;
        Err(broken_off(stop))
    }

    /// One request. If the reply asks for a tool, its first call is run and the raw result written; the
    /// text is in the summary otherwise. True if a call was run.
    pub fn single_step(&mut self, prompt: impl Into<Opening>, output: &mut Output) -> Result<bool, Error> {
        self.open(prompt.into(), output)?;
        let reply = self.ask(output)?;
        self.text = texts(&reply.parts).join("\n");
        let calls = self.conversation.add_reply(reply.parts, &self.settings.origin());
        match (&reply.stop, calls.first()) {
            (Stop::Declined(_) | Stop::Filtered | Stop::WindowFull, _) | (Stop::Cut, None) => {
                Err(broken_off(&reply.stop))
            }
            (Stop::Cut, Some(_)) => Err(Error::Incomplete(
                "the reply was cut, so its call was not run: raise --max-output-tokens".to_owned(),
            )),
            (_, Some(call)) => self.print_result(call, output).map(|()| true),
            (Stop::Finished, None) if !self.text.trim().is_empty() => Ok(false),
            _ => Err(Error::Incomplete(
                "the reply is empty or incomplete: rephrase the request or choose another --model".to_owned(),
            )),
        }
    }

    /// Runs a call and prints what it gives: for Read the file's own bytes.
    fn print_result(&mut self, call: &Call, output: &mut Output) -> Result<(), Error> {
        output.end_shown()?;
        let failed = |text: &str| Error::Internal(format!("the call of {} failed: {text}", call.name));
        if call.name != "Read" {
            // A skill in a conversation of its own would take more than the one request.
            self.is_apart = true;
            let outcome = self.run_call(call, output)?;
            self.check_denials()?;
            return match outcome.is_error {
                true => Err(failed(&outcome.text)),
                false => output.print(&outcome.text),
            };
        }
        self.budget.take_call()?;
        output.call(&call.name, &subject(call));
        let checked = self.toolbox.check(call);
        self.check_denials()?;
        let arguments = checked.map_err(|text| failed(&text))?;
        read::copy_raw(&arguments, self.toolbox.workspace(), &mut output.raw_bytes()).map_err(|error| {
            match error {
                RawError::Refused(text) => failed(&text),
                RawError::Output(error) => stdout_error(&error, true),
            }
        })
    }

    /// Asks until there is a reply, writing the request anew where something was learnt of the server.
    fn ask(&mut self, output: &mut Output) -> Result<Reply, Error> {
        self.heed_client()?;
        self.budget.check_request()?;
        self.save()?;
        output.end_shown()?;
        loop {
            self.wire.update(&self.settings, self.conversation.messages());
            let body = self.wire.body(&self.settings);
            let bytes: usize = body.iter().map(|slice| slice.len()).sum();
            let to = match self.http.is_replaying() {
                true => "the recording".to_owned(),
                false => net::shown(&self.url),
            };
            output.detail(&format!("request {}: {bytes} bytes to {to}", self.budget.turns() + 1));
            output.waiting();
            let request = Request { url: &self.url, headers: &self.headers, body: &body };
            let api = self.settings.api;
            let (settings, text_calls, budget) = (&self.settings, self.text_calls, &self.budget);
            let mut learnt = settings.learnt.clone();
            let conversation = &self.conversation;
            let begun = Instant::now();
            let mut broken = Vec::new();
            let asked = self.http.ask(&request, output, |answer, output| {
                output.reply_begins(&settings.model);
                let grown = &mut |reader: &Reader| {
                    show_growth(reader, text_calls, conversation, output)?;
                    match reader.is_whole() {
                        true => Ok(()),
                        false => budget.check_reply(&settings.model, &reader.spent()),
                    }
                };
                let reply = response::read(answer, api, grown, &mut broken);
                reply.map_err(|trouble| match trouble {
                    Trouble::Fault(Fault::Api(error), _) if error.teach(settings, &mut learnt) => {
                        Trouble::Rewrite
                    }
                    trouble => trouble,
                })
            });
            self.api_time += begun.elapsed();
            for part in &broken {
                self.budget.take_part(&self.settings.model, &part.spent);
            }
            match asked {
                Ok(Asked::Answered(mut reply)) => {
                    self.take_note(&mut reply, bytes, output)?;
                    if let Err(error) = self.budget.check_spent() {
                        self.text = texts(&reply.parts).join("\n");
                        if !reply.parts.is_empty() {
                            self.refuse_calls(reply, &format!("not run: {error}"), output)?;
                        }
                        return Err(error);
                    }
                    return Ok(reply);
                }
                Ok(Asked::Rewrite) => self.learn(learnt, output),
                Err(error) => {
                    self.keep_part(&error, broken.pop());
                    self.fall_back(error, output)?;
                }
            }
        }
    }

    /// Writes requests as this server takes them from now on, and says what of the wishes is lost by it.
    fn learn(&mut self, learnt: Learnt, output: &mut Output) {
        output.detail("the API refused a detail of the request: asking again without it");
        let before = std::mem::replace(&mut self.settings.learnt, learnt);
        let learnt = &self.settings.learnt;
        if let (None, Some(why)) = (before.no_images, learnt.no_images) {
            output.warn(&format!("images are left out of this run's requests: {}", why.text()));
        }
        if learnt.no_effort && !before.no_effort {
            output.warn("the model does not take the --effort asked for: asking without it");
        }
        if learnt.thinking_refusals > before.thinking_refusals && thinking::mode(&self.settings).is_none() {
            output.warn("the model does not take the thinking asked for: asking without it");
        }
        self.wire = Wire::new(&self.settings);
    }

    /// Asks the next fallback model from now on where this one stays overloaded. What was learnt was learnt of this
    /// one. Errors: that which ends the run, since there is none or it would not help.
    fn fall_back(&mut self, error: Error, output: &mut Output) -> Result<(), Error> {
        let next = match error {
            Error::Overloaded(_) => self.fallback_models.pop_front(),
            _ => None,
        };
        let Some(model) = next else { return Err(error) };
        output.attempt_broke()?;
        output.warn(&format!("{error}: asking {model} from here on (--fallback-model)"));
        self.settings.model = model;
        self.settings.learnt = Learnt::default();
        if let Some(answer) = &self.answer {
            self.settings.answer = Some(provider::answer_form::form(&self.settings, answer.schema()));
        }
        self.expect_overload();
        self.wire = Wire::new(&self.settings);
        Ok(())
    }

    /// Where another model can be asked, this one is not waited for as long.
    fn expect_overload(&mut self) {
        self.http.retry_overload(match self.fallback_models.is_empty() {
            true => u32::MAX,
            false => RETRIES_BEFORE_FALLBACK,
        });
    }

    /// Keeps the text of a reply that a budget or the client cut.
    fn keep_part(&mut self, error: &Error, part: Option<Broken>) {
        let is_cut =
            matches!(error, Error::Tokens(_) | Error::Cost(_) | Error::Time(_) | Error::Interrupted(_));
        if let Some(part) = part
            && is_cut
            && !part.text.trim().is_empty()
        {
            self.conversation.add_reply(vec![Part::Text(part.text.clone())], &self.settings.origin());
            self.text = part.text;
        }
    }

    /// Counts a reply to a request of so many bytes, says what is odd about it, and understands its text.
    fn take_note(&mut self, reply: &mut Reply, bytes: usize, output: &mut Output) -> Result<(), Error> {
        let said: usize = reply.parts.iter().map(length).sum();
        self.budget.take_reply(&self.settings.model, &reply.spent(), bytes + said);
        if let Stated::Unusable(what) = &reply.stated {
            output.detail(&format!("what the server says that the reply cost is no amount: {what}"));
        }
        self.stop_reason = Some(reply.stop.word(&reply.parts));
        if !self.http.is_replaying() {
            // Images cost tokens by their dimensions, few for their bytes.
            let images = match self.settings.learnt.no_images {
                None => self.images.characters(),
                Some(_) => 0,
            };
            warn_of_cut_prompt(bytes.saturating_sub(images), reply.usage, output);
        }
        if let Some(word) = &reply.unknown_stop {
            output.detail(&format!("the reply ended with an unknown word, taken as its end: {word}"));
        }
        self.understand_text(reply, output)
    }

    /// Puts the calls that a reply's text is, if it is nothing else, in the place of that text. From there on
    /// they are as any other. Sent back as text, with the result as a user's message, they did better only under
    /// a template that shows no tools, where a model hardly ever calls one; under one that does, a real model
    /// read its own text as a call that was still open, and repeated it.
    fn understand_text(&self, reply: &mut Reply, output: &mut Output) -> Result<(), Error> {
        let text = texts(&reply.parts).join("\n");
        let has_calls = reply.parts.iter().any(|part| matches!(part, Part::Call(_)));
        // Where the server keeps to the form of the answer, JSON is that.
        let is_native = self.settings.native_answer().is_some();
        let is_answer = reply.stop == Stop::Finished && !has_calls && !is_native;
        let calls = match is_answer && self.text_calls != TextCalls::Leave {
            true => text_calls::calls(&text, &self.settings.offered()),
            false => Vec::new(),
        };
        let names = calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>().join(", ");
        match self.text_calls {
            TextCalls::Run if !calls.is_empty() => {
                output.detail(&format!(
                    "the reply is a call written as text ({names}), which is run: --text-tool-calls off leaves it"
                ));
                reply.parts.retain(|part| !matches!(part, Part::Text(_)));
                reply.parts.extend(calls.into_iter().map(Part::Call));
                Ok(())
            }
            // It was held back as long as it could become a call.
            TextCalls::Run if text_calls::may_become_calls(&text) => output.show(&text),
            TextCalls::Report if !calls.is_empty() => {
                output.warn(&format!(
                    "the answer is a call written as text ({names}): --text-tool-calls on has such calls run"
                ));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes what was said since to the session file, so that nothing can be lost that was sent.
    pub fn save(&mut self) -> Result<(), Error> {
        if let Some(session) = self.session.as_mut().filter(|_| !self.is_apart) {
            for line in self.conversation.new_lines() {
                session.append(&line)?;
            }
        }
        Ok(())
    }

    /// Whether the run may go on after what was denied.
    fn check_denials(&self) -> Result<(), Error> {
        match self.toolbox.denied()[self.denied_before..].first() {
            Some(denied) if self.permission_mode == Mode::DontAsk => Err(Error::Permission(format!(
                "a call of {} was denied, which ends the run (--permission-mode dontAsk): {}",
                denied.tool, denied.denial.0
            ))),
            _ => Ok(()),
        }
    }

    /// Answers every call, in order, also where the run ends with one of them. Behind that one none is run.
    /// The calls are in the session before they run, and each result before the next call does: a run that is
    /// killed is told apart from one that did nothing.
    fn run_calls(&mut self, calls: &[Call], output: &mut Output) -> Result<(), Error> {
        let (mut ended, mut told) = (self.save(), Ok(()));
        for call in calls {
            if ended.is_ok() {
                ended = self.heed_client();
            }
            let mut outcome = match &ended {
                Ok(()) if told.is_err() => Outcome::error("not run: the reader of the output has left"),
                Ok(()) => self.run_call(call, output).unwrap_or_else(|error| {
                    let outcome = Outcome::error(format!("not run: {error}"));
                    ended = Err(error);
                    outcome
                }),
                Err(Error::Interrupted(why)) => Outcome::error(format!("not run: {why}")),
                Err(_) => Outcome::error("not run: a call before it ended the run"),
            };
            if ended.is_ok() {
                ended = self.check_denials();
            }
            if let Err(why) = self.images.add(&outcome.images) {
                outcome = Outcome::error(format!("{} [{why}]", outcome.text));
            }
            let result = CallResult {
                call_id: call.id.clone(),
                text: outcome.text,
                images: outcome.images,
                is_error: outcome.is_error,
            };
            if told.is_ok() {
                told = output.result(&result);
            }
            self.conversation.add_result(result);
            if ended.is_ok() {
                ended = self.save();
            }
        }
        // A reader that has left, too, leaves a conversation in which every call has its result.
        ended.and(told)
    }

    fn run_call(&mut self, call: &Call, output: &mut Output) -> Result<Outcome, Error> {
        output.call(&call.name, &subject(call));
        if let Some(outcome) = self.take_answer(call) {
            return Ok(outcome);
        }
        self.budget.take_call()?;
        if call.name == skill::NAME {
            return self.run_skill(call, output);
        }
        let (http, denied_before) = (&mut self.http, self.toolbox.denied().len());
        let mut outcome = self.toolbox.run(call, &mut |url| {
            let headers = [("accept".to_owned(), "application/json".to_owned())];
            http.get(url, &headers).map_err(|failure| failure.to_string())
        })?;
        for denied in &self.toolbox.denied()[denied_before..] {
            output.detail(&format!("{} was denied: {}", denied.tool, denied.denial.0));
        }
        // Several servers refuse an empty result.
        if outcome.text.trim().is_empty() {
            outcome.text = "(no output)".to_owned();
        }
        Ok(outcome)
    }

    /// Answers the calls of a reply that was cut: none of them has run.
    fn refuse_cut_calls(&mut self, reply: Reply, output: &mut Output) -> Result<(), Error> {
        const WHY: &str = "not run: the reply was cut at the output limit before its calls were complete. Make smaller calls, for instance a long file in several parts";
        self.refuse_calls(reply, WHY, output)
    }

    /// Answers the calls of a reply, none of which is run.
    fn refuse_calls(&mut self, mut reply: Reply, why: &str, output: &mut Output) -> Result<(), Error> {
        for part in &mut reply.parts {
            if let Part::Call(call) = part {
                call.refusal = Some(why.to_owned());
            }
        }
        let calls = self.add_reply(reply, output)?;
        let results: Vec<CallResult> = calls
            .into_iter()
            .map(|call| CallResult {
                call_id: call.id,
                text: why.to_owned(),
                images: Vec::new(),
                is_error: true,
            })
            .collect();
        let told = results.iter().try_for_each(|result| output.result(result));
        if !results.is_empty() {
            self.conversation.add_results(results);
        }
        told
    }
}

/// Shows what is new of a reply. What may yet become a call is not shown as an answer.
fn show_growth(
    reader: &Reader,
    text_calls: TextCalls,
    conversation: &Conversation,
    output: &mut Output,
) -> Result<(), Error> {
    if !output.streams_text() && !output.tells_growth() {
        return Ok(());
    }
    let text = reader.visible_text();
    let is_held = text_calls == TextCalls::Run && text_calls::may_become_calls(text);
    if output.tells_growth() {
        let mut growing = reader.growing();
        growing.retain(|(_, block)| !(is_held && matches!(block, Growing::Text(_))));
        return output.grows(&growing, |id| conversation.has_call(id));
    }
    match is_held {
        true => Ok(()),
        false => output.show(text),
    }
}

/// Ollama cuts the front of a prompt that is longer than its context, system prompt and tools first, and says
/// nothing. No text has that many bytes for each token.
fn warn_of_cut_prompt(bytes: usize, usage: Usage, output: &mut Output) {
    const MOST_BYTES_PER_TOKEN: u64 = 10;
    let read = usage.total_input();
    if read > 0 && bytes as u64 > read.saturating_mul(MOST_BYTES_PER_TOKEN) {
        output.warn(&format!(
            "the server read only {read} tokens of a request of {bytes} bytes and may have dropped its beginning: \
             give it a larger context (for Ollama, OLLAMA_CONTEXT_LENGTH)"
        ));
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

/// About how many bytes the model wrote for a part.
fn length(part: &Part) -> usize {
    match part {
        Part::Text(text) | Part::Vendor(text) => text.len(),
        Part::Call(call) => call.name.len() + call.arguments.len(),
        Part::Result(_) | Part::Image(_) => 0,
    }
}

/// What a call is about, for the one line that is shown of it: its first argument that is a text.
fn subject(call: &Call) -> String {
    match provider::parse(&call.arguments) {
        Ok(value) => value
            .as_object()
            .and_then(|arguments| arguments.values().find_map(|value| value.as_str()))
            .unwrap_or_default()
            .to_owned(),
        Err(_) => String::new(),
    }
}

/// The model of a server that has only one.
fn only_model(client: &mut Http, url: &str, headers: &[(String, String)]) -> Result<String, Error> {
    let unnamed = |why: &str| Error::Usage(format!("no model: pass --model or set COTTER_MODEL ({why})"));
    let (status, body) = client.get(url, headers).map_err(|failure| failure.error())?;
    let models = provider::parse(&String::from_utf8_lossy(&body)).ok();
    let list = models.as_ref().and_then(|value| value["data"].as_array().or(value.as_array()));
    match list.map(Vec::as_slice) {
        Some([only]) if status == 200 => match only["id"].as_str() {
            Some(id) => Ok(id.to_owned()),
            None => Err(unnamed("the server's list of models has no id")),
        },
        Some(models) if status == 200 => {
            let names: Vec<&str> = models.iter().filter_map(|model| model["id"].as_str()).take(10).collect();
            if names.is_empty() {
                return Err(unnamed("the server has none"));
            }
            Err(unnamed(&format!("the server has {} models: {}", models.len(), names.join(", "))))
        }
        _ => {
            let error = ApiError::from_response(status, "", &body);
            match error.verdict() {
                Verdict::Credentials | Verdict::Wait | Verdict::Exhausted => {
                    Err(http::error_of_api(&error, url))
                }
                _ => Err(unnamed(&format!("the server does not list its models: HTTP {status}"))),
            }
        }
    }
}
