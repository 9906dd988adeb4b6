package e2e

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
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

func soon() time.Time { return time.Now().Add(time.Hour) }

func (id identity) flags() []string { return []string{"-tls-cert", id.cert, "-tls-key", id.key} }

// overTLS connects to a server, whatever its certificate is.
func overTLS(t *testing.T, at string) net.Conn {
	t.Helper()
	return tls.Client(dial(t, at), &tls.Config{InsecureSkipVerify: true})
}

// shows requires that new connections to at get a certificate that a client that trusts id trusts, or does not.
func (id identity) shows(t *testing.T, at string, trusted bool) {
	t.Helper()
	out, err := exec.Command(tier.Tool(t, "openssl"), "s_client", "-connect", at, "-CAfile", id.cert, "-verify_return_error").CombinedOutput()
	require.Equal(t, trusted, err == nil, "%s", out)
	require.Equal(t, trusted, bytes.Contains(out, []byte("Verify return code: 0 (ok)")), "%s", out)
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
	_, err := exec.Command(tier.Tool(t, "curl"), "-k", "--noproxy", "*", "--max-time", "120", "https://"+wary.Addr).Output()
	require.Error(t, err)
	exectest.Eventually(t, patience, "a reason in the log", func() bool {
		return strings.Contains(wary.Said(), "certificate signed by unknown authority")
	})
}

// SIGHUP is for the access log, which logrotate has renamed, for the certificate, and for the directory, whose link a
// deployment has switched. A connection of before goes on with the certificate that it has.
func TestHangupIsForWhatWasOpened(t *testing.T) {
	outside(t)
	t.Parallel()
	dir := t.TempDir()
	first, log := certify(t, dir, soon()), filepath.Join(dir, "access.log")
	link := filepath.Join(dir, "link")
	deploy := func(to string) {
		root := t.TempDir()
		require.NoError(t, errors.Join(os.WriteFile(filepath.Join(root, "a"), []byte(to), 0o644), os.RemoveAll(link), os.Symlink(root, link)))
	}
	deploy("1")
	server := serve(t, "httpd", append(first.flags(), "-access-log", log, "-root", link)...)
	old := overTLS(t, server.Addr)
	visits := func(n string) {
		t.Helper()
		say(t, old, "GET /?"+n+" HTTP/1.1\r\nHost: x\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(old), nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
	}
	has := func(what string, said func() string) {
		t.Helper()
		exectest.Eventually(t, patience, what, func() bool { return strings.Contains(said(), what) })
	}
	text := func(path string) func() string {
		return func() string {
			text, _ := os.ReadFile(path)
			return string(text)
		}
	}
	visits("1")
	first.shows(t, server.Addr, true)
	require.Equal(t, "2", curl(t, "-o", "/dev/null", "-w", "%{http_version}", "https://"+server.Addr))
	has("GET /?1 ", text(log))
	kept := identity{cert: filepath.Join(dir, "first.pem")}
	require.NoError(t, errors.Join(os.Rename(first.cert, kept.cert), os.Rename(log, log+".1")))

	second := certify(t, dir, soon())
	second.shows(t, server.Addr, false) // not yet
	visits("2")
	has("GET /?2 ", text(log+".1"))
	deploy("2")
	require.Equal(t, "1", curl(t, "https://"+server.Addr+"/files/a"))
	server.Signal(t, syscall.SIGHUP)
	has("opened the access log "+log+" again", server.Said)
	has("read the certificate in "+second.cert+" again", server.Said)
	has("reloaded", server.Said)
	require.Equal(t, "2", curl(t, "https://"+server.Addr+"/files/a"))
	second.shows(t, server.Addr, true)
	kept.shows(t, server.Addr, false)
	visits("3")
	require.NoError(t, old.Close())
	server.Stop(t)
	require.Contains(t, text(log)(), "GET /?3 ", "the last line is there at the end")
	require.NotContains(t, text(log)(), "GET /?2 ")
}

func TestBadFlags(t *testing.T) {
	outside(t)
	t.Parallel()
	id, other := certify(t, t.TempDir(), soon()), certify(t, t.TempDir(), soon())
	const key, cert, roots, nowhere = "-tls-key", "-tls-cert", "-tls-ca", "/nowhere"
	for _, row := range []struct {
		program string
		status  int
		says    string
		flags   []string
	}{
		{"echo", 1, fmt.Sprintf("cannot use the certificate in %s with the key in %s: tls: private key does not match public key",
			id.cert, other.key), []string{cert, id.cert, key, other.key}},
		{"proxy", 2, "-tls-to needs a -to with a host", []string{"-tls-to", "-to", "unix:/tmp/x:y"}},
		{"proxy", 2, "-tls-ca needs -tls-to", []string{roots, id.cert}},
		{"proxy", 1, "cannot read the certificates to trust: open /nowhere: no such file or directory", []string{"-tls-to", roots, nowhere}},
		{"proxy", 1, "cannot trust the certificates in " + id.key + ": there is none in PEM", []string{"-tls-to", roots, id.key}},
		{"httpd", 2, `invalid value "/nowhere" for flag -root: open /nowhere: no such file or directory`, []string{"-root", nowhere}},
		{"httpd", 1, "cannot open the access log: open /nowhere/a: no such file or directory", []string{"-access-log", nowhere + "/a"}},
	} {
		exits(t, row.program, row.status, row.says, append(row.flags, "-addr", "127.0.0.1:0")...)
	}
}

// The linker leaves out what nothing calls. Package zap imports net/http, so crypto/tls is among the imports of all.
func TestAServerWithoutPackageSecureHasNoCodeOfTLS(t *testing.T) {
	outside(t)
	t.Parallel()
	for name, has := range map[string]bool{"hello": false, "echo": true} {
		binary, err := os.ReadFile(example(name).Path(t))
		require.NoError(t, err)
		require.Equal(t, has, bytes.Contains(binary, []byte("crypto/tls.(*Conn).Handshake")), name)
	}
}
