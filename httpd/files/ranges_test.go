package files

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

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
