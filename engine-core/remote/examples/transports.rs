//! What a transport costs: gRPC (tonic) beside the frames of this crate, on loopback, in one run. The figures of ADR 0009.
//!
//! `cargo run --release -p tidegraph-remote --features grpc --example transports`
//!
//! Both carry the same messages (`Call`, `Reply`) between blocking callers and a server that answers at once, from
//! memory: a point read of 1 vertex, and an answer of about 1 MB. Turns alternate, and the median of the turns is shown.

// A measurement, not a part of the product: it ends with a panic where it cannot go on.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegraph_apl::*;
use tidegraph_platform::{RealClock, RealRandom};
use tidegraph_remote::{ClientConfig, Node, RemoteNode, Security, Server, ServerConfig, Services};
use tidegraph_types::*;
use tidegraph_wire::apl::{Request, encode_request};
use tidegraph_wire::{Message, proto};

const TURNS: usize = 7;
const CALLS: usize = 2000;
const LARGE_CALLS: usize = 60;
const CALLERS: usize = 16;
const LARGE_ROWS: usize = 60_000;

/// Answers from memory what the measurement asks.
struct Fixed;

impl Apl for Fixed {
    fn resolve_vertices(&self, _: At, ids: &[Str], out: &mut Vec<Option<Gui>>) -> Result<(), Error> {
        out.resize(out.len() + ids.len(), None);
        Ok(())
    }
    fn resolve_edges(&self, _: At, ids: &[Str], out: &mut Vec<Option<Edge>>) -> Result<(), Error> {
        out.resize(out.len() + ids.len(), None);
        Ok(())
    }
    fn place(&self, _: At, _: &[(Str, u64)], _: &mut Vec<(Gui, u64)>) -> Result<(), Error> {
        Ok(())
    }
    fn vertices(&self, _: At, _: &VertexRead, frontier: &[Gui], out: &mut VertexRows) -> Result<(), Error> {
        for _ in frontier {
            out.present.push(true);
            for key in 0..3 {
                out.cells.push(PropertyCell {
                    key: Token(key),
                    cardinality: Cardinality::Single,
                    value: Value::Long(i64::from(key) * 1_000_000),
                });
            }
            out.cell_ends.push(out.cells.len() as u32);
        }
        Ok(())
    }
    fn edges(&self, _: At, _: &EdgeRead, _: &[Edge], _: &mut EdgeRows) -> Result<(), Error> {
        Ok(())
    }
    fn expand(
        &self,
        _: At,
        _: &Expand,
        _: &[Gui],
        _: Cursor,
        out: &mut Expansion,
    ) -> Result<Option<Cursor>, Error> {
        for row in 0..LARGE_ROWS as u32 {
            out.push(row / 20, Gui(u64::from(row) << 32), Sid(u64::from(row)), Token(3), true);
        }
        Ok(None)
    }
    fn degrees(&self, _: At, _: &Expand, _: &[Gui], _: &mut Vec<u64>) -> Result<(), Error> {
        Ok(())
    }
    fn scan_vertices(
        &self,
        _: At,
        _: &VertexScan,
        _: ScanCursor,
        _: &mut Vec<Gui>,
    ) -> Result<Option<ScanCursor>, Error> {
        Ok(None)
    }
    fn scan_edges(
        &self,
        _: At,
        _: &EdgeScan,
        _: ScanCursor,
        _: &mut EdgeRuns,
    ) -> Result<Option<ScanCursor>, Error> {
        Ok(None)
    }
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}

impl Node for Fixed {
    fn partition(&self, _: PartitionId, _: Epoch) -> Result<Arc<dyn Apl>, Error> {
        Ok(Arc::new(Fixed))
    }
    fn wait_for(&self, _: PartitionId, _: Version, _: Duration) -> bool {
        true
    }
}

fn call(request: &Request) -> proto::call::Kind {
    let request = encode_request(At::default(), request).unwrap();
    let parts = vec![proto::PartitionCall { partition: 0, request: Some(request) }];
    proto::call::Kind::Apl(proto::PartitionsCall { parts })
}

fn point() -> proto::call::Kind {
    let read = VertexRead { properties: Projection::All, ..VertexRead::default() };
    call(&Request::Vertices(read, vec![Gui(7)]))
}

fn large() -> proto::call::Kind {
    let frontier: Vec<Gui> = (0..LARGE_ROWS as u64 / 20).map(Gui).collect();
    call(&Request::Expand(Expand::all(Direction::Out), frontier, Cursor::default()))
}

trait Transport: Sync {
    fn ask(&self, call: proto::call::Kind) -> proto::reply::Kind;
}

struct Framed(Arc<RemoteNode>);

impl Transport for Framed {
    fn ask(&self, call: proto::call::Kind) -> proto::reply::Kind {
        self.0.ask(call, Duration::from_secs(10)).unwrap()
    }
}

/// User and system time of this process.
fn cpu() -> Duration {
    // SAFETY: an all-zero `rusage` is a value of it, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let of = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    of(usage.ru_utime) + of(usage.ru_stime)
}

fn rows(reply: &proto::reply::Kind) -> usize {
    let proto::reply::Kind::Apl(reply) = reply else { panic!("{reply:?}") };
    let answer = tidegraph_wire::apl::decode_answer(reply.answers[0].clone()).unwrap();
    match answer {
        tidegraph_wire::apl::Answer::Vertices(rows) => rows.present.len(),
        tidegraph_wire::apl::Answer::Expand(rows, _) => rows.len(),
        other => panic!("{other:?}"),
    }
}

#[derive(Default)]
struct Figures {
    p50: Vec<f64>,
    p99: Vec<f64>,
    cpu_lone: Vec<f64>,
    rate: Vec<f64>,
    cpu_many: Vec<f64>,
    large: Vec<f64>,
    cpu_large: Vec<f64>,
}

fn turn(transport: &dyn Transport, figures: &mut Figures) {
    let micros = |time: Duration, count: usize| time.as_secs_f64() * 1e6 / count as f64;
    let (mut times, before) = (Vec::new(), cpu());
    for _ in 0..CALLS {
        let start = Instant::now();
        assert_eq!(rows(&transport.ask(point())), 1);
        times.push(start.elapsed());
    }
    figures.cpu_lone.push(micros(cpu() - before, CALLS));
    times.sort_unstable();
    figures.p50.push(micros(times[CALLS / 2], 1));
    figures.p99.push(micros(times[CALLS * 99 / 100], 1));
    let (start, before, done) = (Instant::now(), cpu(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                for _ in 0..CALLS / 4 {
                    done.fetch_add(rows(&transport.ask(point())) as u64, Ordering::Relaxed);
                }
            });
        }
    });
    let count = done.into_inner() as usize;
    figures.rate.push(count as f64 / start.elapsed().as_secs_f64());
    figures.cpu_many.push(micros(cpu() - before, count));
    let (mut times, before) = (Vec::new(), cpu());
    for _ in 0..LARGE_CALLS {
        let start = Instant::now();
        assert_eq!(rows(&transport.ask(large())), LARGE_ROWS);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    figures.large.push(micros(times[LARGE_CALLS / 2], 1));
    figures.cpu_large.push(micros(cpu() - before, LARGE_CALLS));
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() {
    let services = Services { node: Some(Arc::new(Fixed)), ..Services::default() };
    let clock = Arc::new(RealClock::new());
    let server =
        Server::start(ServerConfig::default(), Security::none(), services, clock.clone(), &RealRandom)
            .unwrap();
    let address = server.address().to_string();
    let node =
        RemoteNode::new(&address, ClientConfig::default(), Security::none(), clock, Arc::new(RealRandom));
    let framed = Framed(node);
    let grpc = grpc::start();
    let sizes = (rows(&framed.ask(large())), framed.ask(large()));
    if let proto::reply::Kind::Apl(reply) = &sizes.1 {
        println!("large answer: {} rows, {} bytes", sizes.0, reply.encoded_len());
    }
    let transports: [(&str, &dyn Transport); 2] = [("gRPC (tonic)", &grpc), ("frames", &framed)];
    let mut figures = [Figures::default(), Figures::default()];
    for _ in 0..TURNS {
        for ((_, transport), figures) in transports.iter().zip(&mut figures) {
            turn(*transport, figures);
        }
    }
    println!("medians of {TURNS} turns; processor time is that of client and server together");
    for ((name, _), figures) in transports.iter().zip(figures) {
        println!(
            "{name:14} point read p50 {:6.1} us, p99 {:6.1} us, processor {:5.1} us | {CALLERS} callers {:7.0} calls/s, processor {:5.1} us | large p50 {:7.0} us, processor {:7.0} us",
            median(figures.p50),
            median(figures.p99),
            median(figures.cpu_lone),
            median(figures.rate),
            median(figures.cpu_many),
            median(figures.large),
            median(figures.cpu_large),
        );
    }
}

/// The same messages over gRPC. What tonic's generator would write, by hand, so that nothing is generated for this alone.
mod grpc {
    use super::*;
    use std::marker::PhantomData;
    use std::task::{Context, Poll};
    use tonic::Status;
    use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
    use tonic::codegen::{BoxFuture, StdError, http};

    const LIMIT: usize = 64 << 20;
    const PATH: &str = "/tidegraph.v1.Node/Ask";

    pub struct Prost<E, D>(PhantomData<(E, D)>);

    impl<E, D> Default for Prost<E, D> {
        fn default() -> Self {
            Self(PhantomData)
        }
    }

    impl<E: Message + 'static, D: Message + Default + 'static> Codec for Prost<E, D> {
        type Encode = E;
        type Decode = D;
        type Encoder = Half<E>;
        type Decoder = Half<D>;
        fn encoder(&mut self) -> Half<E> {
            Half(PhantomData)
        }
        fn decoder(&mut self) -> Half<D> {
            Half(PhantomData)
        }
    }

    pub struct Half<M>(PhantomData<M>);

    impl<E: Message> Encoder for Half<E> {
        type Item = E;
        type Error = Status;
        fn encode(&mut self, item: E, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
            item.encode(out).map_err(|error| Status::internal(error.to_string()))
        }
    }

    impl<D: Message + Default> Decoder for Half<D> {
        type Item = D;
        type Error = Status;
        fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<D>, Status> {
            D::decode(from).map(Some).map_err(|error| Status::internal(error.to_string()))
        }
    }

    #[derive(Clone)]
    struct Service;

    impl tonic::server::NamedService for Service {
        const NAME: &'static str = "tidegraph.v1.Node";
    }

    struct Answers;

    impl tonic::server::UnaryService<proto::Call> for Answers {
        type Response = proto::Reply;
        type Future = BoxFuture<tonic::Response<proto::Reply>, Status>;
        fn call(&mut self, request: tonic::Request<proto::Call>) -> Self::Future {
            Box::pin(async move { Ok(tonic::Response::new(answer(request.into_inner()))) })
        }
    }

    fn answer(call: proto::Call) -> proto::Reply {
        let Some(proto::call::Kind::Apl(apl)) = call.kind else { panic!("{call:?}") };
        let answers = apl.parts.into_iter().map(|part| {
            let (at, request) = tidegraph_wire::apl::decode_request(part.request.unwrap()).unwrap();
            let answer = match request {
                Request::Vertices(read, frontier) => {
                    let mut out = VertexRows::default();
                    Fixed.vertices(at, &read, &frontier, &mut out).unwrap();
                    tidegraph_wire::apl::Answer::Vertices(out)
                }
                Request::Expand(expand, frontier, from) => {
                    let mut out = Expansion::default();
                    let next = Fixed.expand(at, &expand, &frontier, from, &mut out).unwrap();
                    tidegraph_wire::apl::Answer::Expand(out, next)
                }
                other => panic!("{other:?}"),
            };
            tidegraph_wire::apl::encode_answer(&answer).unwrap()
        });
        let answers = answers.collect();
        proto::Reply { kind: Some(proto::reply::Kind::Apl(proto::PartitionsReply { answers, applied: 0 })) }
    }

    impl tonic::codegen::Service<http::Request<tonic::body::Body>> for Service {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
            Box::pin(async move {
                let codec = Prost::<proto::Reply, proto::Call>::default();
                let mut grpc =
                    tonic::server::Grpc::new(codec).apply_max_message_size_config(Some(LIMIT), Some(LIMIT));
                Ok(grpc.unary(Answers, request).await)
            })
        }
    }

    pub struct Client {
        runtime: tokio::runtime::Runtime,
        channel: tonic::transport::Channel,
    }

    impl Transport for Client {
        fn ask(&self, call: proto::call::Kind) -> proto::reply::Kind {
            let channel = self.channel.clone();
            let answered = self.runtime.block_on(async move {
                let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(LIMIT);
                grpc.ready().await.map_err(|error| Status::unknown(StdError::from(error).to_string()))?;
                let call = proto::Call { remaining_us: 10_000_000, kind: Some(call) };
                let codec = Prost::<proto::Call, proto::Reply>::default();
                grpc.unary(tonic::Request::new(call), http::uri::PathAndQuery::from_static(PATH), codec).await
            });
            answered.unwrap().into_inner().kind.unwrap()
        }
    }

    /// A server and a client, each with a runtime of its own, as in two processes.
    pub fn start() -> Client {
        let runtime =
            || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (serving, runtime) = (runtime(), runtime());
        let listener = serving.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            serving.block_on(async move {
                let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
                tonic::transport::Server::builder()
                    .add_service(Service)
                    .serve_with_incoming(incoming)
                    .await
                    .unwrap();
            });
        });
        let endpoint = tonic::transport::Endpoint::new(format!("http://{address}"))
            .unwrap()
            .tcp_nodelay(true)
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(16 << 20);
        let channel = runtime.block_on(endpoint.connect()).unwrap();
        Client { runtime, channel }
    }
}
