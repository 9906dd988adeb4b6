package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

func TestSite(t *testing.T) {
	outside(t)
	t.Parallel()
	root := t.TempDir()
	large := filepath.Join(root, "large.bin")
	require.NoError(t, os.WriteFile(large, content(1, 3<<20), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "small.txt"), []byte("a small file\n"), 0o644))
	for scheme, flags := range map[string][]string{"http://": {"-root", root}, "https://": {"-root", root, "-tls-self"}} {
		t.Run(scheme, func(t *testing.T) {
			server := serve(t, "httpd", flags...)
			curled(t, scheme+server.Addr, large)
			out, err := exec.Command(tier.Tool(t, "wrk"), "-t2", "-c100", "-d1s", scheme+server.Addr+"/").CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.NotContains(t, string(out), "Socket errors")
			require.NotContains(t, string(out), "Non-2xx")
			server.Stop(t)
			require.NotContains(t, server.Said(), "failed")
		})
	}
}

func curl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := exec.Command(tier.Tool(t, "curl"), append([]string{"-ksS", "--noproxy", "*", "--max-time", "120"}, arguments...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func curled(t *testing.T, url, large string) {
	require.Equal(t, "Hello, World!", curl(t, url+"/"))
	require.Equal(t, strings.Repeat("Hello, World!", 3), curl(t, url+"/", url+"/", url+"/"))
	require.Equal(t, "Hello, World!", curl(t, "-0", url+"/"))
	require.Equal(t, "Hello, World!2", curl(t, "-w", "%{http_version}", "--http2-prior-knowledge", url+"/"))
	require.Regexp(t, `(?s)^HTTP/1.1 200 OK\r\nDate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT\r\nContent-Length: 13\r\n`+
		`Content-Type: text/plain; charset=utf-8\r\n\r\n$`, curl(t, "--http1.1", "-I", url+"/"))

	whole := string(content(1, 3<<20))
	require.True(t, whole == curl(t, "--data-binary", "@"+large, url+"/echo"), "with its length, after 100 (Continue)")
	require.True(t, whole == curl(t, "-H", "Transfer-Encoding: chunked", "--data-binary", "@"+large, url+"/echo"), "in chunks")
	require.Empty(t, curl(t, "-d", "", url+"/echo"))

	require.True(t, whole == curl(t, url+"/files/large.bin"))
	require.True(t, whole[1<<20:2<<20] == curl(t, "-r", "1048576-2097151", url+"/files/large.bin"))
	require.Equal(t, "a small file\n", curl(t, url+"/files/small.txt"))
}
