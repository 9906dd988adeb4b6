package nethttp_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/secure"
)

// unlike has the scenes in which net/http does over HTTP/2 what it does not do over HTTP/1, and this package does not.
var unlike = []struct{ scenes, why string }{
	{"^20[45] |^304 |^length |chunked", "An answer has no Content-Length"},
	{"ends of lines|space around|in two lines|the end of a line$|fields that are none", "Control characters in fields and trailers"},
	{"^exceeded|body that is closed", "Errors that net/http exports are the same as over"},
	{"interfaces|ReadFrom|300000 bytes", "A ResponseWriter has the same methods"},
	{"not declared", "Trailers of a request need not be announced"},
	{"another expectation", "Another expectation than 100-continue"},
}

func (row row) unlike() bool {
	return slices.ContainsFunc(unlike, func(d struct{ scenes, why string }) bool {
		return regexp.MustCompile(d.scenes).MatchString(row.name)
	})
}

func client2() *http.Client {
	return &http.Client{Transport: &http.Transport{Protocols: protocols((*http.Protocols).SetUnencryptedHTTP2)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// script2 plays a scene over HTTP/2, on a connection of its own.
func (row row) script2(t *testing.T, v *site) string {
	client := client2()
	defer client.CloseIdleConnections()
	text := script(run(t, v, func(s *scene) {
		handler := row.handler
		if handler == nil {
			handler = (*scene).describe
		}
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) { handler(s, w, r) })
		for _, request := range strings.Split(cmp.Or(row.request, asked[0].request), "¶") {
			s.talk2(client, request)
			s.curtain()
		}
	}))
	// net/http has NoBody over HTTP/1 only.
	return strings.NewReplacer(v.address, "address", "no body false", "no body true").Replace(text)
}

// talk2 sends a request of HTTP/1 over HTTP/2, if it can be one, and notes the answer.
func (s *scene) talk2(client *http.Client, request string) {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw(request))))
	if err != nil || r.ProtoMinor == 0 || r.Method == http.MethodConnect {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.RequestURI, r.URL.Scheme, r.URL.Host, r.Close = "", "http", s.address, false
	for _, name := range []string{"Connection", "Upgrade", "Keep-Alive", "Proxy-Connection", "Te"} { // RFC 9113 8.2.2
		r.Header.Del(name)
	}
	a, err := client.Do(r)
	if err != nil {
		s.note("no answer")
		return
	}
	defer a.Body.Close()
	content, err := io.ReadAll(a.Body)
	a.Header.Del("Date")
	fields := drawn.ReplaceAllString(fmt.Sprintf("%q", a.Header), "drawn")
	s.note("%s %s\n%s\n%s %t\n%q", a.Proto, a.Status[:3], fields, digest(content), err != nil, a.Trailer)
}

var length = regexp.MustCompile(`"Content-Length":\["\d+"\] ?`)

func TestScenesOfHTTP2(t *testing.T) {
	theirs := open("net/http", netHTTP(protocols((*http.Protocols).SetUnencryptedHTTP2)), nil)
	defer func() { require.NoError(t, theirs.stop()) }()
	for _, group := range groups {
		for _, row := range group.rows {
			if row.raw || row.secure || len(row.differs) > 0 || group.name == "hijacks" || row.unlike() {
				continue
			}
			t.Run(group.name+"/"+row.name, func(t *testing.T) {
				want := row.script2(t, theirs)
				require.Equal(t, want, row.script2(t, worlds[0].ours))
				if len(row.inline) == 0 { // its answers have lengths
					got := length.ReplaceAllString(row.script2(t, worlds[0].inline), "")
					require.Equal(t, length.ReplaceAllString(want, ""), got, "Inline")
				}
			})
		}
	}
}

// A handler cannot take the connection, and its context ends when the client resets the stream.
func TestStreamsOfHTTP2(t *testing.T) {
	theirs := open("net/http", netHTTP(protocols((*http.Protocols).SetUnencryptedHTTP2)), nil)
	defer func() { require.NoError(t, theirs.stop()) }()
	play := func(s *scene) {
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			out := http.NewResponseController(w)
			_, _, err := out.Hijack()
			s.say("%t %t", errors.Is(err, http.ErrNotSupported), errors.Is(err, errors.ErrUnsupported))
			_ = out.Flush() // in net/http the reset may come before it returns
			_, ended := await(r.Context().Done())
			s.say("%t %v", ended, r.Context().Err())
		})
		client := client2()
		defer client.CloseIdleConnections()
		ctx, cancel := context.WithCancel(context.Background())
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.address, nil)
		require.NoError(s, err)
		a, err := client.Do(r)
		require.NoError(s, err)
		cancel()
		s.until("the handler has returned", func() bool { return s.running.Load() == 0 })
		_, err = a.Body.Read(make([]byte, 1))
		s.note("%v", err)
	}
	require.Equal(t, script(run(t, theirs, play)), script(run(t, worlds[0].ours, play)))
}

func protocols(set ...func(*http.Protocols, bool)) *http.Protocols {
	p := &http.Protocols{}
	for _, f := range set {
		f(p, true)
	}
	return p
}

// What clients get depends on the Protocols of the server, and on what was agreed on by ALPN.
func TestProtocols(t *testing.T) {
	servertest.CheckDescriptors(t)
	cert, err := secure.SelfSigned()
	require.NoError(t, err)
	encryption, silent := &tls.Config{Certificates: []tls.Certificate{cert}}, log.New(io.Discard, "", 0)
	const preface, settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for name, p := range map[string]*http.Protocols{
		"nil": nil, "HTTP/1": protocols((*http.Protocols).SetHTTP1), "HTTP/2": protocols((*http.Protocols).SetHTTP2),
		"unencrypted": protocols((*http.Protocols).SetUnencryptedHTTP2),
		"all":         protocols((*http.Protocols).SetHTTP1, (*http.Protocols).SetHTTP2, (*http.Protocols).SetUnencryptedHTTP2),
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]string
			for i := range got {
				v := [2]server{&http.Server{Protocols: p}, &http.Server{Protocols: p, TLSConfig: encryption.Clone(), ErrorLog: silent}}
				if i == 1 {
					v = [2]server{&nethttp.Server{Protocols: p}, &nethttp.Server{Protocols: p, TLSConfig: encryption, ErrorLog: silent}}
				}
				plain, encrypted, over := listen("tcp", "127.0.0.1:0"), listen("tcp", "127.0.0.1:0"), make(chan error, 2)
				go func() { over <- v[0].Serve(plain) }()
				go func() { over <- v[1].ServeTLS(encrypted, "", "") }()
				for _, text := range []string{raw(get), preface + settings} {
					got[i] += fmt.Sprintf("%q, plain: %s\n", text[:3], first(t, plain.Addr(), nil, text))
					for _, offers := range [][]string{nil, {"http/1.1"}, {"h2"}, {"http/1.1", "h2"}} {
						config := &tls.Config{InsecureSkipVerify: true, NextProtos: offers}
						got[i] += fmt.Sprintf("%q, %v: %s\n", text[:3], offers, first(t, encrypted.Addr(), config, text))
					}
				}
				require.NoError(t, errors.Join(v[0].Close(), v[1].Close()))
				<-over
				<-over
			}
			require.Equal(t, got[0], got[1])
		})
	}
}

// first tells with what a server answers text first.
func first(t *testing.T, to net.Addr, config *tls.Config, text string) string {
	c, err := net.Dial("tcp", to.String())
	require.NoError(t, err)
	defer c.Close()
	if config != nil {
		over := tls.Client(c, config)
		if over.Handshake() != nil {
			return "no handshake"
		}
		c = over
	}
	_, _ = io.WriteString(c, text)
	answer := make([]byte, 12)
	switch n, _ := io.ReadFull(c, answer); {
	case strings.HasPrefix(string(answer), "HTTP/1.1 200"), strings.HasPrefix(string(answer), "HTTP/1.1 404"):
		return "HTTP/1"
	case n >= 4 && answer[3] == 4 && text != raw(get): // SETTINGS (RFC 9113 6.5); net/http sends it before it reads
		return "HTTP/2"
	}
	return "refused"
}
