// Package secure encrypts connections with TLS, by the crypto/tls of the Go installation. A [listener.Filter] made by
// [Server] or [Client] makes the handshake and puts TLS under the connection:
//
//	v := &service.Listener{
//		Address: ":443",
//		Filters: []listener.Filter{secure.Server(config, nil)},
//		Handler: site.Serve,
//	}
//
// Above the filter the connection is a [listener.Conn] like any other: lent input, gathered writes, water marks,
// deadlines, Sent, Push and staged closes. It has no goroutine. What differs:
//
//   - CloseWrite and Close send the alert close_notify. After CloseWrite the transport stays open in both directions, and further
//     input of the peer is read.
//   - Close waits for the end of the transport, within Limits.Linger, only if the peer has sent no close_notify.
//   - Conn.Ended reports the end of the transport. The peer's close_notify is io.EOF, when it is read.
//   - An error of TLS is a [listener.PeerError]: errors.Is and errors.As find what crypto/tls says.
//   - A transport that ends without close_notify is io.EOF between two records, as in crypto/tls, and io.ErrUnexpectedEOF
//     within one. So a protocol must tell by itself whether a message is whole, as HTTP does (RFC 8446, section 6.1).
//   - Limits bound encrypted bytes. While more than Limits.High and 16 KiB of them are queued, nothing is decrypted either: a
//     peer could ask for answers without end (KeyUpdate).
//   - The result of Conn.Room holds for one Write, and not for several in a turn: each record, of about 1 KiB at first and 16 KiB
//     later, grows by 22 to 69 bytes.
//   - SendFile reads the file, since all bytes have to be encrypted.
//   - While the sending side is lent to a goroutine (monitor.OutputLender) that goroutine encrypts. Answers of crypto/tls to the
//     peer are meanwhile held, and sent before the next data, or when the loan ends. At most 96 KiB are encrypted and not sent.
//
// [State] returns what was negotiated. The Handler of a service comes after the filters, so it can choose the protocol:
//
//	func handler(c *listener.Conn) act.Action {
//		if state, _ := secure.State(c); state.NegotiatedProtocol == "echo" {
//			return echo(c)
//		}
//		return site.Serve(c)
//	}
//
// In a coroutine the connection is c.Under(), and for a request of HTTP it is r.Conn().
//
// # Certificates
//
// With package program a [TLS] is an Option, whose flags choose the certificate. A certificate in files is a [Files], which reads
// it again on SIGHUP, for servers and for clients. One for development and tests is made by [SelfSigned]. For anything else use
// the functions of the tls.Config.
//
// # Resumption
//
// crypto/tls makes its own keys for session tickets, which end with the process. The keys of a [Tickets] are passed on in an
// upgrade (upgrade.Upgrade), so the newer program resumes the sessions of the older one. There is a new key each day.
//
// # Handshakes
//
// A handshake costs about a millisecond of CPU, and functions of the tls.Config may take longer. So it is computed on
// goroutines other than the schedulers': see [Handshakes].
package secure
