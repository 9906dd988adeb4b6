package nethttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// Server takes the place of an http.Server. Its fields and methods mean what they mean in http.Server, except where their
// comments say otherwise. Signals are left to the program. A Server is used by pointer, and its fields must not be changed once
// it serves. Each call of Serve and the like has schedulers of its own, one for each CPU. There are no fields TLSNextProto,
// HTTP2 and DisableGeneralOptionsHandler.
type Server struct {
	Addr      string       // "host:port", for ListenAndServe and ListenAndServeTLS; empty means ":http" or ":https"
	Handler   http.Handler // answers the requests, each on a goroutine of its own; nil means http.DefaultServeMux
	TLSConfig *tls.Config  // the configuration that ServeTLS and ListenAndServeTLS clone; nil means the zero tls.Config

	// ReadHeaderTimeout and IdleTimeout are httpd.Timeouts.Head and Idle; if one of them is 0, ReadTimeout is used in its
	// place. ReadTimeout and WriteTimeout are httpd.Timeouts.Body and Write: they bound how long a client may be slow, and not
	// how long a request may take. The deadlines of http.ResponseController do that, and take their place until the handler
	// returns. 0 means the default of httpd.Timeouts, where http.Server has no time-out. Less than 0 means none.
	ReadHeaderTimeout, IdleTimeout, ReadTimeout, WriteTimeout time.Duration

	// MaxHeaderBytes bounds the head of a request, which has at most a field for each 64 bytes of it, or 100, and a quarter of it
	// in the request line. 0 means 64 KiB and 100 fields. A head that comes in pieces takes twice its memory.
	MaxHeaderBytes int

	// Protocols are the versions of HTTP that are served. nil means HTTP/1, and with TLS also HTTP/2, which is agreed on by ALPN.
	// With UnencryptedHTTP2 clients may speak HTTP/2 without TLS, if they begin with its preface.
	Protocols *http.Protocols

	// ConnState is called when the state of a connection changes, on the thread of its scheduler. It must not block, and must not
	// call Shutdown or Close. A connection with TLS is new when its handshake is over. See ConnContext for what the net.Conn can
	// do.
	ConnState func(net.Conn, http.ConnState)

	// ErrorLog gets the lines of the server: about connections and handlers that fail, and, at most once in a second for all
	// connections, about handshakes that have failed and requests that were refused. nil means log.Default().
	ErrorLog *log.Logger

	// BaseContext returns the context from which the contexts of all requests are derived. The result must not be nil. The
	// listener is that of Serve; the listener of ListenAndServe has only an address.
	BaseContext func(net.Listener) context.Context

	// ConnContext returns the context of the requests of a new connection, derived from ctx. It must not be nil. ConnContext is
	// called on the thread of a scheduler, when the handshake of TLS is over, and must not block.
	//
	// The net.Conn has addresses, and Close, which any goroutine may call. The server reads and writes, so the other methods
	// fail with errors.ErrUnsupported. With TLS there is a method ConnectionState, as *tls.Conn has it. Without TLS the net.Conn
	// is a syscall.Conn, for example for the credentials of the peer of a Unix socket (SO_PEERCRED), whose Control works while
	// ConnContext or ConnState is called.
	ConnContext func(ctx context.Context, c net.Conn) context.Context

	std    http.Server // serves nothing: handlers find it in their contexts, and may register with it
	closes atomic.Bool // connections, after the next answer
	mu     sync.Mutex
	ended  atomic.Bool // by Shutdown or Close
	calls  []*call     // that have begun before
}

// ListenAndServe listens on Addr, with a socket for each scheduler, and serves. It returns as [Server.Serve] does.
func (v *Server) ListenAndServe() error { return v.Serve(v.listen(":http")) }

// ListenAndServeTLS is [Server.ListenAndServe] with TLS. For the files see [Server.ServeTLS].
func (v *Server) ListenAndServeTLS(certFile, keyFile string) error {
	return v.ServeTLS(v.listen(":https"), certFile, keyFile)
}

// Serve serves the connections of l, a *net.TCPListener or *net.UnixListener, and closes l. All schedulers share its socket.
// The error is never nil. After Shutdown or Close it is http.ErrServerClosed, and comes at once. Serve refuses listeners of
// other types, which accept in a way of their own: TLS is the business of ServeTLS, and service.Listener has filters and bounds.
func (v *Server) Serve(l net.Listener) error { return v.call(l).serve() }

// ServeTLS is Serve with TLS. The files have the certificate, with its issuers' certificates, and its key, both as PEM.
// They are read once; a GetCertificate in TLSConfig, such as that of secure.Files, can read them again. The names may be
// empty if TLSConfig has a certificate.
func (v *Server) ServeTLS(l net.Listener, certFile, keyFile string) error {
	config := &tls.Config{}
	if v.TLSConfig != nil {
		config = v.TLSConfig.Clone()
	}
	has := len(config.Certificates) > 0 || config.GetCertificate != nil || config.GetConfigForClient != nil
	if !has || certFile != "" || keyFile != "" {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			_ = l.Close() // the error that matters is the other one
			return err
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return v.call(l, v.encrypts(config)).serve()
}

// encrypts makes a filter of a config that nobody else uses.
func (v *Server) encrypts(config *tls.Config) listener.Filter {
	p := v.protocols()
	names := slices.DeleteFunc(slices.Clone(config.NextProtos), func(name string) bool {
		return name == "h2" && !p.HTTP2() || name == "http/1.1" && !p.HTTP1()
	})
	if p.HTTP2() {
		names = append(names, "h2")
	}
	if p.HTTP1() {
		names = append(names, "http/1.1", "http/1.0")
	}
	config.NextProtos = names
	return secure.Server(config, nil)
}

func (v *Server) protocols() (p http.Protocols) {
	if v.Protocols != nil {
		return *v.Protocols
	}
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	return p
}

// Shutdown ends the server gracefully: it accepts no more connections, closes idle ones, answers the requests that have begun,
// and returns nil when all connections have ended. If ctx ends before, Shutdown returns its error, and open connections go on;
// Close cuts them off. Shutdown waits for hijacked connections, too, as http.Server does not: reads there return net.ErrClosed
// from now on, and writes go on until the handler closes the connection.
func (v *Server) Shutdown(ctx context.Context) error {
	calls := v.stop()
	_ = v.std.Shutdown(ctx) // calls what was registered; it has nothing to wait for
	for _, x := range calls {
		select {
		case <-x.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close cuts off all connections, including hijacked ones, and returns nil when they have ended. Calls of running handlers
// fail with net.ErrClosed from then on. Close does not wait for them.
func (v *Server) Close() error {
	for _, x := range v.stop() {
		x.group.Shutdown(shutdown.Policy{Kind: shutdown.Halt, Drop: true})
		<-x.over
	}
	return nil
}

// stop has all calls of Serve return, and their schedulers end.
func (v *Server) stop() []*call {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended.Store(true)
	for _, x := range v.calls {
		x.stop()
	}
	return v.calls // which does not change any more
}

// RegisterOnShutdown has f called when Shutdown begins, on a goroutine of its own: to tell handlers that stream, and
// connections that were hijacked, that they have to end.
func (v *Server) RegisterOnShutdown(f func()) { v.std.RegisterOnShutdown(f) }

// SetKeepAlivesEnabled sets whether connections go on after an answer, as they do by default. If not, each is closed after
// its next answer: an idle one when its next request is answered, or after IdleTimeout.
func (v *Server) SetKeepAlivesEnabled(enabled bool) { v.closes.Store(!enabled) }

// call is a call of Serve: a service with schedulers of its own.
type call struct {
	*Server
	listener net.Listener
	filters  []listener.Filter
	group    *act.Group
	base     context.Context // of all requests
	ctx      context.Context // ends with stop
	cancel   context.CancelFunc
	over     chan struct{} // closed when the schedulers have ended
}

func (v *Server) call(l net.Listener, filters ...listener.Filter) *call {
	x := &call{Server: v, listener: l, filters: filters, over: make(chan struct{})}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// serve has the schedulers run in the background, and returns when they have ended or are to end.
func (x *call) serve() error {
	defer x.stop()
	var failure error
	go func() {
		defer close(x.over)
		failure = x.run(shutdown.Policy{Kind: shutdown.Unbounded})
	}()
	select {
	case <-x.ctx.Done():
		return http.ErrServerClosed
	case <-x.over:
		return cmp.Or(failure, errNoMore)
	}
}

var errNoMore = errors.New("nethttp: the listener accepts no more connections")

// stop has the schedulers end, and serve return. The listener is closed first: connections that wait there are accepted, and
// by then the file of a Unix socket is gone.
func (x *call) stop() {
	_ = x.listener.Close() // it may be closed already
	x.cancel()
}

// run serves until the call is stopped, or until what is set up requests another shutdown.
func (x *call) run(terms shutdown.Policy, setup ...func(*act.Scheduler) error) error {
	if x.ended.Load() {
		return http.ErrServerClosed
	}
	listen, err := x.service()
	if err != nil {
		return err
	}
	return act.Run(x.ctx, act.Config{Shutdown: terms, Logger: logger(x.ErrorLog)}, append(setup, listen, x.begin)...)
}

// begin is a set-up function, after the one that listens.
func (x *call) begin(s *act.Scheduler) error {
	if s.Index() > 0 {
		return nil
	}
	base := context.Background()
	if x.BaseContext != nil {
		if base = x.BaseContext(x.listener); base == nil {
			panic("nethttp: BaseContext has returned nil")
		}
	}
	x.group, x.base = s.Group(), context.WithValue(base, http.ServerContextKey, &x.std)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended.Load() {
		return http.ErrServerClosed
	}
	x.calls = append(x.calls, x)
	return nil
}

// service makes the service of the listener, and returns its set-up function.
func (x *call) service() (setup func(*act.Scheduler) error, err error) {
	a := &Adapter{Handler: x.Handler, of: x}
	web := &httpd.Server{Handler: a.Serve, Connect: a.Serve, Timeouts: x.timeouts(),
		MaxHead: max(x.MaxHeaderBytes, 0), MaxFields: max(x.MaxHeaderBytes/64, 100)}
	p := x.protocols()
	a.only2 = !p.HTTP1()
	if encrypted := len(x.filters) > 0; encrypted && !p.HTTP2() || !encrypted && !p.UnencryptedHTTP2() {
		web.MaxStreams = -1
	}
	if x.ConnState != nil || x.ConnContext != nil {
		web.OnState = x.state
	}
	v := &service.Listener{Name: adopted, Handler: web.Serve, Filters: x.filters, FilterTimeout: max(0, web.Timeouts.Head),
		Limits: listener.Limits{Read: max(x.MaxHeaderBytes, 64<<10)}}
	switch l := x.listener.(type) {
	case *place:
		v.Address, l.Listener = l.address, v
	case *net.TCPListener:
		err = adopt(l, v.Handover(), false)
	case *net.UnixListener: // its file is the business of l
		err = adopt(l, v.Handover(), true)
	default:
		err = fmt.Errorf("nethttp: cannot serve a %T: only a *net.TCPListener and a *net.UnixListener are sockets", l)
	}
	return v.Setup, err
}

func (x *call) timeouts() httpd.Timeouts {
	return httpd.Timeouts{Head: cmp.Or(x.ReadHeaderTimeout, x.ReadTimeout), Idle: cmp.Or(x.IdleTimeout, x.ReadTimeout),
		Body: x.ReadTimeout, Write: x.WriteTimeout}
}

// place is the listener of ListenAndServe, whose service makes its sockets.
type place struct {
	address string
	*service.Listener
}

func (*place) Accept() (net.Conn, error) { return nil, errNotYours }
func (*place) Close() error              { return nil }

func (v *Server) listen(port string) net.Listener { return &place{address: cmp.Or(v.Addr, port)} }

// adopted is the name by which a service finds the socket of a listener.
const adopted = "listener"

// adopt gives a service a duplicate of the socket of l. A service leaves the file of one that is lent alone.
func adopt(l syscall.Conn, by handover.Listener, lent bool) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	sockets := &handover.Sockets{Name: adopted, FDs: []int{-1}, Lent: lent}
	failure := raw.Control(func(fd uintptr) { sockets.FDs[0], err = netpoll.System{}.Duplicate(int(fd)) })
	var others []*handover.Sockets
	if err = cmp.Or(failure, err); err == nil {
		others, err = by.Inherit([]*handover.Sockets{sockets})
	}
	if len(others) > 0 {
		err = errors.New("it is not a socket that listens for streams")
	}
	if err != nil {
		sockets.Close()
	}
	return err
}

// logger writes lines from level Info on to a log that dates them: of equal ones the first ten in a second, and then every
// hundredth.
func logger(to *log.Logger) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.TimeKey = ""
	out := zapcore.AddSync(printer{cmp.Or(to, log.Default())})
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), out, zapcore.InfoLevel)
	return zap.New(zapcore.NewSamplerWithOptions(core, time.Second, 10, 100))
}

type printer struct{ to *log.Logger }

func (p printer) Write(line []byte) (int, error) {
	p.to.Print(string(line))
	return len(line), nil
}
