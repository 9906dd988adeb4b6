package secure_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/upgrade"
	"github.com/stretchr/testify/require"
)

// issued is a certificate in PEM, with its key.
type issued struct {
	cert, key []byte
	serial    *big.Int
}

var serials int64

// issue makes a certificate that is valid around now by these.
func issue(t testing.TB, from, until time.Duration) (c issued) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serials++
	form := x509.Certificate{SerialNumber: big.NewInt(serials), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until)}
	der, err := x509.CreateCertificate(rand.Reader, &form, &form, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return issued{
		cert:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:    pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		serial: form.SerialNumber,
	}
}

func valid(t testing.TB) issued { return issue(t, -time.Hour, time.Hour) }

// into writes c to the files of f.
func (c issued) into(t testing.TB, f *secure.Files) {
	t.Helper()
	require.NoError(t, os.WriteFile(f.Cert, c.cert, 0o600))
	require.NoError(t, os.WriteFile(f.Key, c.key, 0o600))
}

// files returns Files in a directory of its own, with c in them.
func files(t testing.TB, c issued) *secure.Files {
	t.Helper()
	dir := t.TempDir()
	f := &secure.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	c.into(t, f)
	return f
}

// inForce requires that f gives c to clients, and to servers.
func inForce(t testing.TB, c issued, f *secure.Files) {
	t.Helper()
	got, err := f.GetCertificate(nil)
	require.NoError(t, err)
	require.Equal(t, c.serial, got.Leaf.SerialNumber)
	got, err = f.GetClientCertificate(nil)
	require.NoError(t, err)
	require.Equal(t, c.serial, got.Leaf.SerialNumber)
}

func TestACertificateIsReadFromFiles(t *testing.T) {
	c := valid(t)
	f := files(t, c)
	_, err := f.GetCertificate(nil)
	require.EqualError(t, err, "secure: neither Setup nor Reload has read the certificate")
	_, err = f.GetClientCertificate(nil)
	require.EqualError(t, err, "secure: neither Setup nor Reload has read the certificate")
	require.NoError(t, f.Reload())
	inForce(t, c, f)
}

func TestABadFileLeavesTheOldCertificateInForce(t *testing.T) {
	old, other := valid(t), valid(t)
	f := files(t, old)
	require.NoError(t, f.Reload())
	for _, row := range []struct {
		name      string
		cert, key []byte // nil: no file
		says      string
	}{
		{"no certificate", nil, old.key, "cannot read the certificate: open " + f.Cert + ": no such file or directory"},
		{"no key", old.cert, nil, "cannot read the key of the certificate: open " + f.Key + ": no such file or directory"},
		{"the key of another one", old.cert, other.key, "private key does not match public key"},
		{"a certificate that is not PEM", []byte("hello\n"), old.key, "failed to find any PEM data in certificate input"},
		{"a key that is not PEM", old.cert, []byte("hello\n"), "failed to find any PEM data in key input"},
		{"an empty certificate", []byte{}, old.key, "failed to find any PEM data in certificate input"},
		{"a certificate of which a part is written", old.cert[:len(old.cert)/2], old.key, "failed to find any PEM data in certificate input"},
		{"both in the place of the other", old.key, old.cert, "PEM inputs may have been switched"},
		{"a spoiled certificate", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), old.key, "malformed certificate"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for path, content := range map[string][]byte{f.Cert: row.cert, f.Key: row.key} {
				_ = os.Remove(path)
				if content != nil {
					require.NoError(t, os.WriteFile(path, content, 0o600))
				}
			}
			err := f.Reload()
			require.ErrorContains(t, err, row.says)
			require.NotContains(t, err.Error(), "\n")
			if row.cert != nil && row.key != nil {
				require.ErrorContains(t, err, "cannot use the certificate in "+f.Cert+" with the key in "+f.Key+": ")
			}
			inForce(t, old, f)

			broken := &secure.Files{Cert: f.Cert, Key: f.Key}
			require.EqualError(t, act.Run(t.Context(), act.Config{}, broken.Setup), err.Error(), "no server starts with it")
		})
	}
	other.into(t, f)
	require.NoError(t, f.Reload())
	inForce(t, other, f)
}

func TestACertificateThatIsNotValidNowIsAWarning(t *testing.T) {
	for _, row := range []struct {
		name        string
		from, until time.Duration
		says        string
	}{
		{"expired", -2 * time.Hour, -time.Hour, `^the certificate in .*cert\.pem expired on \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$`},
		{"not yet", time.Hour, 2 * time.Hour, `^the certificate in .*cert\.pem is not valid before \d{4}-.* UTC$`},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := files(t, issue(t, row.from, row.until))
			r := servertest.Start(t, act.Config{Schedulers: 2}, f.Setup)
			require.NoError(t, r.End())
			require.Equal(t, 1, r.Logs.Len())
			require.Regexp(t, row.says, r.Logs.All()[0].Message)
		})
	}
}

var _ upgrade.Keeper = (*secure.TLS)(nil) // for the keys of tickets

func TestFlagsChooseTheCertificate(t *testing.T) {
	id := valid(t)
	in := files(t, id)
	for name, row := range map[string]struct {
		arguments []string
		encrypts  bool
		subject   string
	}{
		"none":  {nil, false, ""},
		"files": {[]string{"-tls-cert", in.Cert, "-tls-key", in.Key}, true, ""},
		"self":  {[]string{"-tls-self"}, true, "localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			x, fs := &secure.TLS{}, flag.NewFlagSet("", flag.ContinueOnError)
			check := x.Flags(fs)
			require.NoError(t, fs.Parse(row.arguments))
			require.NoError(t, check())
			require.Equal(t, row.encrypts, x.Filters() != nil)
			l := servertest.New(t, act.Config{})
			require.NoError(t, x.Setup(l.S))
			if row.encrypts {
				cert, err := x.Config.GetCertificate(&tls.ClientHelloInfo{})
				require.NoError(t, err)
				require.Equal(t, row.subject, cert.Leaf.Subject.CommonName)
			}
		})
	}
}

// resumed makes a handshake of crypto/tls, and reports whether it goes on with a session of client.
func resumed(t *testing.T, server, client *tls.Config) bool {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		c := tls.Server(far, server)
		_, _ = c.Write([]byte("with it comes a ticket"))
		_ = c.Close()
	}()
	c := tls.Client(near, client)
	_, err := io.ReadAll(c)
	require.NoError(t, err)
	_ = near.Close()
	return c.ConnectionState().DidResume
}

// remembering returns cfg for one version, with a memory for sessions.
func remembering(cfg *tls.Config, v uint16) *tls.Config {
	cfg = version(cfg, v)
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(10)
	return cfg
}

// A session can be resumed for seven days: on the eighth its key has gone. The keys go along with an upgrade, at any age, and go on
// to be replaced. Another program has its own.
func TestTicketsAreGoodForSevenDays(t *testing.T) {
	base, client := identities(t)
	clock := &servertest.Clock{}
	begin := func(x *secure.Tickets) *servertest.Stepped {
		l := servertest.New(t, act.Config{Clock: clock})
		require.NoError(t, x.Setup(l.S))
		l.S.Install(demon.Stay())
		servertest.Step(t, l.S)
		return l
	}
	config := func() *tls.Config { return &tls.Config{Certificates: base.Certificates} }
	for _, v := range versions {
		old, next, other := &secure.Tickets{Config: config()}, &secure.Tickets{Config: config()}, &secure.Tickets{Config: config()}
		l := begin(old)
		begin(other)
		var visitors []*tls.Config // one of each day
		for day := range 10 {
			if day == 3 {
				state, err := old.SaveState(t.Context())
				require.NoError(t, err)
				require.Len(t, state, 32*4, "a key of each day")
				require.Equal(t, old.StateName(), next.StateName())
				l, old = begin(next), next
				require.NoError(t, next.LoadState(state))
			}
			for since, visitor := range visitors {
				kept := visitor.Clone() // the visit is to leave no ticket
				kept.ClientSessionCache = once{visitor.ClientSessionCache}
				require.False(t, resumed(t, other.Config, kept))
				require.Equal(t, day-since < 7, resumed(t, old.Config, kept), "%d days later, %s", day-since, tls.VersionName(v))
			}
			visitor := remembering(client, v)
			require.False(t, resumed(t, old.Config, visitor))
			visitors = append(visitors, visitor)
			clock.Pass(24 * time.Hour)
			servertest.Step(t, l.S)
		}
	}
}

// once is a memory that keeps what it has.
type once struct{ tls.ClientSessionCache }

func (once) Put(string, *tls.ClientSessionState) {}

func TestTicketsOfAnotherLengthAreRefused(t *testing.T) {
	for _, n := range []int{31, 33, 8 * 32} {
		require.ErrorContains(t, (&secure.Tickets{Config: &tls.Config{}}).LoadState(make([]byte, n)), "not 1 to 7 times 32")
	}
}
