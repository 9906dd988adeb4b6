package libraries

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// connect's runner tests a server of connect, with its own client and that of grpc-go, by gRPC, gRPC-Web and Connect. The server is
// the one of the same module, whose source is changed for the test: a nethttp.Server takes the place of the http.Server.
func TestConnectConformance(t *testing.T) {
	tier.Need(t, tier.Full, "builds connect's conformance runner, and runs 2,400 cases")
	const module, runner, server = "connectrpc.com/conformance", "connectconformance", "referenceserver"
	dir := t.TempDir()
	command := func(name string, arguments ...string) string {
		cmd := exec.Command(name, arguments...)
		cmd.Env = append(os.Environ(), "GOWORK=off") // a workspace takes no -modfile
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	source := filepath.Join(dir, "source")
	require.NoError(t, os.CopyFS(source, os.DirFS(strings.TrimSpace(command("go", "list", "-m", "-f", "{{.Dir}}", module)))))
	changed := filepath.Join(source, "internal", "app", server, "server.go")
	text, err := os.ReadFile(changed)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(changed, []byte(strings.NewReplacer(
		"svr *http.Server", "svr *nethttp.Server",
		"&http.Server{", "&nethttp.Server{",
		"TLSNextProto: ", "// ",
		"import (", "import (\n\t\"github.com/daimon-go/daimon/httpd/nethttp\"",
	).Replace(string(text))), 0o600))

	mod := filepath.Join(dir, "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	command("go", "mod", "edit", "-replace", module+"="+source, mod)
	command("go", "build", "-modfile", mod, "-o", dir, module+"/cmd/"+runner, module+"/cmd/"+server)
	config := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte("features: {versions: ["+tier.Choose("", "", "HTTP_VERSION_1, ")+"HTTP_VERSION_2], "+
		"compressions: [COMPRESSION_IDENTITY, COMPRESSION_GZIP], supports_tls_client_certs: true}\n"), 0o600))
	out := command(filepath.Join(dir, runner), "--mode", "server", "--conf", config, "--", filepath.Join(dir, server))
	t.Log(out[strings.LastIndex(out, "Total cases"):])
}
