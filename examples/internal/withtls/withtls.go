// Package withtls is package program for the examples that also speak TLS: it adds the flags -tls-cert, -tls-key and
// -tls-self, without which a server is not encrypted, -proxy-from for servers behind a proxy, -max-per-source and
// -rate-per-source against strangers, and -inspect.
package withtls

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

// Server is a program.Server whose addresses read PROXY headers and speak TLS if the flags say so.
type Server struct {
	program.Server
	files   secure.Files // if they have names
	self    bool
	tickets secure.Tickets    // if it speaks TLS
	proxies proxyproto.Config // if it trusts anybody
	limits  admission.Limiter
	filters []listener.Filter

	inspector *inspect.Inspector
}

// Serve is program.Serve with the flags of TLS.
func Serve(addr string, handler func(*listener.Conn) act.Action) {
	s := Parse(addr)
	s.Run(s.Listen(s.Addr, handler))
}

// Parse returns a server with the values of the command line, as the Parse of program.Server does. protocols are the names
// of what the server speaks, for clients that offer several (ALPN, RFC 7301).
func Parse(addr string, protocols ...string) *Server {
	s := &Server{Server: program.Server{Addr: addr}, inspector: inspect.Flag()}
	flag.StringVar(&s.files.Cert, "tls-cert", "", "speak TLS with the certificate in this `file`, in PEM; SIGHUP reads it again")
	flag.StringVar(&s.files.Key, "tls-key", "", "the `file` with the key of the certificate, in PEM")
	flag.BoolVar(&s.self, "tls-self", false, "speak TLS with a new certificate for localhost that nobody vouches for")
	flag.Func("proxy-from", "`networks` of trusted proxies, such as 10.0.0.0/8,::1 (or unix): connections from there begin with a PROXY header",
		s.trust)
	flag.IntVar(&s.limits.Conns, "max-per-source", 0, "the largest `number` of open connections of an IPv4 address, or of a network /64; 0: no bound")
	flag.IntVar(&s.limits.Rate, "rate-per-source", 0, "the largest `number` of new connections of such a source in a second; 0: no bound")
	s.Parse()
	if err := s.check(); err != nil {
		cli.Exit(flag.CommandLine.Name(), err, 2)
	}
	if s.limits.Conns > 0 || s.limits.Rate > 0 {
		s.filters = append(s.filters, s.limits.Filter) // clients are counted, not their proxies, and before they cost a handshake
	}
	if err := s.encrypt(&tls.Config{NextProtos: protocols}); err != nil {
		cli.Exit(flag.CommandLine.Name(), err, 1)
	}
	return s
}

// trust has the proxies trusted that are listed.
func (s *Server) trust(list string) error {
	for from := range strings.SplitSeq(list, ",") {
		network, err := netip.ParsePrefix(from)
		if addr, bad := netip.ParseAddr(from); bad == nil {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		switch {
		case from == "unix":
			s.proxies.Unix = true
		case err != nil:
			return fmt.Errorf("%q is neither an address nor a network", from)
		default:
			s.proxies.Trusted = append(s.proxies.Trusted, network)
		}
	}
	s.filters = []listener.Filter{proxyproto.Server(s.proxies)}
	return nil
}

func (s *Server) check() error {
	switch cert, key := s.files.Cert != "", s.files.Key != ""; {
	case s.limits.Conns < 0 || s.limits.Rate < 0:
		return errors.New("-max-per-source and -rate-per-source must not be negative")
	case s.self && (cert || key):
		return errors.New("-tls-self makes a certificate: leave out -tls-cert and -tls-key, or -tls-self")
	case cert && !key:
		return errors.New("-tls-cert needs -tls-key, the key of the certificate")
	case key && !cert:
		return errors.New("-tls-key needs -tls-cert, the certificate of the key")
	}
	return nil
}

// encrypt makes the filter that the flags ask for.
func (s *Server) encrypt(config *tls.Config) error {
	switch {
	case s.self:
		cert, err := secure.SelfSigned()
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{cert}
	case s.files.Cert != "":
		config.GetCertificate = s.files.GetCertificate
	default:
		return nil
	}
	s.filters = append(s.filters, secure.Server(config, nil)) // behind the header of a proxy
	s.tickets.Config = config
	return nil
}

// Listen is that of program.Server.
func (s *Server) Listen(addr string, handler func(*listener.Conn) act.Action) program.Socket {
	return s.Server.Listen(addr, handler, s.filters...)
}

// Run is that of program.Server.
func (s *Server) Run(services ...program.Service) {
	if s.tickets.Config != nil {
		services = append([]program.Service{&s.tickets}, services...)
	}
	if s.files.Cert != "" {
		services = append([]program.Service{&s.files}, services...)
	}
	s.Server.Run(append([]program.Service{s.inspector}, services...)...)
}
