package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// haproxy runs HAProxy with these sections, each of which listens at one of the addresses that it returns: "bind LISTEN". The
// sockets are the test's, so that no port is guessed and no client comes too early.
func haproxy(t *testing.T, sections ...string) (at []string) {
	t.Helper()
	config := "defaults\n  mode tcp\n  timeout connect 2m\n  timeout client 2m\n  timeout server 2m\n"
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	cmd := exec.Command(tier.Tool(t, "haproxy"), "-db", "-f", path)
	for i, section := range sections {
		l := behind(t)
		f, err := l.File()
		require.NoError(t, err)
		defer f.Close()
		require.NoError(t, l.Close())
		at, cmd.ExtraFiles = append(at, l.Addr().String()), append(cmd.ExtraFiles, f)
		config += strings.Replace(section, "LISTEN", fmt.Sprintf("fd@%d", 3+i), 1)
	}
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	exectest.Start(t, cmd)
	return at
}

// Clients come from 127.0.0.77, and HAProxy connects from 127.0.0.1.
func TestClientsBehindHAProxy(t *testing.T) {
	outside(t)
	t.Parallel()
	for _, row := range []struct {
		name, scheme string
		flags        []string
	}{
		{"plain", "http://", nil},
		{"TLS that HAProxy passes on", "https://", []string{"-tls-self"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := serve(t, "httpd", append([]string{"-proxy-from", "127.0.0.1", "-access-log", "-"}, row.flags...)...)
			var sections []string
			for i, option := range []string{"send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id,authority,ssl"} {
				sections = append(sections, fmt.Sprintf("listen l%d\n  bind LISTEN\n  unique-id-format %%[uuid()]\n  server s %s %s\n", i, server.Addr, option))
			}
			all := haproxy(t, sections...)
			for i, at := range all {
				require.Equal(t, "Hello, World!", curl(t, "--interface", "127.0.0.77", fmt.Sprintf("%s%s/?%d", row.scheme, at, i)))
			}
			server.Stop(t)
			for i := range all {
				require.Regexp(t, fmt.Sprintf(`"GET /\?%d HTTP/(1\.1|2\.0)" 200`, i), server.Out())
			}
			require.Equal(t, len(all), strings.Count("\n"+server.Out(), "\n127.0.0.77 "), "%s", server.Out())
		})
	}
}

// Clients come from 127.0.0.77. What is behind the proxy answers with the address that it was told.
func TestTheProxyNamesItsClients(t *testing.T) {
	outside(t)
	t.Parallel()
	const answers = "frontend f\n  mode http\n  bind LISTEN accept-proxy%s\n  http-request return status 200 content-type text/plain lf-string \"%%[src] %%[dst_port]\"\n"
	id := certify(t, t.TempDir(), soon())
	both := filepath.Join(t.TempDir(), "both.pem")
	var pem []byte
	for _, path := range []string{id.cert, id.key} {
		part, err := os.ReadFile(path)
		require.NoError(t, err)
		pem = append(pem, part...)
	}
	require.NoError(t, os.WriteFile(both, pem, 0o600))
	at := haproxy(t, fmt.Sprintf(answers, ""), fmt.Sprintf(strings.Replace(answers, "frontend f", "frontend g", 1), " ssl crt "+both))
	for _, version := range []string{"v1", "v2"} {
		for _, row := range []struct {
			name, to string
			flags    []string
		}{
			{"plain", at[0], nil},
			{"before the TLS of the other side", strings.Replace(at[1], "127.0.0.1", "localhost", 1), []string{"-tls-to", "-tls-ca", id.cert}},
		} {
			t.Run(version+" "+row.name, func(t *testing.T) {
				near := serve(t, "proxy", append([]string{"-to", row.to, "-send-proxy", version}, row.flags...)...)
				_, port, err := net.SplitHostPort(near.Addr)
				require.NoError(t, err)
				require.Equal(t, "127.0.0.77 "+port, curl(t, "--interface", "127.0.0.77", "http://"+near.Addr+"/"))

				second := serve(t, "proxy", append([]string{"-to", row.to, "-proxy-from", "127.0.0.1", "-send-proxy", version}, row.flags...)...)
				first := serve(t, "proxy", "-to", second.Addr, "-send-proxy", "v2") // the client's addresses pass through both
				_, port, err = net.SplitHostPort(first.Addr)
				require.NoError(t, err)
				require.Equal(t, "127.0.0.77 "+port, curl(t, "--interface", "127.0.0.77", "http://"+first.Addr+"/"))
			})
		}
	}
}
