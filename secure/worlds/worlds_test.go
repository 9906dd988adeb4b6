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
	"runtime/debug"
	"sync"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

func TestMain(m *testing.M) { servertest.Worlds(m, 20, 2, 500) }

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

// newWorld draws what both sides are ready to speak.
func newWorld(t *testing.T, w *sim.World, identity tls.Certificate) *world {
	cryptotest.SetGlobalRandom(t, w.Rand().Uint64())
	v := &world{World: w, handshakes: &secure.Handshakes{OnReactor: true}}
	v.server, v.client = configs(w.Rand().IntN, identity, func() time.Time { return birth.Add(w.Now()) })
	return v
}

// configs returns those of both sides. A config has the keys of tickets, so each world has its own.
func configs(draw func(int) int, identity tls.Certificate, now func() time.Time) (server, client *tls.Config) {
	roots := x509.NewCertPool()
	roots.AddCert(identity.Leaf)
	server = &tls.Config{Time: now, Certificates: []tls.Certificate{identity}, ClientCAs: roots, NextProtos: []string{"h2", "echo"},
		DynamicRecordSizingDisabled: pickFrom(draw, false, true), SessionTicketsDisabled: pickFrom(draw, false, false, true),
		ClientAuth: pickFrom(draw, tls.NoClientCert, tls.RequireAndVerifyClientCert)}
	client = &tls.Config{Time: now, RootCAs: roots, ServerName: "world", Certificates: []tls.Certificate{identity},
		ClientSessionCache: tls.NewLRUClientSessionCache(0), NextProtos: []string{"echo"}, MaxVersion: pickFrom[uint16](draw, 0, 0, tls.VersionTLS12)}
	return server, client
}

// filters returns those of a server.
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
func pick[T any](w *sim.World, values ...T) T { return pickFrom(w.Rand().IntN, values...) }

func pickFrom[T any](draw func(int) int, values ...T) T { return values[draw(len(values))] }

// patient returns Limits with a Linger that is long enough for slow clients.
func patient(w *sim.World) listener.Limits {
	high := pick(w, 0, 1000, 20_000)
	return listener.Limits{Read: pick(w, 0, 100, 5000), High: high, Low: high / pick(w, 2, 10), Linger: time.Hour}
}

// setUps are set-up functions.
type setUps = []func(*act.Scheduler) error

// engine returns the set-up functions of readiness, or of completions.
func engine(w *sim.World) setUps { return pick(w, nil, nil, setUps{sim.Completions}) }

// config draws that of a server.
func config(w *sim.World) act.Config {
	return act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 1, 8), Inbox: pick(w, 2, 256)}
}

// endsSometimes gives the server an order in some worlds, and calls f before.
func endsSometimes(w *sim.World, v *sim.Server, f func()) {
	bound := 1 + time.Duration(w.Rand().Int64N(int64(time.Second)))
	terms := pick(w, shutdown.Unbounded, shutdown.Policy{Kind: shutdown.Halting, Drop: true}, shutdown.Policy{Time: bound, Drop: true},
		shutdown.Policy{Turns: 1 + w.Rand().IntN(5), Time: bound, Drop: true})
	at := time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, 50*time.Millisecond, 3*time.Second))))
	if w.Rand().IntN(2) == 0 {
		w.At(at, func() {
			f()
			v.Shutdown(shutdown.Now{Terms: terms})
		})
	}
}

// TestSameSeedGivesSameHistory has each world run twice: the secrets of TLS come from the seed too.
func TestSameSeedGivesSameHistory(t *testing.T) {
	t.Setenv("SIM_SEED", "")
	t.Setenv("SIM_FROM", "")
	t.Setenv("SIM_SEEDS", "1")
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	for seed := range uint64(10) {
		try(t, sim.Options{Seed: seed, Faults: sim.Anything()}, func(w *world) { w.echoServer(t, &counts{}) })
	}
}
