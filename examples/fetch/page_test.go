package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageShowsThisCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/four-ways.md")
	require.NoError(t, err)
	require.NotRegexp(t, `WHAT|TODO|XXX`, string(page))
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all.Write(text)
	}
	pieces := strings.Split(string(page), "```go\n")[1:]
	require.Len(t, pieces, 5)
	for _, piece := range pieces {
		code, _, _ := strings.Cut(piece, "```")
		require.Contains(t, all.String(), code, "docs/four-ways.md shows what is not there any more")
	}
}
