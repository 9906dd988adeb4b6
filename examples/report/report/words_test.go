package report

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowly counts the words of a text with a regular expression.
func slowly(text string) (n int, counts map[string]int64) {
	counts = map[string]int64{}
	all := regexp.MustCompile(`[\pL\pN][\pL\pN\pM'’]*`).FindAllString(text, -1)
	for _, word := range all {
		counts[strings.TrimRight(strings.ToLower(word), "'’")]++
	}
	return len(all), counts
}

func counted(text string) *words {
	w := newWords()
	for _, c := range text {
		w.add(c)
	}
	w.end()
	return w
}

func requireWords(t *testing.T, text string) {
	t.Helper()
	n, counts := slowly(text)
	w := counted(text)
	require.EqualValues(t, n, w.n)
	require.Zero(t, w.rest)
	require.Len(t, w.counts, len(counts))
	for word, n := range counts {
		require.Equal(t, n, *w.counts[word], "%q", word)
	}
}

func TestWords(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":      "",
		"no word":      " \n — ''' | ... \u0301",
		"one":          "word",
		"case":         "The the THE tHe Ärger ärger",
		"digits":       "2 times 2 is 4, x1 ½",
		"apostrophes":  "don't don’t 'tis the dogs' o'clock'''s rock'n'roll",
		"marks":        "e\u0301tude é \u0301x",
		"other script": "Ещё раз: ещё раз. 日本語 日本語",
		"Go":           "for i := range n { fmt.Println(i) }",
	} {
		t.Run(name, func(t *testing.T) { requireWords(t, text) })
	}
}

func TestTop(t *testing.T) {
	w := counted("b a c c b c d")
	require.Equal(t, []frequency{{"c", 3}, {"b", 2}, {"a", 1}}, w.top(3))
	require.Len(t, w.top(100), 4)
	require.Empty(t, counted("").top(3))
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
