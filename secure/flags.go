package secure

import (
	"crypto/tls"
	"errors"
	"flag"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// TLS encrypts the connections of a server if its flags say so. It is an Option of package program:
//
//	web := &httpd.Server{Handler: site.Serve}
//	program.Serve("127.0.0.1:8080", web.Serve, &secure.TLS{Config: &tls.Config{NextProtos: []string{"h2", "http/1.1"}}})
//
// With -tls-cert and -tls-key the certificate is in files, and SIGHUP reads it again: see [Files]. With -tls-self it is one of
// [SelfSigned]. Without these flags connections are plain. Sessions are resumed after an upgrade, as with [Tickets]. A server whose
// certificates come from elsewhere has the filter of [Server] instead.
type TLS struct {
	// Config is the configuration of TLS without a certificate, which the flags add: the names of protocols (ALPN, RFC 7301),
	// for example, and whether clients need a certificate. nil means the zero Config.
	Config *tls.Config
	// Handshakes bounds how many handshakes run at a time, as with [Server]. nil means bounds that all filters
	// with nil share.
	Handshakes *Handshakes

	files   Files
	self    bool
	tickets // whose state an upgrade passes on
}

type tickets = Tickets

// Flags defines the flags -tls-cert, -tls-key and -tls-self. Package program calls it. Call check once the flags are parsed:
// it reports flags that contradict each other, and sets GetCertificate of Config.
func (x *TLS) Flags(fs *flag.FlagSet) (check func() error) {
	fs.StringVar(&x.files.Cert, "tls-cert", "", "speak TLS with the certificate in this `file`, in PEM; SIGHUP reads it again")
	fs.StringVar(&x.files.Key, "tls-key", "", "the `file` with the key of the certificate, in PEM")
	fs.BoolVar(&x.self, "tls-self", false, "speak TLS with a new self-signed certificate for localhost")
	return func() error {
		switch cert, key := x.files.Cert != "", x.files.Key != ""; {
		case x.self && (cert || key):
			return errors.New("-tls-self makes a certificate: leave out -tls-cert and -tls-key, or -tls-self")
		case cert && !key:
			return errors.New("-tls-cert needs -tls-key, the key of the certificate")
		case key && !cert:
			return errors.New("-tls-key needs -tls-cert, the certificate of the key")
		}
		if x.Config == nil {
			x.Config = &tls.Config{}
		}
		x.Config.GetCertificate = x.files.GetCertificate
		return nil
	}
}

func (x *TLS) on() bool { return x.self || x.files.Cert != "" }

// Filters returns the filter of [Server], or none if the flags ask for plain connections. Package program calls it.
func (x *TLS) Filters() []listener.Filter {
	if !x.on() {
		return nil
	}
	return []listener.Filter{Server(x.Config, x.Handshakes)}
}

// Setup reads the certificate, or makes it for -tls-self. It is a set-up function for [act.Run], and fails as [Files.Setup] does.
func (x *TLS) Setup(s *act.Scheduler) error {
	if !x.on() || s.Index() > 0 {
		return nil
	}
	if x.self {
		cert, err := SelfSigned()
		if err != nil {
			return err
		}
		x.files.loaded.Store(&cert)
	} else if err := x.files.Setup(s); err != nil {
		return err
	}
	x.tickets.Config = x.Config
	return x.tickets.Setup(s)
}
