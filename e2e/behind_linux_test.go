package e2e

import (
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

// nginx runs nginx, which speaks HTTP/2 on the Unix socket that it returns, and passes requests on.
func nginx(t *testing.T, pass string) (at string) {
	t.Helper()
	dir := folder(t)
	config := "daemon off; master_process off; pid pid; events {} http { access_log off; client_max_body_size 16m;\n" +
		"client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;\n" +
		"server { listen unix:" + dir + "/web http2; location / { " + pass + " } } }\n"
	path := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	exectest.Start(t, exec.Command(tier.Tool(t, "nginx"), "-p", dir, "-e", "stderr", "-c", path))
	exectest.Eventually(t, patience, "nginx to listen", func() bool {
		c, err := net.Dial("unix", dir+"/web")
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "unix:" + dir + "/web"
}

// A proxy speaks HTTP/2 with its clients, and either version with the server.
func TestHTTP2BehindAProxy(t *testing.T) {
	outside(t)
	t.Parallel()
	large := filepath.Join(t.TempDir(), "large")
	whole := content(1, 1<<20)
	require.NoError(t, os.WriteFile(large, whole, 0o600))
	listen := func(t *testing.T, server string) string {
		return haproxy(t, "listen web\n  mode http\n  bind LISTEN proto h2\n  server s "+server+"\n")[0]
	}
	for _, row := range []struct {
		name, version string
		proxy         func(t *testing.T, server string) string
	}{
		{"nginx", "1.1", func(t *testing.T, server string) string {
			return nginx(t, `proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://`+server+";")
		}},
		{"nginx to HTTP/2", "2.0", func(t *testing.T, server string) string { return nginx(t, "grpc_pass grpc://"+server+";") }},
		{"HAProxy", "1.1", listen},
		{"HAProxy to HTTP/2", "2.0", func(t *testing.T, server string) string { return listen(t, server+" proto h2") }},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := serve(t, "httpd", "-access-log", "-")
			at := row.proxy(t, server.Addr)
			flags, base := []string{"--http2-prior-knowledge", "-w", "%{http_version} %{content_type}"}, at
			if path, ok := strings.CutPrefix(at, "unix:"); ok {
				at, flags = "x", append(flags, "--unix-socket", path)
			} else {
				base = "http://" + at
			}
			url := "http://" + at
			require.Equal(t, "Hello, World!2 text/plain; charset=utf-8", curl(t, append(flags, url)...))
			require.True(t, string(whole)+"2 application/octet-stream" == curl(t, append(flags, "--data-binary", "@"+large, url+"/echo")...))
			out, err := exec.Command(tier.Tool(t, "h2load"), "-n", "500", "-c", "2", "-m", "100", "-B", base, url).CombinedOutput()
			require.NoError(t, err)
			require.Contains(t, string(out), " 500 succeeded, 0 failed")
			server.Stop(t)
			require.Equal(t, 502, strings.Count(server.Out(), " HTTP/"+row.version+`" 200`))
			require.NotContains(t, server.Said(), "failed")
		})
	}
}
