//! Which proxy a request goes through, chosen as curl chooses it.
//!
//! Pure: the variables' values come in as text and nothing is looked up. A chosen value may hold a
//! password, so it must never be shown; [`Choice::variable`] is what a message names.

use std::net::IpAddr;

/// The values of the proxy variables, as they were found.
#[derive(Debug, Clone, Default)]
pub struct ProxySettings {
    /// For https URLs (`https_proxy`, `HTTPS_PROXY`).
    pub https: Option<String>,
    /// For http URLs (`http_proxy`; curl ignores the upper-case name, which CGI lets a client set).
    pub http: Option<String>,
    /// For both, where there is none of its own (`all_proxy`, `ALL_PROXY`).
    pub all: Option<String>,
    /// The hosts that are reached directly (`no_proxy`, `NO_PROXY`); empty if unset.
    pub no_proxy: String,
}

/// A proxy that applies, and the variable that named it.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice<'a> {
    /// The variable, for messages.
    pub variable: &'static str,
    /// Its value, which may hold a password.
    pub value: &'a str,
}

impl ProxySettings {
    /// The proxy for a URL with this host (without brackets) and port, or none for a direct connection.
    /// A loopback host is always reached directly: a proxy would look for it on its own machine.
    pub fn choose(&self, secure: bool, host: &str, port: u16) -> Option<Choice<'_>> {
        let own = if secure { ("https_proxy", &self.https) } else { ("http_proxy", &self.http) };
        let (variable, value) =
            [own, ("all_proxy", &self.all)].into_iter().find_map(|(variable, value)| {
                let value = value.as_deref()?.trim();
                (!value.is_empty()).then_some((variable, value))
            })?;
        let direct = is_loopback(host) || is_excluded(&self.no_proxy, host, port);
        (!direct).then_some(Choice { variable, value })
    }
}

/// Whether the name or address means this very machine: `localhost`, `*.localhost`, 127.0.0.0/8, `::1`.
pub fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => is_localhost(host),
    }
}

/// Whether the name is `localhost` or below it, which RFC 6761 keeps out of DNS.
pub(super) fn is_localhost(name: &str) -> bool {
    is_in_domain(name, "localhost")
}

/// Whether an entry of the list (separated by commas or blanks) covers the host.
fn is_excluded(no_proxy: &str, host: &str, port: u16) -> bool {
    no_proxy
        .split(|character: char| character == ',' || character.is_ascii_whitespace())
        .filter(|entry| !entry.is_empty())
        .any(|entry| covers(entry, host, port))
}

fn covers(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    let (name, only_port) = split_port(entry);
    if only_port.is_some_and(|only_port| only_port != port) {
        return false;
    }
    match host.parse::<IpAddr>() {
        Ok(address) => is_in_block(address, name),
        Err(_) => is_in_domain(host, name.strip_prefix('.').unwrap_or(name)),
    }
}

/// Splits `name:port`, `[address]:port` and `[address]`; a bare IPv6 address keeps its colons.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some((address, after)) = entry.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
        return (address, after.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match entry.split_once(':') {
        Some((name, port)) => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (entry, None),
        },
        None => (entry, None),
    }
}

/// Whether `host` is `domain` or a name below it, whatever the case and a final dot.
fn is_in_domain(host: &str, domain: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let domain = domain.strip_suffix('.').unwrap_or(domain).to_ascii_lowercase();
    let Some(above) = host.strip_suffix(&domain) else {
        return false;
    };
    !domain.is_empty() && (above.is_empty() || above.ends_with('.'))
}

/// Whether `block`, an address alone or with the number of its fixed bits (`10.0.0.0/8`), holds `address`.
fn is_in_block(address: IpAddr, block: &str) -> bool {
    let (base, bits) = match block.split_once('/') {
        Some((base, bits)) => (base, bits.parse().ok()),
        None => (block, Some(128)),
    };
    let (Ok(base), Some(bits)) = (base.parse(), bits) else {
        return false;
    };
    match (base, address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => {
            let differing = base.to_bits() ^ address.to_bits();
            differing.checked_shr(32_u32.saturating_sub(bits)).unwrap_or(0) == 0
        }
        (IpAddr::V6(base), IpAddr::V6(address)) => {
            let differing = base.to_bits() ^ address.to_bits();
            differing.checked_shr(128_u32.saturating_sub(bits)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(no_proxy: &str) -> ProxySettings {
        ProxySettings {
            https: Some("http://secure:1".to_owned()),
            http: Some("http://plain:2".to_owned()),
            all: Some("socks5://all:3".to_owned()),
            no_proxy: no_proxy.to_owned(),
        }
    }

    #[test]
    fn the_scheme_decides_which_variable_is_asked_first() {
        let mut settings = settings("");
        let choice = |settings: &ProxySettings, secure| {
            settings
                .choose(secure, "api.example", 443)
                .map(|choice| (choice.variable, choice.value.to_owned()))
        };
        assert_eq!(choice(&settings, true), Some(("https_proxy", "http://secure:1".to_owned())));
        assert_eq!(choice(&settings, false), Some(("http_proxy", "http://plain:2".to_owned())));
        settings.https = Some(" ".to_owned());
        settings.http = None;
        assert_eq!(choice(&settings, true), Some(("all_proxy", "socks5://all:3".to_owned())));
        assert_eq!(choice(&settings, false), Some(("all_proxy", "socks5://all:3".to_owned())));
        settings.all = None;
        assert_eq!(choice(&settings, true), None);
    }

    #[test]
    fn a_loopback_host_is_never_reached_through_a_proxy() {
        for host in
            ["localhost", "LOCALHOST.", "api.localhost", "127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1"]
        {
            assert_eq!(settings("").choose(false, host, 80), None, "{host}");
        }
        for host in ["localhost.example", "notlocalhost", "128.0.0.1", "::2"] {
            assert!(settings("").choose(false, host, 80).is_some(), "{host}");
        }
    }

    #[test]
    fn entries_of_no_proxy_match_as_in_curl() {
        let excluded = [
            ("*", "api.example"),
            ("other.example,*", "api.example"),
            ("example.com", "example.com"),
            ("example.com", "EXAMPLE.com."),
            ("example.com", "api.example.com"),
            (".example.com", "example.com"),
            (".example.com", "a.b.example.com"),
            ("Example.COM.", "api.example.com"),
            ("one.example, two.example three.example", "two.example"),
            ("one.example, two.example three.example", "three.example"),
            ("example.com:8080", "api.example.com"),
            ("10.1.2.3", "10.1.2.3"),
            ("10.1.2.3:8080", "10.1.2.3"),
            ("10.0.0.0/8", "10.200.0.1"),
            ("192.168.64.0/18", "192.168.127.255"),
            ("0.0.0.0/0", "8.8.8.8"),
            ("fd00::1", "fd00:0::1"),
            ("[fd00::1]", "fd00::1"),
            ("[fd00::1]:8080", "fd00::1"),
            ("fd00::/8", "fdff::1"),
        ];
        for (list, host) in excluded {
            assert!(is_excluded(list, host, 8080), "{list} should cover {host}");
        }
        let proxied = [
            ("", "api.example"),
            (",  ,", "api.example"),
            (".", "api.example"),
            ("example.com", "notexample.com"),
            ("example.com", "example.com.evil"),
            ("api.example.com", "example.com"),
            ("*.example.com", "api.example.com"),
            ("example.com:80", "example.com"),
            ("example.com:x", "example.com"),
            ("10.1.2.3", "10.1.2.30"),
            ("10.0.0.0/8", "11.0.0.1"),
            ("10.0.0.0/8", "api.example"),
            ("10.0.0.0/x", "10.0.0.1"),
            ("192.168.64.0/18", "192.168.128.0"),
            ("fd00::/8", "fe00::1"),
            ("[fd00::1]:80", "fd00::1"),
            ("0.0.0.0/0", "fd00::1"),
        ];
        for (list, host) in proxied {
            assert!(!is_excluded(list, host, 8080), "{list} should not cover {host}");
        }
    }
}
