// Package worlds_test has the simulated worlds of package secure: servers and clients that speak TLS, whose network, clock,
// faults and secrets come from one seed. They have a package of their own, without parallel tests, since
// cryptotest.SetGlobalRandom sets the randomness of the whole process.
package worlds_test

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tlstest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/sim"
)

func TestMain(m *testing.M) { servertest.Worlds(m, 40, 500) }

// world is a world whose peers speak TLS.
type world struct {
	*sim.World
	server, client *tls.Config
	handshakes     *secure.Handshakes
}

// try runs the scenario in some worlds.
func try(t *testing.T, o sim.Options, scenario func(w *world)) {
	identity := tlstest.Certificate(t)
	sim.TestWith(t, o, func(w *sim.World) { scenario(newWorld(t, w, identity)) })
}

// newWorld draws what both sides are ready to speak. A config has the keys of tickets, so each world has its own.
func newWorld(t *testing.T, w *sim.World, identity tls.Certificate) *world {
	cryptotest.SetGlobalRandom(t, w.Rand().Uint64())
	roots := x509.NewCertPool()
	roots.AddCert(identity.Leaf)
	now := func() time.Time { return tlstest.Birth.Add(w.Now()) }
	server := &tls.Config{Time: now, Certificates: []tls.Certificate{identity}, ClientCAs: roots, NextProtos: []string{"h2", "echo"},
		DynamicRecordSizingDisabled: pick(w, false, true), SessionTicketsDisabled: pick(w, false, false, true),
		ClientAuth: pick(w, tls.NoClientCert, tls.RequireAndVerifyClientCert)}
	client := &tls.Config{Time: now, RootCAs: roots, ServerName: "world", Certificates: []tls.Certificate{identity},
		ClientSessionCache: tls.NewLRUClientSessionCache(0), NextProtos: []string{"echo"}, MaxVersion: pick[uint16](w, 0, 0, tls.VersionTLS12)}
	return &world{w, server, client, &secure.Handshakes{}}
}

// filters returns the filters of a server.
func (w *world) filters() []listener.Filter {
	return []listener.Filter{secure.Server(w.server, w.handshakes)}
}

// pick draws one of some values.
func pick[T any](w *sim.World, values ...T) T { return party.Pick(w, values...) }
