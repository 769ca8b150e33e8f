//! What the environment says about traces, in OpenTelemetry's variables.

use anyhow::{bail, ensure};
use opentelemetry_sdk::trace::Sampler;

/// Part of the requests that are traced, unless the environment or the caller says otherwise. A service answers many
/// thousand requests a second, and each traced one is several spans.
const RATIO: f64 = 0.01;

/// Where spans go, and which requests are traced.
#[derive(Debug)]
pub(crate) struct Settings {
    /// URL that spans are posted to.
    pub endpoint: String,
    pub sampler: Sampler,
    /// Name of the service; `None`: the program's.
    pub service: Option<String>,
}

impl Settings {
    /// Reads the settings from variables; `None` if no collector is named.
    pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Option<Self>> {
        let is_disabled =
            variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let no_traces =
            variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value.eq_ignore_ascii_case("none"));
        if is_disabled || no_traces {
            return Ok(None);
        }
        let Some(endpoint) = endpoint(variable)? else { return Ok(None) };
        Ok(Some(Self { endpoint, sampler: sampler(variable)?, service: variable("OTEL_SERVICE_NAME") }))
    }
}

fn endpoint(variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Option<String>> {
    const OF_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    const OF_ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let of_all = |base: String| (OF_ALL, format!("{}/v1/traces", base.trim_end_matches('/')));
    let given = variable(OF_TRACES).map(|url| (OF_TRACES, url)).or_else(|| variable(OF_ALL).map(of_all));
    let Some((name, url)) = given else { return Ok(None) };
    let parsed: Result<http::Uri, _> = url.parse();
    match parsed {
        Ok(uri) if uri.scheme_str() == Some("http") && uri.host().is_some() => Ok(Some(url)),
        Ok(uri) if uri.scheme_str() == Some("https") => {
            bail!(
                "{name} is {url:?}: traces go to a collector beside the process by http, and the collector sends them on by https"
            )
        }
        _ => bail!("{name} gives {url:?}, which is no URL like http://127.0.0.1:4318"),
    }
}

fn sampler(variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Sampler> {
    let name = variable("OTEL_TRACES_SAMPLER").unwrap_or_else(|| "parentbased_traceidratio".into());
    let of_parent = |root| Sampler::ParentBased(Box::new(root));
    Ok(match name.as_str() {
        "always_on" => Sampler::AlwaysOn,
        "always_off" => Sampler::AlwaysOff,
        "traceidratio" => Sampler::TraceIdRatioBased(ratio(variable)?),
        "parentbased_always_on" => of_parent(Sampler::AlwaysOn),
        "parentbased_always_off" => of_parent(Sampler::AlwaysOff),
        "parentbased_traceidratio" => of_parent(Sampler::TraceIdRatioBased(ratio(variable)?)),
        other => bail!(
            "OTEL_TRACES_SAMPLER is {other:?}; there are always_on, always_off, traceidratio, parentbased_always_on, \
             parentbased_always_off and parentbased_traceidratio"
        ),
    })
}

fn ratio(variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<f64> {
    let Some(text) = variable("OTEL_TRACES_SAMPLER_ARG") else { return Ok(RATIO) };
    let ratio = text.parse().unwrap_or(f64::NAN);
    ensure!(
        (0.0..=1.0).contains(&ratio),
        "OTEL_TRACES_SAMPLER_ARG is {text:?}, which is no number from 0 to 1"
    );
    Ok(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[(&str, &str)]) -> anyhow::Result<Option<Settings>> {
        Settings::of(&|name| given.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_collector_is_named_by_either_variable() {
        assert!(of(&[]).unwrap().is_none());
        let all = of(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/")]).unwrap().unwrap();
        assert_eq!(all.endpoint, "http://127.0.0.1:4318/v1/traces");
        let both = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://[::1]:9/spans"),
            ("OTEL_SERVICE_NAME", "graph"),
        ];
        let of_traces = of(&both).unwrap().unwrap();
        assert_eq!(
            (of_traces.endpoint.as_str(), of_traces.service.as_deref()),
            ("http://[::1]:9/spans", Some("graph"))
        );
        for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert!(of(&[both[0], off]).unwrap().is_none(), "{off:?}");
        }
    }

    #[test]
    fn a_value_that_cannot_be_is_refused_with_its_variable() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        for (name, value, says) in [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "127.0.0.1:4318", "is no URL like"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "grpc://127.0.0.1:4317", "is no URL like"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://collector", "by https"),
            ("OTEL_TRACES_SAMPLER", "sometimes", "there are always_on"),
            ("OTEL_TRACES_SAMPLER_ARG", "2", "no number from 0 to 1"),
            ("OTEL_TRACES_SAMPLER_ARG", "half", "no number from 0 to 1"),
            ("OTEL_TRACES_SAMPLER_ARG", "NaN", "no number from 0 to 1"),
        ] {
            let refused = of(&[endpoint, (name, value)]).unwrap_err().to_string();
            assert!(refused.contains(name) && refused.contains(value) && refused.contains(says), "{refused}");
        }
    }

    #[test]
    fn samplers_are_those_of_the_specification() {
        let sampler = |given: &[(&str, &str)]| {
            let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
            let all: Vec<_> = std::iter::once(endpoint).chain(given.iter().copied()).collect();
            format!("{:?}", of(&all).unwrap().unwrap().sampler)
        };
        assert_eq!(sampler(&[]), "ParentBased(TraceIdRatioBased(0.01))");
        assert_eq!(sampler(&[("OTEL_TRACES_SAMPLER_ARG", "0.5")]), "ParentBased(TraceIdRatioBased(0.5))");
        assert_eq!(sampler(&[("OTEL_TRACES_SAMPLER", "parentbased_always_on")]), "ParentBased(AlwaysOn)");
        assert_eq!(sampler(&[("OTEL_TRACES_SAMPLER", "always_off")]), "AlwaysOff");
    }
}
