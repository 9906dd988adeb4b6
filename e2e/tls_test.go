package e2e

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/secure"
)

// identity is the files of a certificate for localhost and 127.0.0.1, which is its own root.
type identity struct{ cert, key string }

// certify writes a new certificate into dir. It is valid for an hour before until.
func certify(t *testing.T, dir string, until time.Time) identity {
	t.Helper()
	made, err := secure.SelfSigned()
	require.NoError(t, err)
	form := *made.Leaf
	form.NotBefore, form.NotAfter = until.Add(-time.Hour), until
	key := made.PrivateKey.(crypto.Signer)
	der, err := x509.CreateCertificate(rand.Reader, &form, &form, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	id := identity{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	write := func(path, kind string, content []byte) {
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
	}
	write(id.cert, "CERTIFICATE", der)
	write(id.key, "PRIVATE KEY", secret)
	return id
}

func soon() time.Time { return time.Now().Add(time.Minute) }

func (id identity) flags() []string { return []string{"-tls-cert", id.cert, "-tls-key", id.key} }

// openssl is a client of openssl, with a connection.
type openssl struct {
	to  io.Writer
	out *bufio.Reader
}

// visitTLS connects to at, whatever its certificate is.
func visitTLS(t *testing.T, at string) openssl {
	t.Helper()
	cmd := exec.Command(tier.Tool(t, "openssl"), "s_client", "-quiet", "-connect", at)
	to, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stuck := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		stuck.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return openssl{to, bufio.NewReader(out)}
}

func (c openssl) say(t *testing.T, line string) {
	t.Helper()
	_, err := io.WriteString(c.to, line+"\n")
	require.NoError(t, err)
}

func (c openssl) hear(t *testing.T, line string) {
	t.Helper()
	got, err := c.out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, line+"\n", got)
}

// shows requires that new connections to at get a certificate that those who trust id trust, or do not.
func (id identity) shows(t *testing.T, at string, trusted bool) {
	t.Helper()
	out, err := exec.Command(tier.Tool(t, "openssl"), "s_client", "-connect", at, "-CAfile", id.cert, "-verify_return_error").CombinedOutput()
	require.Equal(t, trusted, err == nil, "%s", out)
	require.Equal(t, trusted, bytes.Contains(out, []byte("Verify return code: 0 (ok)")), "%s", out)
}

func TestExamplesSpeakTLS(t *testing.T) {
	outside(t)
	t.Parallel()
	echoes := func(t *testing.T, server *exectest.Program) {
		c := visitTLS(t, server.Addr)
		c.say(t, "is anybody there?")
		c.hear(t, "is anybody there?")
	}
	plain := serve(t, "echo")
	for _, row := range []struct {
		name  string
		flags []string
		visit func(*testing.T, *exectest.Program)
	}{
		{"echo", nil, echoes},
		{"echo-coro", nil, echoes},
		{"proxy", []string{"-to", plain.Addr}, echoes},
		{"chat", []string{"-web", "127.0.0.1:0"}, func(t *testing.T, server *exectest.Program) {
			ada := visitTLS(t, server.Addr)
			ada.hear(t, "Your name?")
			ada.say(t, "Ada")
			ada.hear(t, came("Ada"))
		}},
		{"httpd", nil, func(t *testing.T, server *exectest.Program) {
			require.Equal(t, "Hello, World! 1.1", curl(t, "-k", "-w", " %{http_version}", "https://"+server.Addr))
			require.Contains(t, curl(t, "-i", "http://"+server.Addr), "use https://")
			out, err := exec.Command(tier.Tool(t, "openssl"), "s_client", "-alpn", "h2,http/1.1", "-connect", server.Addr).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "ALPN protocol: http/1.1")
		}},
		{"press", []string{"-pace", "1ms"}, func(t *testing.T, server *exectest.Program) {
			require.Contains(t, curl(t, "-k", "-i", "-d", "a job", "https://"+server.Addr+"/customers/ada/jobs"), "HTTP/1.1 201 ")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Run("with a certificate of its own", func(t *testing.T) {
				server := serve(t, row.name, append(row.flags, "-tls-self")...)
				row.visit(t, server)
			})
			t.Run("with one from files", func(t *testing.T) {
				id := certify(t, t.TempDir(), soon())
				server := serve(t, row.name, append(row.flags, id.flags()...)...)
				row.visit(t, server)
				id.shows(t, server.Addr, true)
			})
		})
	}
}

func TestProxyOverTLSOnBothSides(t *testing.T) {
	outside(t)
	t.Parallel()
	id := certify(t, t.TempDir(), soon())
	site := serve(t, "httpd", id.flags()...)
	through := func(roots string) *exectest.Program {
		return serve(t, "proxy", "-tls-self", "-to", site.Addr, "-tls-to", "-tls-ca", roots)
	}
	require.Equal(t, "Hello, World!", curl(t, "-k", "https://"+through(id.cert).Addr))

	stranger := certify(t, t.TempDir(), soon())
	wary := through(stranger.cert)
	_, err := exec.Command(tier.Tool(t, "curl"), "-k", "--noproxy", "*", "--max-time", "20", "https://"+wary.Addr).Output()
	require.Error(t, err)
	exectest.Eventually(t, patience, "a reason in the log", func() bool {
		return strings.Contains(wary.Said(), "certificate signed by unknown authority")
	})
}

func TestHangupShowsANewCertificateToNewConnections(t *testing.T) {
	outside(t)
	t.Parallel()
	dir := t.TempDir()
	first := certify(t, dir, soon())
	server := serve(t, "echo", first.flags()...)
	old := tls.Client(dial(t, server.Addr), &tls.Config{InsecureSkipVerify: true})
	goesOn := func() {
		t.Helper()
		say(t, old, "hello")
		back := make([]byte, len("hello"))
		_, err := io.ReadFull(old, back)
		require.NoError(t, err)
	}
	hangup := func(says string) {
		t.Helper()
		before := strings.Count(server.Said(), "\n")
		server.Signal(t, syscall.SIGHUP)
		exectest.Eventually(t, patience, "a line in the log", func() bool { return strings.Count(server.Said(), "\n") > before })
		lines := strings.Split(strings.TrimSuffix(server.Said(), "\n"), "\n")[before:]
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], says)
	}
	goesOn()
	first.shows(t, server.Addr, true)
	kept := identity{cert: filepath.Join(dir, "first.pem")}
	require.NoError(t, os.Rename(first.cert, kept.cert))

	second := certify(t, dir, soon())
	second.shows(t, server.Addr, false) // not yet
	hangup("read the certificate in " + second.cert + " again")
	second.shows(t, server.Addr, true)
	kept.shows(t, server.Addr, false)
	goesOn()

	require.NoError(t, os.Remove(second.key))
	hangup("the certificate stays as it was")
	require.Contains(t, server.Said(), "open "+second.key+": no such file or directory")
	second.shows(t, server.Addr, true)
	goesOn()

	certify(t, dir, time.Now().Add(-time.Minute))
	hangup("the new certificate in " + second.cert + " expired on ")
	goesOn()
	require.NoError(t, old.Close())
	server.Stop(t)
}

func TestAnExpiredCertificateIsAWarning(t *testing.T) {
	outside(t)
	t.Parallel()
	id := certify(t, t.TempDir(), time.Now().Add(-time.Minute))
	server := serve(t, "httpd", id.flags()...)
	require.Equal(t, 1, strings.Count(server.Said(), "WARN\tthe certificate in "+id.cert+" expired on "))
	require.Equal(t, "Hello, World!", curl(t, "-k", "https://"+server.Addr))
	server.Stop(t)
}

func TestBadFlagsOfTLS(t *testing.T) {
	outside(t)
	t.Parallel()
	id, other := certify(t, t.TempDir(), soon()), certify(t, t.TempDir(), soon())
	nowhere, noPEM := filepath.Join(t.TempDir(), "nowhere"), filepath.Join(t.TempDir(), "no.pem")
	require.NoError(t, os.WriteFile(noPEM, []byte("hello\n"), 0o600))
	const key, cert, self = "-tls-key", "-tls-cert", "-tls-self"
	for _, row := range []struct {
		name   string
		flags  []string
		status int
		says   string
	}{
		{"no key", []string{cert, id.cert}, 2, "-tls-cert needs -tls-key, the key of the certificate"},
		{"no certificate", []string{key, id.key}, 2, "-tls-key needs -tls-cert, the certificate of the key"},
		{"two certificates", append(id.flags(), self), 2,
			"-tls-self makes a certificate: leave out -tls-cert and -tls-key, or -tls-self"},
		{"a certificate that is not there", []string{cert, nowhere, key, id.key}, 1,
			"cannot read the certificate: open " + nowhere + ": no such file or directory"},
		{"a key that is not there", []string{cert, id.cert, key, nowhere}, 1,
			"cannot read the key of the certificate: open " + nowhere + ": no such file or directory"},
		{"the key of another one", []string{cert, id.cert, key, other.key}, 1, fmt.Sprintf(
			"cannot use the certificate in %s with the key in %s: tls: private key does not match public key", id.cert, other.key)},
		{"no PEM", []string{cert, noPEM, key, id.key}, 1, fmt.Sprintf(
			"cannot use the certificate in %s with the key in %s: tls: failed to find any PEM data in certificate input", noPEM, id.key)},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, name := range []string{"echo", "httpd"} {
				exits(t, name, row.status, row.says, row.flags...)
			}
		})
	}
	const to, roots = "-tls-to", "-tls-ca"
	exits(t, "proxy", 2, "-tls-to needs a -to with a host", to, "-to", "unix:/tmp/x:y")
	exits(t, "proxy", 2, "-tls-ca needs -tls-to", roots, id.cert)
	exits(t, "proxy", 1, "cannot read the certificates to trust: open "+nowhere+": no such file or directory", to, roots, nowhere)
	for _, path := range []string{noPEM, id.key} {
		exits(t, "proxy", 1, "cannot trust the certificates in "+path+": there is none in PEM", to, roots, path)
	}
}

// exits requires that a program ends at once, and says why in one sentence.
func exits(t *testing.T, name string, status int, says string, flags ...string) {
	t.Helper()
	server := run(t, name, nil, append(flags, "-addr", "127.0.0.1:0")...)
	require.Equal(t, status, server.Exit(t))
	require.Equal(t, name+": "+says+"\n", server.Said())
}

// The linker leaves out what nothing calls. Package zap imports net/http, so crypto/tls is among the imports of all.
func TestAServerWithoutPackageSecureHasNoCodeOfTLS(t *testing.T) {
	outside(t)
	t.Parallel()
	for name, has := range map[string]bool{"hello": false, "publish": false, "echo": true} {
		binary, err := os.ReadFile(example(name).Path(t))
		require.NoError(t, err)
		require.Equal(t, has, bytes.Contains(binary, []byte("crypto/tls.(*Conn).Handshake")), name)
	}
}
