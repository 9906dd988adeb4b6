package secure_test

import (
	"bytes"
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

func TestOpenSSL(t *testing.T) {
	server, _ := identities(t)
	server.NextProtos = []string{"echo"}
	cert := filepath.Join(t.TempDir(), "cert.pem")
	form := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificates[0].Certificate[0]})
	require.NoError(t, os.WriteFile(cert, form, 0o600))
	s := serve(t, overTLS(server))
	strict := []string{"-CAfile", cert, "-verify_return_error", "-verify_hostname", "localhost", "-alpn", "other,echo"}
	for flag, says := range map[string]string{"-tls1_2": "New, TLSv1.2", "-tls1_3": "New, TLSv1.3"} {
		o := s.openssl(t, append(strict, flag)...).shows("Verify return code: 0 (ok)").types("hello\n").shows("\nhello")
		out, err := o.ends()
		require.NoError(t, err, out)
		require.Contains(t, out, says)
		require.Contains(t, out, "ALPN protocol: echo")
	}

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

	s.drain()
	s.withoutReports()
}
