package report

import (
	"context"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
)

func TestScan(t *testing.T) {
	for name, row := range map[string]struct {
		text                string
		lines, bytes, words int64
	}{
		"nothing":            {"", 0, 0, 0},
		"no end of line":     {"a b", 0, 3, 2},
		"an end of line":     {"a b\n", 1, 4, 2},
		"carriage returns":   {"a\r\nb\r\n", 2, 6, 2},
		"empty lines":        {"\n\n\n", 3, 3, 0},
		"wide characters":    {"Ä €\n😀", 1, 11, 1},
		"the real U+FFFD":    {"\ufffd", 0, 3, 0},
		"a mark of the text": {"\ufeffa", 0, 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := (&Work{}).scan(t.Context(), iotest.OneByteReader(strings.NewReader(row.text)))
			require.NoError(t, err)
			require.Equal(t, row.lines, c.lines)
			require.Equal(t, row.bytes, c.bytes)
			require.Equal(t, row.words, c.words)
		})
	}
	for _, text := range []string{"\x00", "a\x00", "\xff", "a \xe2\x82"} {
		_, err := (&Work{}).scan(t.Context(), strings.NewReader(text))
		require.ErrorIs(t, err, errNoText, "%q", text)
	}
}

// A scan of one long line stops as early as a scan of many lines.
func TestScanIsLeft(t *testing.T) {
	for _, text := range []string{"x", "x\n"} {
		ctx, end := context.WithCancelCause(t.Context())
		defer end(nil)
		read := 0
		_, err := (&Work{}).scan(ctx, reader(func(p []byte) (int, error) {
			if read += copy(p, strings.Repeat(text, len(p))); read > 1<<20 {
				end(stage.ErrSuspended)
			}
			return len(p) / len(text) * len(text), nil
		}))
		require.ErrorIs(t, err, stage.ErrSuspended)
		require.Less(t, read, 2<<20)
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }
