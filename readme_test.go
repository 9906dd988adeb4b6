package daimon_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// A newcomer follows "A first server" to the letter, in a module of their own. Only the version of Daimon is this
// checkout's, and the port one that is free.
func TestTheReadmesFirstServerRuns(t *testing.T) {
	readme := text(t, "README.md")
	at := goBlock.FindStringSubmatchIndex(readme)
	require.NotNil(t, at)
	dir := t.TempDir()
	checkout, err := filepath.Abs(".")
	require.NoError(t, err)
	run := func(name string, arguments ...string) {
		cmd := exec.Command(name, arguments...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=", "GOWORK=off") // this module has fetched all
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", cmd, out)
	}
	goMod := func(text string) { // its only command of this kind
		found := regexp.MustCompile(`(?m)^    go (mod .*)$`).FindAllStringSubmatch(text, -1)
		require.Len(t, found, 1)
		run("go", strings.Fields(found[0][1])...)
	}
	section, _, _ := strings.Cut(readme[at[1]:], "\n## ")
	goMod(readme[:at[0]])
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(readme[at[2]:at[3]]), 0o644))
	run("go", "mod", "edit", "-replace", module+"="+checkout)
	goMod(section)
	require.Contains(t, section, "\n    go run .\n") // which passes no signal on
	run("go", "vet", ".")
	run("go", "build", "-o", "hello", ".")

	server := exec.Command(filepath.Join(dir, "hello"), "-addr", "127.0.0.1:0")
	log, err := server.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill() })
	addr := ""
	for lines := bufio.NewReader(log); addr == ""; {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		_, addr, _ = strings.Cut(strings.TrimSpace(line), "listening on ")
	}
	resp, err := http.Get("http://" + addr + "/")
	require.NoError(t, err)
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, section, "curl http://127.0.0.1:8080/\n    "+string(said))
	require.NoError(t, server.Process.Signal(os.Interrupt))
	_, err = io.Copy(io.Discard, log)
	require.NoError(t, err)
	require.NoError(t, server.Wait(), "an orderly end has status 0")
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
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md"} {
		documents, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, document := range documents {
			for _, l := range link.FindAllStringSubmatch(text(t, document), -1) {
				_, err := os.Stat(filepath.Join(filepath.Dir(document), l[1]))
				require.NoError(t, err, "%s links to %s", document, l[1])
			}
		}
	}
}
