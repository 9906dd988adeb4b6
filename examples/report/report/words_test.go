package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func counted(text string) *words {
	w := newWords()
	for _, c := range text {
		w.add(c)
	}
	w.end()
	return w
}

func TestWords(t *testing.T) {
	for text, top := range map[string][]frequency{
		"":                             {},
		" \n — ''' | ... \u0301":       {},
		"b a c c b c d":                {{"c", 3}, {"b", 2}, {"a", 1}},
		"The the THE tHe Ärger ärger":  {{"the", 4}, {"ärger", 2}},
		"2 times 2 is 4, x1":           {{"2", 2}, {"4", 1}, {"is", 1}},
		"don't don’t 'tis o'clock'''s": {{"don't", 1}, {"don’t", 1}, {"o'clock'''s", 1}},
		"the dogs' dogs":               {{"dogs", 2}, {"the", 1}},
		"e\u0301tude é \u0301x":        {{"e\u0301tude", 1}, {"x", 1}, {"é", 1}},
		"Ещё раз: ещё. 日本語":            {{"ещё", 2}, {"раз", 1}, {"日本語", 1}},
	} {
		w := counted(text)
		require.Equal(t, top, w.top(3), text)
		require.Zero(t, w.rest)
	}
}

func TestWordLengthIsBounded(t *testing.T) {
	longest, longer := strings.Repeat("é", maxWord), strings.Repeat("x", 1<<20)
	w := counted(longest + " " + longer + " " + longer + " x")
	require.EqualValues(t, 4, w.n)
	require.EqualValues(t, 2, w.rest)
	require.Equal(t, []frequency{{"x", 1}, {longest, 1}}, w.top(3))
	require.LessOrEqual(t, cap(w.word), 4*maxWord)
}

func TestDifferentWordsAreBounded(t *testing.T) {
	w := newWords()
	for i := range maxDifferent - 1 {
		w.counts[fmt.Sprint("w", i)] = new(int64)
	}
	for _, c := range "x y z w1 w1 " {
		w.add(c)
	}
	require.Len(t, w.counts, maxDifferent)
	require.EqualValues(t, 2, w.rest, "y and z")
	require.Equal(t, frequency{"w1", 2}, w.top(1)[0], "those that are known already are counted on")
}
