//! The exporter of spans, and the contexts that messages carry.

use crate::settings::Settings;
use anyhow::Context as _;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_aws::trace::XrayPropagator;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::collections::BTreeMap;
use tidegraph_platform::traces::{self, Propagation};
use tracing::{Level, Metadata, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::{FilterFn, LevelFilter};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry};

/// Sends spans to a collector until it is dropped.
#[derive(Debug)]
pub(crate) struct Exporter {
    provider: SdkTracerProvider,
    service: &'static str,
}

impl Exporter {
    pub fn start(settings: &Settings, service: &'static str) -> anyhow::Result<Self> {
        let spans = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_endpoint(&settings.endpoint)
            .build()
            .with_context(|| format!("traces cannot be sent to {}", settings.endpoint))?;
        let name = settings.service.clone().unwrap_or_else(|| service.to_owned());
        let provider = SdkTracerProvider::builder()
            .with_sampler(settings.sampler.clone())
            .with_resource(Resource::builder().with_service_name(name).build())
            .with_batch_exporter(spans)
            .build();
        Ok(Self { provider, service })
    }

    /// Makes this exporter, and logs, what the spans and events of this process go to.
    pub fn install(&self, ansi: bool, logs: EnvFilter) {
        let written = tracing_subscriber::fmt::layer().with_ansi(ansi).with_writer(std::io::stderr);
        let sent = layer(self.provider.tracer(self.service));
        Registry::default().with(sent).with(written.with_filter(logs)).init();
        traces::install(Box::new(Contexts::new(self.provider.clone())));
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // The collector may be gone.
        if let Err(error) = self.provider.shutdown() {
            tracing::debug!(%error, "the last spans were not sent");
        }
    }
}

/// Returns the layer that records the spans of this project, and nothing of its libraries.
fn layer(tracer: SdkTracer) -> impl Layer<Registry> {
    let is_ours = |of: &Metadata<'_>| {
        of.is_span() && *of.level() <= Level::DEBUG && of.target().starts_with("tidegraph")
    };
    let filter = FilterFn::new(is_ours).with_max_level_hint(LevelFilter::DEBUG);
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_filter(filter)
}

/// Contexts of W3C, and those that AWS's load balancers and API Gateway send.
struct Contexts {
    w3c: TraceContextPropagator,
    xray: XrayPropagator,
    provider: SdkTracerProvider,
}

impl Contexts {
    fn new(provider: SdkTracerProvider) -> Self {
        Self { w3c: TraceContextPropagator::new(), xray: XrayPropagator::new(), provider }
    }
}

impl Propagation for Contexts {
    fn context(&self, span: &Span) -> Option<String> {
        let context = span.context();
        if !context.span().span_context().is_sampled() {
            return None;
        }
        let mut field = Traceparent(None);
        self.w3c.inject_context(&context, &mut field);
        field.0
    }

    fn adopt(&self, span: &Span, field: &dyn Fn(&str) -> Option<String>) {
        const FIELDS: [&str; 3] = ["traceparent", "tracestate", "x-amzn-trace-id"];
        let fields: BTreeMap<&str, String> =
            FIELDS.into_iter().filter_map(|name| Some((name, field(name)?))).collect();
        let mut parent = self.w3c.extract(&Fields(&fields));
        if !parent.span().span_context().is_valid() {
            parent = self.xray.extract(&Fields(&fields));
        }
        if parent.span().span_context().is_valid() {
            // It fails where the span is not recorded, or has begun.
            let _ = span.set_parent(parent);
        }
    }

    fn flush(&self) {
        if let Err(error) = self.provider.force_flush() {
            tracing::debug!(%error, "spans were not sent");
        }
    }
}

/// The field `traceparent` of a message, once it is set.
struct Traceparent(Option<String>);

impl Injector for Traceparent {
    fn set(&mut self, key: &str, value: String) {
        if key.eq_ignore_ascii_case("traceparent") {
            self.0 = Some(value);
        }
    }
}

/// Fields of a message by their lower-case names.
struct Fields<'f>(&'f BTreeMap<&'f str, String>);

impl Extractor for Fields<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key.to_ascii_lowercase().as_str()).map(String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().copied().collect()
    }
}
