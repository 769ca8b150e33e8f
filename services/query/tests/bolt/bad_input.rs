//! Bytes, messages and clients that are not as they should be.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_bolt_end_the_connection_and_nothing_else() {
    let server = Server::start(WIDE, None).await;
    let greeting = |versions: &[u8]| [&[0x60, 0x60, 0xB0, 0x17][..], versions].concat();
    let closed_after = |bytes: Vec<u8>, answer: Vec<u8>| async move {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(&bytes).await.unwrap();
        let mut rest = vec![];
        let _ = timeout(PATIENCE, socket.read_to_end(&mut rest)).await.unwrap();
        assert_eq!(rest, answer);
    };
    // Only the first byte is Bolt's.
    closed_after([&[0x60][..], &[0; 30]].concat(), vec![]).await;
    // No version in common.
    closed_after(greeting(&[0, 0, 1, 2, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0]), vec![0; 4]).await;
    // A choice that the manifest does not have.
    let manifest = vec![0, 0, 1, 0xFF, 2, 0, 8, 8, 5, 0, 0, 4, 4, 0];
    let mut asks = greeting(&[0, 0, 1, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    asks.extend([0, 0, 9, 9, 0]);
    closed_after(asks, manifest).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_messages_are_refused_and_the_session_goes_on() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    let chunked = |bytes: &[u8]| {
        let mut chunks = vec![];
        write_chunks(bytes, &mut chunks).unwrap();
        chunks
    };
    let deep = [&[0xB3, RUN, 0x81, b'x', 0xA1, 0x81, b'a'][..], &[0x91; 10_000], &[0xC0, 0xA0]].concat();
    let lies = [0xB3, RUN, 0xD2, 0xFF, 0xFF, 0xFF, 0xFF, b'x'];
    let not_utf8 = [0xB3, RUN, 0x81, 0xFF, 0xA0, 0xA0];
    let unknown = [0xB0, 0x55];
    let twice = [0xB1, PULL, 0xA2, 0x81, b'n', 1, 0x81, b'n', 2];
    for wrong in [&deep[..], &lies, &not_utf8, &unknown, &twice, &[0xC0], &[0xB3, RUN]] {
        client.send(&chunked(wrong)).await;
        assert_eq!(client.failure().await, "Neo.ClientError.Request.InvalidFormat", "{wrong:?}");
        client.succeeds(RESET, &[]).await;
    }
    let node = [0xB3, RUN, 0x81, b'x', 0xA1, 0x81, b'a', 0xB1, b'N', 1, 0xA0];
    client.send(&chunked(&node)).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Statement.UnsupportedOperationError");
    client.succeeds(RESET, &[]).await;
    // Over the limit of 1 MiB.
    client.send(&run(&"x".repeat(3 << 20))).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Request.Invalid");
    client.succeeds(RESET, &[]).await;
    for (extra, code) in [
        (("bookmarks", Value::list(vec!["x".into()])), "Neo.ClientError.Transaction.InvalidBookmark"),
        (("tx_timeout", Value::from(-1_i64)), "Neo.ClientError.Statement.ArgumentError"),
        (("mode", "x".into()), "Neo.ClientError.Statement.ArgumentError"),
        (("imp_user", "eve".into()), "Neo.ClientError.Security.Forbidden"),
    ] {
        client.send(&message(RUN, &["RETURN 1".into(), map(&[]), map(&[extra])])).await;
        assert_eq!(client.failure().await, code);
        client.succeeds(RESET, &[]).await;
    }
    assert_eq!(client.rows("RETURN 1").await.0.len(), 1);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_cut_is_refused() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    let chunks = message(RUN, &["RETURN $a".into(), map(&[("a", Value::Double(1.5))]), map(&[])]);
    // Without the length of its one chunk, and the end.
    let whole = &chunks[2..chunks.len() - 2];
    for end in 1..whole.len() {
        let mut cut = vec![];
        write_chunks(&whole[..end], &mut cut).unwrap();
        client.send(&cut).await;
        assert_eq!(client.failure().await, "Neo.ClientError.Request.InvalidFormat", "{end} bytes");
        client.succeeds(RESET, &[]).await;
    }
    for end in 1..chunks.len() {
        let mut leaves = server.client().await;
        leaves.send(&chunks[..end]).await;
    }
    assert_eq!(client.rows("RETURN 1").await.0.len(), 1);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_never_ends_is_closed() {
    let limits = server::Limits { body: Duration::from_millis(200), ..WIDE };
    let server = Server::with_memory(8 << 20, limits, None).await;
    let mut client = server.client().await;
    let chunk = [&[0xFF, 0xFF][..], &[0; 65_535]].concat();
    let closed = async { while client.socket.write_all(&chunk).await.is_ok() {} };
    timeout(PATIENCE, closed).await.unwrap();
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_no_records_is_closed() {
    let limits = server::Limits { write: Duration::from_millis(200), ..WIDE };
    let server = Server::with_memory(16 << 20, limits, None).await;
    for begins in [vec![], message(BEGIN, &[map(&[])])] {
        let mut client = server.client().await;
        client.send(&[begins, run(MANY), pull(-1)].concat()).await;
        let mut begin = [0; 1_000];
        while timeout(PATIENCE, client.socket.peek(&mut begin)).await.unwrap().unwrap() < begin.len() {}
        server.becomes_free().await;
        while client.receive().await.is_some() {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_before_authentication_is_short() {
    let server = Server::start(WIDE, Some("a token of the service")).await;
    let mut client = server.greeted([0, 0, 8, 5]).await;
    let long = "x".repeat(100_000);
    client.send(&message(HELLO, &[map(&[("user_agent", long.as_str().into())])])).await;
    assert_eq!(client.failure().await, "Neo.ClientError.Request.Invalid");
    client.is_closed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_arrive_count_as_memory() {
    let server = Server::start(WIDE, None).await;
    let mut client = server.client().await;
    // A message of which 640 KiB arrive and the end does not.
    for _ in 0..10 {
        client.send(&[&[0xFF, 0xFF][..], &[0; 65_535]].concat()).await;
    }
    while server.memory().await < 500_000 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(client);
    server.becomes_free().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_is_refused_if_the_queries_leave_no_memory_for_it() {
    let server = Server::with_memory(4 << 20, WIDE, None).await;
    let mut client = server.client().await;
    let nulls = Value::list(vec![Value::Null; 500_000]);
    client.send(&message(RUN, &["RETURN 1".into(), map(&[("a", nulls)]), map(&[])])).await;
    assert_eq!(client.failure().await, "Neo.TransientError.General.MemoryPoolOutOfMemoryError");
    client.succeeds(RESET, &[]).await;
    assert_eq!(client.rows("RETURN 1").await.0.len(), 1);
}
