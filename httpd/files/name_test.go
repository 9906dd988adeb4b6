package files

import (
	"fmt"
	"io/fs"
	"math"
	"mime"
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

func TestTypes(t *testing.T) {
	own := map[string]string{".gpx": "application/gpx+xml", ".txt": "text/plain; charset=iso-8859-1"}
	rest := map[string]string{"": "text/plain; charset=utf-8"}
	for _, x := range []struct {
		name string
		of   map[string]string
		want string
	}{
		{"index.html", nil, "text/html; charset=utf-8"},
		{"a/B.HTML", nil, "text/html; charset=utf-8"},
		{"a.min.js", nil, "text/javascript; charset=utf-8"},
		{"a.tar.gz", nil, "application/gzip"},
		{"LICENSE", nil, unknown},
		{"a.html/LICENSE", nil, unknown},
		{"a.", nil, unknown},
		{"a.exe", nil, unknown},
		{".html", nil, "text/html; charset=utf-8"},
		{"a.gpx", own, "application/gpx+xml"},
		{"a.txt", own, "text/plain; charset=iso-8859-1"},
		{"a.png", own, "image/png"},
		{"LICENSE", rest, "text/plain; charset=utf-8"},
		{"a.exe", rest, "text/plain; charset=utf-8"},
		{"a.png", rest, "image/png"},
	} {
		require.Equal(t, x.want, typeOf(x.name, x.of), "%s with %v", x.name, x.of)
	}
}

func TestTypesAreWellFormed(t *testing.T) {
	for ext, value := range types {
		require.Equal(t, "."+strings.ToLower(strings.Trim(ext, "./")), ext)
		name, parameters, err := mime.ParseMediaType(value)
		require.NoError(t, err, ext)
		text := strings.HasPrefix(name, "text/") && name != "text/xml" // which has a charset of its own
		require.Equal(t, text, parameters["charset"] == "utf-8", ext)
	}
}

// said is the result of a Range field for a file of that size: "ignored", "416", or the part.
func said(field string, size int64) string {
	part, obeyed := rangeOf([]byte(field), size)
	switch {
	case !obeyed:
		return "ignored"
	case part.size == 0:
		return "416"
	}
	return fmt.Sprintf("%d-%d", part.from, part.from+part.size-1)
}

type row struct{ name, field, want string }

func (r row) check(t *testing.T) {
	require.Equal(t, r.want, said(r.field, 100), "%s: %q", r.name, r.field)
}

// rangeSyntax has rows of RFC 9110 14.1.1; the fuzzer begins with them.
var rangeSyntax = []row{
	{"first and last", "bytes=0-4", "0-4"},
	{"everything", "bytes=0-99", "0-99"},
	{"a unit has no case", "BYTES=0-4", "0-4"},
	{"empty elements, 5.6.1.2", "bytes=, ,0-4,\t,", "0-4"},
	{"several", "bytes=0-4,10-19", "ignored"},

	{"no unit", "0-4", "ignored"},
	{"another unit, 14.2", "octets=0-4", "ignored"},
	{"a unit with a letter that folds to s", "byte\u017f=0-4", "ignored"},
	{"white space before the sign", "bytes =0-4", "ignored"},
	{"other white space, 5.6.3", "bytes=0-4,\v5-6", "ignored"},
	{"nothing", "", "ignored"},
	{"no ranges", "bytes=", "ignored"},
	{"only empty elements", "bytes=, ,", "ignored"},
	{"two dashes", "bytes=0--4", "ignored"},
	{"hexadecimal", "bytes=0x0-0x4", "ignored"},
	{"the last before the first", "bytes=4-0", "ignored"},
	{"the unit again", "bytes=0-4, bytes=5-9", "ignored"},
}

// RFC 9110 14.1.1: the syntax of a Range field.
func TestSyntaxOfRanges(t *testing.T) {
	for _, r := range rangeSyntax {
		r.check(t)
	}
}

// RFC 9110 14.1.2: the satisfiable ranges of 100 bytes.
func TestRangesThatAreServed(t *testing.T) {
	const large = "99999999999999999999999"
	for _, r := range []row{
		{"an open end", "bytes=90-", "90-99"},
		{"an end behind the end", "bytes=90-100", "90-99"},
		{"an end beyond all numbers", "bytes=90-" + large, "90-99"},
		{"a suffix", "bytes=-5", "95-99"},
		{"a suffix of all", "bytes=-100", "0-99"},
		{"a suffix of more", "bytes=-101", "0-99"},
		{"a suffix beyond all numbers", "bytes=-" + large, "0-99"},

		{"from behind the end", "bytes=100-", "416"},
		{"from beyond all numbers", "bytes=" + large + "-", "416"},
		{"from the largest number", fmt.Sprintf("bytes=%d-", int64(math.MaxInt64)), "416"},
		{"an empty suffix", "bytes=-0", "416"},
	} {
		r.check(t)
	}
}

// Content-Range cannot name an empty range (RFC 9110 14.4).
func TestAnEmptyFileHasNoRanges(t *testing.T) {
	for _, field := range []string{"bytes=0-", "bytes=0-0", "bytes=-1", "bytes=-0", "bytes=5-"} {
		require.Equal(t, "ignored", said(field, 0), field)
	}
}

// FuzzRange: the part is one of the file.
func FuzzRange(f *testing.F) {
	for _, r := range rangeSyntax {
		f.Add(r.field, int64(len(r.want)))
	}
	f.Add("bytes=-5,99999999999999999999-", int64(-1))
	f.Fuzz(func(t *testing.T, field string, size int64) {
		p, obeyed := rangeOf([]byte(field), size)
		require.True(t, !obeyed || p.size == 0 || p.size > 0 && p.from >= 0 && p.from <= size-p.size, "%+v of %d", p, size)
	})
}
