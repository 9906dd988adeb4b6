// Package worlds_test has the simulated worlds of package secure: servers and clients that speak TLS, whose network, clock,
// faults and secrets come from one seed. They have a package of their own, without parallel tests, since
// cryptotest.SetGlobalRandom sets the randomness of the whole process.
package worlds_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"sync"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/internal/testing/servertest"
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
	identity := certificate(t)
	sim.TestWith(t, o, func(w *sim.World) { scenario(newWorld(t, w, identity)) })
}

// newWorld draws what both sides are ready to speak. A config has the keys of tickets, so each world has its own.
func newWorld(t *testing.T, w *sim.World, identity tls.Certificate) *world {
	cryptotest.SetGlobalRandom(t, w.Rand().Uint64())
	roots := x509.NewCertPool()
	roots.AddCert(identity.Leaf)
	now := func() time.Time { return birth.Add(w.Now()) }
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

// birth is when each world begins.
var birth = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

var identity struct {
	sync.Once
	tls.Certificate
}

// certificate returns a certificate that is the same in each process.
func certificate(t *testing.T) tls.Certificate {
	identity.Do(func() {
		cryptotest.SetGlobalRandom(t, 17)
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"world"}, NotBefore: birth.Add(-time.Hour),
			NotAfter: birth.AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
		require.NoError(t, err)
		leaf, err := x509.ParseCertificate(der)
		require.NoError(t, err)
		identity.Certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	})
	return identity.Certificate
}

// pick draws one of some values.
func pick[T any](w *sim.World, values ...T) T { return party.Pick(w, values...) }
