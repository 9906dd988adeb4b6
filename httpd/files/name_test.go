package files

import (
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// names are names of files, and "-" where a path names none; the fuzzer begins with them.
var names = map[string]string{
	"":                     ".",
	"a":                    "a",
	"a/b.txt":              "a/b.txt",
	"a b/\u00e4.txt":       "a b/\u00e4.txt",
	"a..b/c.":              "a..b/c.",
	"a:b":                  "a:b",
	"...a":                 "-",
	"/":                    "-",
	"/etc/passwd":          "-",
	"//host/share":         "-",
	"a//b":                 "-",
	"..":                   "-",
	"../a":                 "-",
	"a/..":                 "-",
	".":                    "-",
	"a/./b":                "-",
	"a\x00":                "-",
	`a\b`:                  "-",
	"\xff":                 "-",
	"\xc0\xae\xc0\xae/a":   "-", // two dots, too long
	"\xed\xa0\x80":         "-",
	".git/config":          "-",
	"a/.htpasswd":          "-",
	"a/.b/c":               "-",
	".well-known/":         "-",
	"a.git/b":              "a.git/b",
	"~root/a%2f..":         "~root/a%2f..", // once is enough
	"C:/Windows/win.ini":   "C:/Windows/win.ini",
	strings.Repeat("a", 9): "aaaaaaaaa",
}

func TestNames(t *testing.T) {
	for path, want := range names {
		name, dir, ok := nameOf(path, false)
		if !ok {
			name = "-"
		}
		require.Equal(t, want, name, "%q", path)
		require.Equal(t, path == "", dir, "%q", path)
		if name, dir, ok = nameOf(path+"/", false); path != "" && want != "-" {
			require.True(t, ok && dir && name == want, "%q is a directory's", path+"/")
		}
	}
}

func TestHiddenNames(t *testing.T) {
	for path, want := range map[string]bool{
		".git/config": true, "a/.b/c": true, "...": true, ".well-known/": true, "..a/.": false,
		".": false, "..": false, "a/..": false, "../a": false, "./a": false, ".\x00": false,
	} {
		_, _, ok := nameOf(path, true)
		require.Equal(t, want, ok, "%q", path)
	}
}

// decoded are paths without their escapes.
var decoded = map[string]string{
	"":              "",
	"a/b":           "a/b",
	"%61%2Eb%c3%A4": "a.b\u00e4",
	"%252e%252e":    "%2e%2e", // once
	"%252F":         "%2F",
	"%2e%2e/":       "../",
	"a+b":           "a+b",
	"%00":           "\x00", // which no file has in its name
	"%5c":           `\`,
	"%2F":           "-",
	"%":             "-",
	"%zz":           "-",
	"%+1":           "-",
}

func TestDecode(t *testing.T) {
	for path, want := range decoded {
		got, ok := decode([]byte(path))
		if !ok {
			got = "-"
		}
		require.Equal(t, want, got, path)
	}
}

// FuzzName: a valid name stays below the root, and is the decoded path.
func FuzzName(f *testing.F) {
	for path := range names {
		f.Add(path, false)
		f.Add(path+"/", true)
	}
	for path := range decoded {
		f.Add(path, false)
	}
	f.Fuzz(func(t *testing.T, path string, hidden bool) {
		plain, ok := decode([]byte(path))
		want, err := url.PathUnescape(path)
		require.Equal(t, err == nil && !strings.Contains(strings.ToUpper(path), "%2F"), ok, path)
		if !ok {
			return
		}
		require.Equal(t, want, plain)
		name, dir, ok := nameOf(plain, hidden)
		if !ok {
			return
		}
		require.True(t, fs.ValidPath(name), name)
		require.NotContains(t, name, "\x00")
		require.NotContains(t, name, `\`)
		for segment := range strings.SplitSeq(name, "/") {
			require.True(t, hidden || !strings.HasPrefix(segment, ".") || plain == "", name)
		}
		switch {
		case plain == "":
			require.True(t, dir && name == ".")
		case dir:
			require.Equal(t, plain, name+"/")
		default:
			require.Equal(t, plain, name)
		}
	})
}
