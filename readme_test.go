package daimon_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

func text(t *testing.T, path string) string {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

var (
	goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")
	goLink  = regexp.MustCompile(`\]\(([^)]*\.go)\)`)
)

// Each piece of code is in the Go file that the text before it links to. A program is not a piece: see the next test.
func TestTheReadmeShowsCodeThatRuns(t *testing.T) {
	readme := text(t, "README.md")
	for _, at := range goBlock.FindAllStringSubmatchIndex(readme, -1) {
		code := readme[at[2]:at[3]]
		if strings.HasPrefix(code, "package main\n") {
			continue
		}
		links := goLink.FindAllStringSubmatch(readme[:at[0]], -1)
		require.NotEmpty(t, links)
		path := links[len(links)-1][1]
		require.Contains(t, text(t, path), "\n"+code, "it is not in %s", path)
	}
}

// newcomer is somebody with a module of their own.
type newcomer struct {
	*testing.T
	dir string
}

// run runs a command in the module's directory.
func (n newcomer) run(name string, arguments ...string) {
	n.Helper()
	cmd := exec.Command(name, arguments...)
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=", "GOWORK=off") // this module has fetched all
	out, err := cmd.CombinedOutput()
	require.NoError(n, err, "%s: %s", cmd, out)
}

// goMod runs the only command of this kind in text.
func (n newcomer) goMod(text string) {
	n.Helper()
	found := regexp.MustCompile(`(?m)^    go (mod .*)$`).FindAllStringSubmatch(text, -1)
	require.Len(n, found, 1)
	n.run("go", strings.Fields(found[0][1])...)
}

// serve builds the program, runs it on a free port, gets its page from that address, and ends it.
func (n newcomer) serve(flags string, get func(addr string) (*http.Response, error)) (page string) {
	n.Helper()
	n.running(flags+" -addr 127.0.0.1:0", 1, func(addr []string) {
		resp, err := get(addr[0])
		require.NoError(n, err)
		defer resp.Body.Close()
		said, err := io.ReadAll(resp.Body)
		require.NoError(n, err)
		page = string(said)
	})
	return page
}

// running builds the program, runs it, calls f when it listens on so many addresses, and ends it.
func (n newcomer) running(flags string, addresses int, f func(addr []string)) {
	n.Helper()
	n.run("go", "build", "-o", "hello", ".")
	server := exec.Command("./hello", strings.Fields(flags)...)
	server.Dir = n.dir
	log, err := server.StderrPipe()
	require.NoError(n, err)
	require.NoError(n, server.Start())
	n.Cleanup(func() { _ = server.Process.Kill() })
	var addr []string
	for lines := bufio.NewReader(log); len(addr) < addresses; {
		line, err := lines.ReadString('\n')
		require.NoError(n, err)
		if _, at, ok := strings.Cut(strings.TrimSpace(line), "listening on "); ok {
			addr = append(addr, at)
		}
	}
	f(addr)
	require.NoError(n, server.Process.Signal(os.Interrupt))
	_, err = io.Copy(io.Discard, log)
	require.NoError(n, err)
	require.NoError(n, server.Wait(), "an orderly end has status 0")
}

// A newcomer follows "A first server", and "TLS" of the tour, to the letter. Only the version of Daimon is this checkout's, and the port
// one that is free.
func TestTheFirstServersRun(t *testing.T) {
	tier.Need(t, tier.Full, "builds two programs in a module of its own")
	readme := text(t, "README.md")
	checkout, err := filepath.Abs(".")
	require.NoError(t, err)
	n := newcomer{t, t.TempDir()}
	program := func(at []int) {
		code := readme[at[2]:at[3]]
		require.True(t, strings.HasPrefix(code, "package main\n"))
		require.NoError(t, os.WriteFile(filepath.Join(n.dir, "main.go"), []byte(code), 0o644))
	}

	at := goBlock.FindStringSubmatchIndex(readme)
	section, _, _ := strings.Cut(readme[at[1]:], "\n## ")
	n.goMod(readme[:at[0]])
	program(at)
	n.run("go", "mod", "edit", "-replace", module+"="+checkout)
	n.goMod(section)
	require.Contains(t, section, "\n    go run .\n") // which passes no signal on
	page := n.serve("", func(addr string) (*http.Response, error) { return http.Get("http://" + addr + "/") })
	require.Contains(t, section, "curl http://127.0.0.1:8080/\n    "+page)

	_, readme, _ = strings.Cut(text(t, "docs/tour.md"), "\n## TLS\n")
	at = goBlock.FindStringSubmatchIndex(readme)
	section, _, _ = strings.Cut(readme[at[1]:], "\n## ")
	program(at)
	n.run("go", "mod", "tidy")
	command := regexp.MustCompile(`(?m)^    (go run .*/generate_cert.go .*)\n    go run \. (.*)$`).FindStringSubmatch(section)
	require.NotNil(t, command)
	n.run("sh", "-c", command[1])
	made, err := os.ReadFile(filepath.Join(n.dir, "cert.pem"))
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(made))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}
	page = n.serve(command[2], func(addr string) (*http.Response, error) {
		return (&http.Client{Transport: transport}).Get("https://" + addr + "/")
	})
	require.Contains(t, section, "curl -k https://127.0.0.1:8080/\n    "+page)
}

// The README is for a reader who decides in two minutes, and ARCHITECTURE is one page.
func TestTheFirstPagesAreShort(t *testing.T) {
	require.LessOrEqual(t, strings.Count(text(t, "README.md"), "\n"), 170)
	require.LessOrEqual(t, len(strings.Fields(text(t, "ARCHITECTURE.md"))), 900)
}

func TestTheReadmesTwoCommandsAreThere(t *testing.T) {
	readme := text(t, "README.md")
	require.Contains(t, readme, "\n    go run ./examples/httpd\n")
	require.FileExists(t, "examples/httpd/main.go")
	require.Contains(t, readme, "\n    make test\n")
	require.Regexp(t, `(?m)^test:`, text(t, "Makefile"))
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	for _, document := range documents(t) {
		for _, l := range link.FindAllStringSubmatch(text(t, document), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(document), l[1]))
			require.NoError(t, err, "%s links to %s", document, l[1])
		}
	}
}
