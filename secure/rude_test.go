package secure_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/internal/tlstest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// dribbles is a system whose receives return a byte each.
type dribbles struct{ servertest.OS }

func (d *dribbles) Receive(fd int, p []byte) (int, error) { return d.OS.Receive(fd, p[:1]) }

// Both sides receive byte by byte, in the handshake and after it. (On TCP a receive that is short is the last one.)
func TestByteByByte(t *testing.T) {
	server, client := identities(t)
	for _, h := range []*secure.Handshakes{nil, {OnReactor: true}} {
		for _, v := range versions {
			os := &dribbles{}
			path := filepath.Join(servertest.ShortDir(t), "s")
			unix := &service.Unix{Path: path, Handler: echo, Filters: []listener.Filter{secure.Server(server, h)}}
			r := servertest.Start(t, act.Config{Schedulers: 1}, inject(os), unix.Setup)
			x := &call{sends: string(noise(3000)), connect: listener.Connect{Address: "unix:" + path,
				Filters: []listener.Filter{secure.Client(version(client, v), h)}}}
			x.run(t, inject(os))
			require.NoError(t, x.err)
			require.Equal(t, x.sends, x.got)
			r.Group.Shutdown(servertest.Drain)
			require.NoError(t, r.End())
			require.Greater(t, os.Count("receive"), 6000)
		}
	}
}

// Many records of one byte arrive at once, and one of 16 KiB in between.
func TestRecordsOfOneByteAndOf16KiB(t *testing.T) {
	server, client := identities(t)
	client.DynamicRecordSizingDisabled = true
	for _, v := range versions {
		s := serve(t, overTLS(server))
		c, h := s.hold(version(client, v))
		sent := noise(1000 + 16<<10 + 1000)
		for i := 0; i < len(sent); {
			n := 1
			if i == 1000 {
				n = 16 << 10
			}
			_, err := c.Write(sent[i : i+n])
			require.NoError(t, err)
			i += n
		}
		h.send(t)
		got := make([]byte, len(sent))
		_, err := io.ReadFull(c, got)
		require.NoError(t, err)
		require.Equal(t, sent, got)
		_ = h.Close()
		s.drain()
	}
}

// changeCipherSpec is a record that means nothing in TLS 1.3 (RFC 8446, appendix D.4).
var changeCipherSpec = []byte{20, 3, 3, 0, 1, 1}

// The head of a record of SSL 2.0, which crypto/tls reads on after. It waits for the body.
func TestAHeadOfAnotherVersionHoldsUpNobody(t *testing.T) {
	server, client := identities(t)
	for _, h := range []*secure.Handshakes{nil, {OnReactor: true}} {
		tcp := overTLS(server)
		tcp.Filters[0] = secure.Server(server, h)
		s := serve(t, tcp)
		old := servertest.Dial(t, s.Addr())
		servertest.Send(t, old, "\x16\x02\x00\x00\x20")
		c := s.dial(client)
		servertest.Echo(t, c, "x")
		halves(t, c)
		_ = old.Close()
		s.drain()
	}
}

// Empty, padded and meaningless records hide no bytes, and are no bytes. Too many of them in a row are refused.
func TestRecordsWithoutContent(t *testing.T) {
	server, client := identities(t)
	s := serve(t, overTLS(server))
	r := s.raw(client)
	r.send(changeCipherSpec, r.record(tlstest.Data, ""))
	r.send(bytes.Join([][]byte{r.padded("one", 100), r.padded("", 1000), changeCipherSpec,
		r.KeyUpdate(true), r.record(tlstest.Data, "two"), r.KeyUpdate(true)}, nil))
	r.send(r.record(tlstest.Data, ""), r.record(tlstest.Data, "three"))
	r.send(r.Record(tlstest.Alert, tlstest.CloseNotify, 0))
	kinds := recordsUntilEnd(t, r)
	require.GreaterOrEqual(t, kinds, 3+2+1, "three echoes or fewer, two answers to KeyUpdates, close_notify")
	_ = r.Close()

	r = s.raw(client)
	for range 100 {
		if _, err := r.Write(r.record(tlstest.Data, "")); err != nil {
			break
		}
	}
	_ = recordsUntilEnd(t, r)
	_ = r.Close()
	s.drain()
	s.withoutReports()
}

// recordsUntilEnd counts the records that come until the connection ends.
func recordsUntilEnd(t *testing.T, c net.Conn) (n int) {
	for head := make([]byte, 5); ; n++ {
		if _, err := io.ReadFull(c, head); err != nil {
			require.False(t, isTimeout(err), "the server does not close")
			return n
		}
		if _, err := io.CopyN(io.Discard, c, int64(head[3])<<8|int64(head[4])); err != nil {
			return n
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// A message that must not come ends the connection for good: what is sent behind it is not read.
func TestNothingIsReadBehindAMessageThatMustNotCome(t *testing.T) {
	server, client := identities(t)
	read := make(chan string, 10)
	s := serve(t, &service.TCP{Filters: []listener.Filter{secure.Server(server, nil)},
		Handler: func(c *listener.Conn) act.Action {
			failed := 0
			return act.Func(func(t *act.Task) act.Directive {
				in, err := c.Peek(1)
				var fault *listener.PeerError
				switch {
				case err == nil:
					read <- string(in)
					c.Discard(len(in))
				case errors.As(err, &fault):
					if failed++; failed == 3 {
						_, written := c.WriteString("too late")
						_, ended := c.Ended(t)
						read <- fmt.Sprint(written, "|", ended, "|", c.Sent(), "|", c.CloseWrite())
						return t.Fail(err)
					}
					return act.Yield
				}
				return c.Next(t, err)
			})
		}})
	r := s.raw(client)
	r.send(bytes.Join([][]byte{r.record(tlstest.Data, "before"), // a Finished, once more:
		r.record(tlstest.Handshake, "\x14\x00\x00\x20"+strings.Repeat("x", 32)), r.record(tlstest.Data, "behind")}, nil))
	require.Equal(t, "before", servertest.Receive(t, read))
	outcome := servertest.Receive(t, read)
	require.Equal(t, 4, strings.Count(outcome, "unexpected handshake message"), outcome)
	_ = recordsUntilEnd(t, r)
	_ = r.Close()
	s.drain()
	s.withoutReports()
	require.Equal(t, 1, s.Logs.FilterMessage("a peer has gone").Len())
}

// A peer that asks for new keys without end, and reads no answer, is not read from beyond a bound. When it reads, all goes on.
func TestAFloodOfKeyUpdatesFromAPeerThatDoesNotRead(t *testing.T) {
	const floods, high = 8000, 8 << 10 // the answers are more than the systems of both sides take
	server, client := identities(t)
	var most, got atomic.Int64
	s := serve(t, &service.TCP{Filters: []listener.Filter{secure.Server(server, nil)},
		Limits: listener.Limits{High: high, SendBuffer: 4 << 10},
		Handler: func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				in, err := c.Peek(1)
				got.Add(int64(len(in)))
				most.Store(max(most.Load(), int64(c.Queued())))
				c.Discard(len(in))
				return c.Next(t, err)
			})
		}})
	r := s.raw(client)
	require.NoError(t, r.Conn.(*net.TCPConn).SetReadBuffer(4<<10))
	var flood []byte
	for range floods {
		flood = append(flood, r.KeyUpdate(true)...)
		flood = append(flood, r.record(tlstest.Data, "x")...)
	}
	flood = append(flood, r.Record(tlstest.Alert, tlstest.CloseNotify, 0)...)
	sent := make(chan error, 1)
	go func() {
		_, err := r.Write(flood)
		sent <- err
	}()
	before := int64(0)
	require.Eventually(t, func() bool { // until nothing has been read for a while
		now := got.Load()
		still := now > 0 && now == before
		before = now
		return still
	}, servertest.Timeout, 300*time.Millisecond)
	require.Less(t, got.Load(), int64(floods), "it is not read from")
	require.NoError(t, r.Conn.(*net.TCPConn).SetReadBuffer(1<<20))
	answers := recordsUntilEnd(t, r)
	require.NoError(t, servertest.Receive(t, sent))
	require.GreaterOrEqual(t, answers, floods, "all were answered")
	require.EqualValues(t, floods, got.Load())
	require.Less(t, most.Load(), int64(high+16<<10+1<<10), "bytes queued")
	_ = r.Close()
	s.drain()
	s.withoutReports()
}

// spoiler changes a bit of the byte at a place of what is written.
type spoiler struct {
	net.Conn
	at int
}

func (s *spoiler) Write(p []byte) (int, error) {
	if 0 <= s.at && s.at < len(p) {
		p = bytes.Clone(p)
		p[s.at] ^= 1 << (s.at % 8)
	}
	s.at -= len(p)
	return s.Conn.Write(p)
}

// Whatever bit of a client's bytes is changed, the server goes on, sends nothing wrong, and reports no error of its own.
func TestSpoiledRecordsAtEveryStage(t *testing.T) {
	server, client := identities(t)
	client.CurvePreferences = []tls.CurveID{tls.X25519} // a short ClientHello
	for _, v := range versions {
		for _, h := range []*secure.Handshakes{nil, {OnReactor: true}} {
			tcp := overTLS(server)
			tcp.Filters[0] = secure.Server(server, h)
			s := serve(t, tcp)
			cfg := version(client, v)
			sound := &spoiler{Conn: servertest.Dial(t, s.Addr()), at: -1}
			echoes(t, sound, cfg)
			total := -1 - sound.at
			require.Greater(t, total, 200)
			var all sync.WaitGroup
			some := make(chan struct{}, 8)
			for at := 0; at < total; at += tier.Choose(11, 11, 1) {
				c := servertest.Dial(t, s.Addr())
				some <- struct{}{}
				all.Go(func() {
					_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond)) // it may wait for a record that is too long
					echoes(t, &spoiler{Conn: c, at: at}, cfg)
					<-some
				})
			}
			all.Wait()
			c := s.dial(cfg)
			servertest.Echo(t, c, "x")
			halves(t, c)
			s.drain()
			s.withoutReports()
		}
	}
}

// echoes sends a message, and requires that nothing else comes back.
func echoes(t *testing.T, under net.Conn, cfg *tls.Config) {
	c := tls.Client(under, cfg)
	defer func() { _ = under.Close() }()
	_, err := c.Write([]byte("hello"))
	if err != nil {
		return
	}
	got := make([]byte, 5)
	if _, err = io.ReadFull(c, got); err == nil && string(got) != "hello" {
		t.Errorf("%q came back", got)
	}
	_ = c.CloseWrite()
	_, _ = io.Copy(io.Discard, c)
}

// A transport that ends without close_notify is an end between two records, and an error within one.
func TestTruncation(t *testing.T) {
	server, client := identities(t)
	for _, v := range versions {
		for _, row := range []struct {
			name string
			cut  int // bytes of the last record that do not arrive
			read string
			err  string
		}{
			{"between two records", 0, "onetwo", "EOF"},
			{"within the body of one", 1, "one", "unexpected EOF"},
			{"within the head of one", 5 + 3 + 16 + 1 - 2, "one", "unexpected EOF"},
		} {
			t.Run(tls.VersionName(v)+"/"+row.name, func(t *testing.T) {
				ended := make(chan string, 1)
				first := true
				s := serve(t, &service.TCP{Filters: []listener.Filter{secure.Server(server, nil)},
					Handler: func(c *listener.Conn) act.Action {
						read := ""
						return act.Func(func(t *act.Task) act.Directive {
							in, err := c.Peek(1)
							if read += string(in); first && len(in) > 0 {
								first = false
								_, _ = c.Write(in[:1]) // for hold
								read = read[1:]
							}
							c.Discard(len(in))
							if _, waits := err.(act.Blocked); err != nil && !waits {
								ended <- read + ": " + err.Error()
								return listener.Next(t, err)
							}
							return c.Next(t, err)
						})
					}})
				c, h := s.hold(version(client, v))
				for _, part := range []string{"one", "two"} {
					servertest.Send(t, c, part)
				}
				h.held.Truncate(h.held.Len() - min(row.cut, h.held.Len()))
				h.send(t)
				require.NoError(t, h.Conn.(*net.TCPConn).CloseWrite())
				require.Equal(t, row.read+": "+row.err, servertest.Receive(t, ended))
				_ = h.Close()
				s.drain()
				s.withoutReports()
			})
		}
	}
}

// A request whose body is cut short by a transport that ends is not taken for a whole one.
func TestARequestThatIsCutShort(t *testing.T) {
	server, client := identities(t)
	whole := make(chan bool, 1)
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			in, err := r.Body.Peek()
			r.Body.Discard(len(in))
			if _, waits := err.(act.Blocked); err == nil || waits {
				return listener.Next(t, err)
			}
			whole <- err == io.EOF
			return listener.Next(t, err)
		})
	}}
	for _, cut := range []int{0, 3} {
		s := serve(t, &service.TCP{Handler: web.Serve, Filters: []listener.Filter{secure.Server(server, nil)}})
		h := &holding{Conn: servertest.Dial(t, s.Addr())}
		c := tls.Client(h, client)
		require.NoError(t, c.Handshake())
		h.on = true
		servertest.Send(t, c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345")
		h.held.Truncate(h.held.Len() - cut)
		h.send(t)
		require.NoError(t, h.Conn.(*net.TCPConn).CloseWrite())
		if cut == 0 { // otherwise the head has not arrived
			require.False(t, servertest.Receive(t, whole))
		}
		_, _ = io.Copy(io.Discard, h)
		_ = h.Close()
		s.drain()
		s.withoutReports()
	}
}

// stalls makes n clients that send the first part of a ClientHello, or all of it, and then nothing.
func (v *serving) stalls(n, part int, cfg *tls.Config) (all []net.Conn) {
	v.T.Helper()
	for range n {
		c := servertest.Dial(v.T, v.Addr())
		stall(v.T, c, part, cfg)
		all = append(all, c)
	}
	return all
}

// stall sends so many hundredths of a ClientHello.
func stall(t testing.TB, c net.Conn, part int, cfg *tls.Config) {
	t.Helper()
	hello := clientHello(c, cfg)
	servertest.Send(t, c, string(hello[:len(hello)*part/100]))
}

// clientHello returns what a client begins with on c.
func clientHello(c net.Conn, cfg *tls.Config) []byte {
	h := &holding{Conn: c, on: true}
	_ = c.SetReadDeadline(time.Now())
	_ = tls.Client(h, cfg).Handshake()
	_ = c.SetReadDeadline(time.Now().Add(servertest.Timeout))
	return h.held.Bytes()
}

// A thousand peers that stop in the middle of their handshakes hold up nobody, and cost what is bounded.
func TestAThousandPeersThatStop(t *testing.T) {
	server, client := identities(t)
	n := tier.Choose(150, 150, 1000)
	before := runtime.NumGoroutine()
	for _, part := range []int{0, 1, 50, 100} {
		tcp := overTLS(server)
		tcp.FilterTimeout = time.Minute
		s := serve(t, tcp)
		open := s.dial(client)
		all := s.stalls(n, part, client)
		for range 5 {
			servertest.Echo(t, open, "still")
			c := s.dial(client)
			servertest.Echo(t, c, "new")
			halves(t, c)
		}
		if part < 100 {
			require.Less(t, runtime.NumGoroutine(), before+20, "before a ClientHello is there in whole")
		} else {
			require.Less(t, runtime.NumGoroutine(), before+20+n, "one for each")
		}
		for _, c := range all {
			_ = c.Close()
		}
		halves(t, open)
		s.drain()
		s.withoutReports()
	}
}

// Handshakes that are too many make the one fail that has waited for longest, which is counted, and a line in the log.
func TestOfTooManyHandshakesTheOneFailsThatHasWaitedForLongest(t *testing.T) {
	server, client := identities(t)
	for _, onReactor := range []bool{false, true} {
		for _, part := range []int{0, 50, 100} {
			began := time.Now()
			h := &secure.Handshakes{Waiting: 10, OnReactor: onReactor}
			tcp := overTLS(server)
			tcp.Filters[0], tcp.FilterTimeout = secure.Server(server, h), time.Minute
			s := serve(t, tcp)
			var all []net.Conn
			for i := range 15 {
				all = append(all, s.stalls(1, part, client)...)
				require.Eventually(t, func() bool { return s.Open() > min(i, 9) && int(h.Dropped()) == max(0, i-9) },
					servertest.Timeout, time.Millisecond/10)
				if part == 100 { // it waits for its peer from when it has answered
					_, err := io.ReadFull(all[i], make([]byte, 1))
					require.NoError(t, err)
				}
			}
			for i, c := range all[:5] {
				_, err := io.Copy(io.Discard, c)
				require.NoError(t, err, "the %dth", i)
				_ = c.Close()
			}
			require.EqualValues(t, 5, h.Dropped())
			for _, c := range all[5:] {
				_ = c.SetReadDeadline(time.Now())
				_, err := io.Copy(io.Discard, c)
				require.True(t, isTimeout(err), "it is still open")
			}
			c := s.dial(client) // an eleventh
			halves(t, c)
			require.EqualValues(t, 6, h.Dropped())
			if part == 0 && !onReactor {
				lines, counted := 0, int64(0)
				require.Eventually(t, func() bool {
					lines, counted = 0, 0
					for _, line := range s.Logs.FilterMessage("TLS handshakes were given up for newer ones").All() {
						lines++
						counted += line.ContextMap()["in a second"].(int64)
					}
					return counted >= 6
				}, servertest.Timeout, time.Millisecond)
				require.EqualValues(t, 6, counted)
				require.LessOrEqual(t, lines, 2+int(time.Since(began)/time.Second), "one a second")
			}
			for _, c := range all {
				_ = c.Close()
			}
			s.drain()
		}
	}
}

// A client that speaks HTTP without TLS is told so, and other foreign bytes end the connection at once.
func TestForeignBytes(t *testing.T) {
	server, _ := identities(t)
	s := serve(t, overTLS(server))
	for _, method := range []string{"GET", "POST", "PRI"} {
		c := servertest.Dial(t, s.Addr())
		servertest.Send(t, c, method+" / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nbody")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, 400, answer.StatusCode)
		require.Contains(t, string(text), "https://")
		_ = c.Close()
	}
	for _, foreign := range []string{"\x00", "\n", "ssh", "\x05\x01\x00", "\x80\x2e\x01\x00\x02", "\x15\x03\x01\x00\x02\x01\x00",
		"\x16\x13\x37\xff\xff", "\x16\x00\x00\x00\x00", "\x16\x03\x01\x00\x00", "\x16\x03\x01\xff\xff", "\x16\x03\x01\x00\x04\x01\xff\xff\xff"} {
		c := servertest.Dial(t, s.Addr())
		servertest.Send(t, c, foreign)
		_, err := io.Copy(io.Discard, c)
		require.NoError(t, err, "%q", foreign)
		_ = c.Close()
	}
	s.drain()
	s.withoutReports()
}

// A client that speaks TLS to a server of plain HTTP is refused at once.
func TestTLSOnAPortOfPlainHTTP(t *testing.T) {
	_, client := identities(t)
	web := &httpd.Server{Handler: func(*httpd.Response, *httpd.Request) act.Action { return nil }}
	s := serve(t, &service.TCP{Handler: web.Serve})
	for _, v := range versions {
		var header tls.RecordHeaderError
		require.ErrorAs(t, s.handshake(version(client, v)), &header)
		require.Equal(t, "HTTP/", string(header.RecordHeader[:]))
	}
	s.drain()
	s.withoutReports()
}
