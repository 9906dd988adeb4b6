// Package withtls is package program for the examples that also speak TLS: it adds the flags -tls-cert, -tls-key and
// -tls-self, without which a server is not encrypted, and -inspect.
package withtls

import (
	"crypto/tls"
	"errors"
	"flag"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/secure"
)

// Server is a program.Server whose addresses speak TLS if the flags say so.
type Server struct {
	program.Server
	files   secure.Files // if they have names
	self    bool
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
	s.Parse()
	if err := s.check(); err != nil {
		cli.Exit(flag.CommandLine.Name(), err, 2)
	}
	if err := s.encrypt(&tls.Config{NextProtos: protocols}); err != nil {
		cli.Exit(flag.CommandLine.Name(), err, 1)
	}
	return s
}

func (s *Server) check() error {
	switch cert, key := s.files.Cert != "", s.files.Key != ""; {
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
	s.filters = []listener.Filter{secure.Server(config, nil)}
	return nil
}

// Listen is that of program.Server.
func (s *Server) Listen(addr string, handler func(*listener.Conn) act.Action) program.Socket {
	return s.Server.Listen(addr, handler, s.filters...)
}

// Run is that of program.Server.
func (s *Server) Run(services ...program.Service) {
	if s.files.Cert != "" {
		services = append([]program.Service{&s.files}, services...)
	}
	s.Server.Run(append([]program.Service{s.inspector}, services...)...)
}
