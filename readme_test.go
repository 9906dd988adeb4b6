package daimon_test

import (
	"os"
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

func TestReadmeShowsTheCodeThatRuns(t *testing.T) {
	for name, path := range map[string]string{"Hello": "examples/httpd/web/web.go", "Echo": "examples/echo/echo/echo.go"} {
		_, code, found := strings.Cut(text(t, "README.md"), "```go\nfunc "+name+"(")
		require.True(t, found)
		code, _, _ = strings.Cut(code, "```")
		require.Contains(t, text(t, path), "\nfunc "+name+"("+code)
	}
}

// The README's test command must not forget a module.
func TestReadmeTestsEveryModule(t *testing.T) {
	command := regexp.MustCompile(`(?m)^    (go test .*)$`).FindStringSubmatch(text(t, "README.md"))
	require.NotNil(t, command)
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod"} {
		modules, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range modules {
			if dir := filepath.ToSlash(filepath.Dir(path)); dir != "tools" { // has no packages
				require.Contains(t, command[1], " -C "+dir+" ")
			}
		}
	}
}

// The README's test command failed on a fresh machine for want of curl, which .ci/run had installed.
func TestReadmeNamesWhatTheTestsNeed(t *testing.T) {
	install := regexp.MustCompile("apt-get install ([^`]*)`").FindStringSubmatch(text(t, "README.md"))
	require.NotNil(t, install)
	missing := regexp.MustCompile(`missing\+=\((.*)\)`).FindAllStringSubmatch(text(t, ".ci/run"), -1)
	require.NotEmpty(t, missing)
	var needed []string
	for _, m := range missing {
		needed = append(needed, strings.Fields(m[1])...)
	}
	require.ElementsMatch(t, needed, strings.Fields(install[1]))
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
