package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
)

// SIGHUP is for all: the log is opened again after logrotate has renamed it, and the certificate is read again.
func TestHangupIsForTheAccessLogAndTheCertificate(t *testing.T) {
	outside(t)
	t.Parallel()
	dir := t.TempDir()
	id, log := certify(t, dir, soon()), filepath.Join(dir, "access.log")
	server := serve(t, "httpd", append(id.flags(), "-access-log", log, "-access-log-format", "json")...)
	written := func(path, line string) {
		t.Helper()
		exectest.Eventually(t, patience, line, func() bool {
			text, err := os.ReadFile(path)
			return err == nil && strings.Contains(string(text), line)
		})
	}
	curl(t, "https://"+server.Addr+"/?1", "-A", `"quoted"`)
	written(log, `"tls":true,"method":"GET","target":"/?1","protocol":"HTTP/1.1","host":"`+server.Addr+`","status":200,"bytes":13,`)
	written(log, `"user_agent":"\u0022quoted\u0022"}`+"\n")
	require.NoError(t, os.Rename(log, log+".1"))
	curl(t, "https://"+server.Addr+"/?2")
	written(log+".1", `"/?2"`)

	server.Signal(t, syscall.SIGHUP)
	for _, says := range []string{"opened the access log " + log + " again", "read the certificate in " + id.cert + " again"} {
		exectest.Eventually(t, patience, says, func() bool { return strings.Contains(server.Said(), says) })
	}
	curl(t, "https://"+server.Addr+"/?3")
	server.Stop(t)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "\n"), "the last line is there at the end: %s", text)
	require.Contains(t, string(text), `"/?3"`)
}

func TestAccessLogOnStandardOutput(t *testing.T) {
	outside(t)
	t.Parallel()
	server := serve(t, "httpd", "-access-log", "-")
	for range 3 {
		curl(t, "http://"+server.Addr+"/", "-A", "a")
	}
	server.Stop(t)
	require.Len(t, server.Lines(), 3)
	for _, line := range server.Lines() {
		require.Regexp(t, `^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:[\d:]{8} [+-]\d{4}\] "GET / HTTP/1\.1" 200 13 "-" "a"$`, line)
	}
}

// A log that cannot be written costs its lines, and not a request.
func TestAnAccessLogThatCannotBeWritten(t *testing.T) {
	outside(t)
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer w.Close()
	for _, row := range []struct{ path, says string }{
		{"/dev/full", "no space left on device"},
		{"-", "broken pipe"},
	} {
		cmd := example("httpd").Command(t, "-addr", "127.0.0.1:0", "-access-log", row.path)
		if row.path == "-" {
			cmd.Stdout = w
		}
		server := listen(t, cmd)
		lost := func(n string) func() bool {
			return func() bool {
				return strings.Contains(server.Said(), `ERROR	lines of the access log are lost	{"lines": `+n+`, "error": "write `) &&
					strings.Contains(server.Said(), row.says)
			}
		}
		require.Equal(t, "Hello, World!", curl(t, "http://"+server.Addr+"/"))
		exectest.Eventually(t, patience, "a report", lost("1"))
		require.Equal(t, strings.Repeat("Hello, World!", 3), curl(t, "http://"+server.Addr+"/", "http://"+server.Addr+"/", "http://"+server.Addr+"/"))
		server.Stop(t)
		require.True(t, lost("3")(), "%s", server.Said())
	}
}
