package report

import (
	"bytes"
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// The memory for a file is bounded, however large it is.
const (
	maxWord      = 64      // characters of a word; longer words are only counted
	maxDifferent = 1 << 17 // different words of a file; further ones are only counted
	maxKept      = 1000    // words of a file that go into the database, the most frequent ones
)

// words counts the words of a text, one character at a time. A word begins with a letter or a digit, and may have
// apostrophes. Upper and lower case are the same.
type words struct {
	n      int64 // all words
	counts map[string]*int64
	rest   int64 // words that are not in counts

	length int // of the current word, in characters; 0: none
	word   []byte
}

func newWords() *words { return &words{counts: map[string]*int64{}} }

// add takes the next character.
func (w *words) add(c rune) {
	switch {
	case unicode.IsLetter(c) || unicode.IsNumber(c):
	case w.length > 0 && (c == '\'' || c == '’' || unicode.IsMark(c)):
	default:
		w.end()
		return
	}
	if w.length++; w.length <= maxWord {
		w.word = utf8.AppendRune(w.word, unicode.ToLower(c))
	}
}

// end ends the current word.
func (w *words) end() {
	if w.length == 0 {
		return
	}
	word := bytes.TrimRight(w.word, "'’")
	n := w.counts[string(word)]
	if n == nil && w.length <= maxWord && len(w.counts) < maxDifferent {
		n = new(int64)
		w.counts[string(word)] = n
	}
	if w.n++; n != nil && w.length <= maxWord {
		*n++
	} else {
		w.rest++
	}
	w.length, w.word = 0, w.word[:0]
}

// frequency is how often a word occurs.
type frequency struct {
	word string
	n    int64
}

// top returns the most frequent words, at most that many, the most frequent first. Equally frequent ones are in the order
// of their bytes.
func (w *words) top(most int) []frequency {
	all := make([]frequency, 0, len(w.counts))
	for word, n := range w.counts {
		all = append(all, frequency{word, *n})
	}
	slices.SortFunc(all, func(a, b frequency) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.word, b.word))
	})
	return slices.Clone(all[:min(most, len(all))])
}
