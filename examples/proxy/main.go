// Command proxy forwards connections to another address.
//
//	go run ./examples/echo &
//	go run ./examples/proxy -to 127.0.0.1:7007
//	nc 127.0.0.1 7009
//
// It speaks TLS to its clients with -tls-self, or with -tls-cert and -tls-key, and to the other address with -tls-to, whose
// certificate the roots of the system vouch for, or the roots in the file of -tls-ca. With -send-proxy it tells the other side
// the addresses of its clients, in a PROXY header, and with -proxy-from it takes them from such headers of other proxies.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"

	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/examples/proxy/proxy"
	"github.com/daimon-go/daimon/inspect"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	to := flag.String("to", "127.0.0.1:7007", "where connections are forwarded to: `host:port`, or unix: and a path")
	encrypted := flag.Bool("tls-to", false, "speak TLS to the address of -to, whose certificate must be valid for the host")
	roots := flag.String("tls-ca", "", "with -tls-to, trust the certificates in this `file`, in PEM, and not those of the system")
	var filters []func(*listener.Conn) listener.Filter
	flag.Func("send-proxy", "send a PROXY header of this `version`, v1 or v2, with the addresses of the client", func(version string) error {
		if version != "v1" && version != "v2" {
			return errors.New("it must be v1 or v2")
		}
		filters = append(filters, proxy.Header(int(version[1]-'0')))
		return nil
	})
	server := program.Server{Addr: "127.0.0.1:7009", Options: []program.Option{
		&proxyproto.Config{}, &admission.Limiter{}, &secure.TLS{}, &inspect.Inspector{},
	}}
	server.Parse()
	if *encrypted {
		host, _, err := net.SplitHostPort(*to)
		if err != nil || host == "unix" {
			cli.Exit("proxy", errors.New("-tls-to needs a -to with a host"), 2)
		}
		trusted, err := read(*roots)
		if err != nil {
			cli.Exit("proxy", err, 1)
		}
		encrypt := secure.Client(&tls.Config{ServerName: host, RootCAs: trusted}, nil)
		filters = append(filters, func(*listener.Conn) listener.Filter { return encrypt })
	} else if *roots != "" {
		cli.Exit("proxy", errors.New("-tls-ca needs -tls-to"), 2)
	}
	web := server.Listen(server.Addr, proxy.To(*to, filters...))
	web.Limits.Conns = 2 // one is dialled for each that is accepted
	server.Run(web)
}

// read returns the certificates in a file; without a file nil, which means the system's.
func read(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates to trust: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("cannot trust the certificates in %s: there is none in PEM", path)
	}
	return roots, nil
}
