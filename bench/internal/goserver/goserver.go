// Package goserver is what the servers written in Go have in common: the flags that Daimon's examples take,
// and the socket, with TLS if there is a certificate.
package goserver

import (
	"crypto/tls"
	"flag"
	"log"
	"net"
	"runtime"
)

// Listen parses the flags and listens. -reactors is GOMAXPROCS, so that a server gets no more CPUs than the
// others have threads.
func Listen() net.Listener {
	addr := flag.String("addr", "127.0.0.1:7007", "the address to listen on")
	reactors := flag.Int("reactors", 0, "GOMAXPROCS; 0: the runtime's default")
	certificate := flag.String("tls-cert", "", "the `file` of a certificate; without one there is no TLS")
	key := flag.String("tls-key", "", "the `file` of its key")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	if *certificate == "" {
		return l
	}
	pair, err := tls.LoadX509KeyPair(*certificate, *key)
	if err != nil {
		log.Fatal(err)
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}})
}
