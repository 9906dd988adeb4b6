package files

import (
	"mime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
