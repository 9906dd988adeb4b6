package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
)

// Origin is a server, and the connections to it. It may be used on any number of schedulers at a time. It must not be copied, nor
// changed once it is used. No other Origin uses its connections, even if all fields are the same: so a connection that was made with
// one certificate or for one name never carries the requests of another.
type Origin struct {
	// Address is where to connect: "host:port", "[::1]:port", or "unix:" and a path. The addresses of a host race, as listener.Connect
	// describes it.
	Address string
	// Host is what requests name as the server, "host" or "host:port". "" is Address without the port that its scheme has by default,
	// or "localhost" for a Unix socket.
	Host string
	// TLS configures TLS; nil means plain text. Without a ServerName it is the name of Host. NextProtos is set by the Origin.
	TLS *tls.Config
	// Protocol says which versions are spoken.
	Protocol Protocol
	// Filters prepare each connection before TLS, in this order, such as one that sends a PROXY header.
	Filters []listener.Filter
	// Limits bound the memory of a connection. The default of Limits.Read is 32 KiB here; a head of an answer must fit into it.
	Limits listener.Limits
	// Timeouts are how long a Call waits, unless it has its own.
	Timeouts Timeouts
	// MaxConns bounds the connections of all schedulers; 0 means 1024, less than 0 no bound. With HTTP/2 it should be at least the
	// number of schedulers: they do not share a connection, and one that is in use is not given up for the Calls of another.
	MaxConns int
	// MaxIdle bounds the connections without a request of each scheduler; 0 means 64, less than 0 none. IdleTimeout is how long one is
	// kept; 0 means 1 min. It should be less than the time after which the server closes it.
	MaxIdle     int
	IdleTimeout time.Duration
	// MaxStreams bounds the requests on a connection of HTTP/2, in addition to what its server allows; 0 means 128.
	MaxStreams int
	// MaxWaiting bounds the Calls of each scheduler that wait for a connection. One more fails with ErrBusy. 0 means 1024, less than
	// 0 none.
	MaxWaiting int
	// Client bounds several Origins together; nil means no such bound.
	Client *Client

	once    sync.Once
	invalid error
	host    string // of requests
	filters []listener.Filter
	filter1 []listener.Filter // likewise, for HTTP/1.1 alone
	places                    // with the connections that are being made
	closed  bool              // under mu
}

// Protocol says which versions of HTTP an Origin speaks.
type Protocol uint8

// The protocols.
const (
	Auto  Protocol = iota // with TLS what the server chooses (ALPN), HTTP/1.1 without
	HTTP1                 // HTTP/1.1
	HTTP2                 // HTTP/2, without TLS by prior knowledge (RFC 9113 3.3)
)

// Timeouts are how long a Call waits. 0 means the value of the Origin, or the default, and less than 0 no limit.
type Timeouts struct {
	// Wait bounds the wait for a connection when Origin.MaxConns are in use. The default is 10 s.
	Wait time.Duration
	// Connect bounds how long a connection takes to be made, from the lookup of the name to the end of the handshake. The default is
	// 10 s.
	Connect time.Duration
	// Head bounds the wait for the answer, from when the request was written. The default is 60 s.
	Head time.Duration
	// Idle bounds each pause in which the server sends no more of an answer, and in which it takes no more of a request. The default is
	// 60 s.
	Idle time.Duration
	// Total bounds everything, from the first turn of the Call to the last byte of the answer. By default there is no limit.
	Total time.Duration
}

// or returns x with the values of y in place of zeros.
func (x Timeouts) or(y Timeouts) Timeouts {
	return Timeouts{cmp.Or(x.Wait, y.Wait), cmp.Or(x.Connect, y.Connect), cmp.Or(x.Head, y.Head), cmp.Or(x.Idle, y.Idle),
		cmp.Or(x.Total, y.Total)}
}

var defaults = Timeouts{10 * time.Second, 10 * time.Second, time.Minute, time.Minute, -1}

const (
	noBound         = 1 << 30
	standardConns   = 1024
	standardIdle    = 64
	standardKeep    = time.Minute
	standardStreams = 128
	standardWaiting = 1024
	// standardRead is what one receive can take at most. A proxy needs a third less of the CPU for a long answer than with 64 KiB.
	standardRead = 32 << 10
)

// prepare checks the fields, once.
func (o *Origin) prepare() error {
	o.once.Do(func() { o.invalid = o.resolve() })
	return o.invalid
}

func (o *Origin) resolve() error {
	port := ":80"
	if o.TLS != nil {
		port = ":443"
	}
	local := strings.HasPrefix(o.Address, "unix:")
	switch o.host = o.Host; {
	case o.host != "":
	case local:
		o.host = "localhost"
	default:
		o.host = strings.TrimSuffix(o.Address, port)
	}
	if !local {
		if _, _, err := net.SplitHostPort(o.Address); err != nil {
			return err
		}
	}
	if o.host == "" || !syntax.ValidHost(syntax.Bytes(o.host)) {
		return fmt.Errorf("an invalid host: %q", o.host)
	}
	o.Timeouts = o.Timeouts.or(defaults)
	o.Limits.Read = cmp.Or(o.Limits.Read, standardRead)
	o.filters = slices.Clone(o.Filters)
	if o.TLS != nil {
		config := o.TLS.Clone()
		if config.ServerName == "" {
			config.ServerName = strings.Trim(string(syntax.WithoutPort(syntax.Bytes(o.host))), "[]")
		}
		config.NextProtos = [...][]string{Auto: {"h2", "http/1.1"}, HTTP1: {"http/1.1"}, HTTP2: {"h2"}}[o.Protocol]
		o.filter1, o.filters = o.filters, append(slices.Clip(o.filters), secure.Client(config, nil))
		if config = config.Clone(); o.Protocol == Auto {
			config.NextProtos = []string{"http/1.1"}
		}
		o.filter1 = append(o.filter1, secure.Client(config, nil))
	}
	return nil
}

var errClosed = errors.New("the Origin is closed")

// most returns bound, or standard if bound is 0, or none if it is negative.
func most(bound, standard, none int) int {
	if bound = cmp.Or(bound, standard); bound < 0 {
		return none
	}
	return bound
}

// Close closes the idle connections of all schedulers, soon. Calls that are under way go on, and their connections are closed
// afterwards. Further Calls fail. Any goroutine.
func (o *Origin) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, p := range o.pools {
		p.keeper.bell.Wake()
	}
}

// CloseIdle closes the idle connections of all schedulers, soon. Further Calls make new ones. Any goroutine.
func (o *Origin) CloseIdle() {
	o.mu.Lock()
	pools := slices.Clone(o.pools)
	o.mu.Unlock()
	for _, p := range pools { // while o is not locked: its schedulers may want the lock before they make room for Post
		_ = p.s.Post(func(*act.Scheduler) { p.closeIdle() }) // an error means that the scheduler has ended, with its connections
	}
}
