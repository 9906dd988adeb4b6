package secure_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// openssl is "openssl s_client", talking to a server.
type openssl struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu  sync.Mutex
	out bytes.Buffer
}

func (o *openssl) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.Write(p)
}

func (o *openssl) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.String()
}

// openssl starts it with flags beside those that every call has.
func (v *serving) openssl(t *testing.T, flags ...string) *openssl {
	t.Helper()
	o := &openssl{t: t}
	flags = append([]string{"s_client", "-connect", v.Addr().String(), "-servername", "localhost"}, flags...)
	o.cmd = exec.Command(tier.Tool(t, "openssl"), flags...)
	o.cmd.Stdout, o.cmd.Stderr = o, o
	var err error
	o.stdin, err = o.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, o.cmd.Start())
	t.Cleanup(func() { _ = o.cmd.Process.Kill() })
	return o
}

// types writes text to its standard input.
func (o *openssl) types(text string) *openssl {
	o.t.Helper()
	_, err := io.WriteString(o.stdin, text)
	require.NoError(o.t, err)
	return o
}

// shows waits until it has written text.
func (o *openssl) shows(text string) *openssl {
	o.t.Helper()
	for end := time.Now().Add(servertest.Timeout); !strings.Contains(o.String(), text); time.Sleep(time.Millisecond) {
		require.True(o.t, time.Now().Before(end), "%q is not in: %s", text, o)
	}
	return o
}

// forget forgets what it has written.
func (o *openssl) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out.Reset()
}

// ends ends its input, waits for it and returns what it has written.
func (o *openssl) ends() (string, error) {
	_ = o.stdin.Close()
	err := o.cmd.Wait()
	return o.String(), err
}

// pems writes the certificate and the key to files.
func pems(t *testing.T, cert tls.Certificate) (certFile, keyFile string) {
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write := func(name, kind string, der []byte) {
		require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	}
	write(certFile, "CERTIFICATE", cert.Certificate[0])
	write(keyFile, "PRIVATE KEY", key)
	return certFile, keyFile
}

func TestOpenSSL(t *testing.T) {
	server, _ := identities(t)
	server.NextProtos = []string{"echo"}
	cert, key := pems(t, server.Certificates[0])
	s := serve(t, overTLS(server))
	strict := []string{"-CAfile", cert, "-verify_return_error", "-verify_hostname", "localhost", "-alpn", "other,echo"}
	for flag, says := range map[string]string{"-tls1_2": "New, TLSv1.2", "-tls1_3": "New, TLSv1.3"} {
		o := s.openssl(t, append(strict, flag)...).shows("Verify return code: 0 (ok)").types("hello\n").shows("\nhello")
		out, err := o.ends()
		require.NoError(t, err, out)
		require.Contains(t, out, says)
		require.Contains(t, out, "ALPN protocol: echo")
	}

	t.Run("sessions", func(t *testing.T) {
		out, err := s.openssl(t, "-tls1_2", "-reconnect").types("last\n").shows("\nlast").ends()
		require.NoError(t, err, out)
		require.Equal(t, 5, strings.Count(out, "Reused, TLSv1.2"), out)
		file := filepath.Join(t.TempDir(), "session")
		for _, flag := range []string{"-tls1_2", "-tls1_3"} {
			out, err := s.openssl(t, flag, "-sess_out", file).types("first\n").shows("\nfirst").ends()
			require.NoError(t, err, out)
			out, err = s.openssl(t, flag, "-sess_in", file).types("second\n").shows("\nsecond").ends()
			require.NoError(t, err, out)
			require.Contains(t, out, "Reused, ")
		}
	})

	t.Run("new keys", func(t *testing.T) {
		o := s.openssl(t, "-tls1_3").shows("Verify return code")
		for range 20 { // more than crypto/tls takes in a row
			o.types("K\n").shows("KEYUPDATE").types("asked\n").shows("\nasked")
			o.forget()
			o.types("k\n").shows("KEYUPDATE").types("told\n").shows("\ntold")
			o.forget()
		}
		out, err := o.ends()
		require.NoError(t, err, out)
	})

	t.Run("a client may not renegotiate", func(t *testing.T) {
		o := s.openssl(t, "-tls1_2").shows("Verify return code").types("before\n").shows("\nbefore")
		out, err := o.types("R\n").shows("RENEGOTIATING").ends()
		require.Error(t, err)
		require.Contains(t, out, "alert unexpected message")
	})

	t.Run("the server closes with close_notify", func(t *testing.T) {
		s := serve(t, &service.TCP{Handler: describes["action"], Filters: []listener.Filter{secure.Server(server, nil)}})
		for _, flag := range []string{"-tls1_2", "-tls1_3"} {
			o := s.openssl(t, flag).shows("closed\n")
			require.NoError(t, o.cmd.Wait())
			require.NotContains(t, o.String(), "unexpected eof")
		}
		s.drain()
	})

	t.Run("client certificates", func(t *testing.T) {
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificates[0].Leaf)
		asks := &tls.Config{Certificates: server.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}
		s := serve(t, &service.TCP{Handler: echo, Filters: []listener.Filter{secure.Server(asks, nil)}})
		for _, flag := range []string{"-tls1_2", "-tls1_3"} {
			out, err := s.openssl(t, flag, "-cert", cert, "-key", key).types("hello\n").shows("\nhello").ends()
			require.NoError(t, err, out)
			out, _ = s.openssl(t, flag).shows("alert").ends()
			require.Contains(t, out, map[string]string{"-tls1_2": "alert handshake failure",
				"-tls1_3": "alert certificate required"}[flag])
		}
		s.drain()
		s.withoutReports()
	})
	s.drain()
	s.withoutReports()
}
