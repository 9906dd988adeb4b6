package syntax

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

// Eight bytes at a time give what the tables give one by one: for each byte at each place, in texts of any length up to
// three words, among bytes that carry or borrow.
func TestControlAndWordAgreeWithTheTables(t *testing.T) {
	tier.NoRace(t, "a million comparisons on one goroutine")
	names := setOf("-" + alphanumeric[len("0123456789"):])
	var text [24]byte
	for _, among := range []byte("a-Z \t\x00\x1f~\x7f\x80\xfe\xff") {
		for length := range len(text) + 1 {
			for at := range length {
				for i := range text {
					text[i] = among
				}
				for b := range 256 {
					text[at] = byte(b)
					compareWithTables(t, text[:length], names)
				}
			}
		}
	}
}

func compareWithTables(t *testing.T, text []byte, names Set) {
	n := min(len(text), 3)
	if got, want := Control(text, 0), Value.Run(text, 0); got != want {
		t.Fatalf("a control character at %d, not %d, in %q", want, got, text)
	}
	if got, want := Control(text, n), Value.Run(text, n); got != want {
		t.Fatalf("a control character at %d, not %d, in %q from %d on", want, got, text, n)
	}
	// The bytes of an incomplete word are left to the table.
	want := names.Run(text, 0)
	if want > len(text)/8*8 {
		want = len(text) / 8 * 8
	}
	if got := Word(text, 0); got != want {
		t.Fatalf("a word up to %d, not %d, in %q", want, got, text)
	}
}

// The names that decide how a message goes on are known in any case, and nothing like them is.
func TestKindsOfFields(t *testing.T) {
	require.Equal(t, Ordinary, KindOf(nil))
	for s := Ordinary + 1; s < Kinds; s++ {
		name := kindNames[s]
		for _, known := range []string{name, strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:]} {
			require.Equal(t, s, KindOf([]byte(known)))
		}
		for _, other := range []string{name[1:], name + "s", "x" + name[1:], name[:len(name)-1] + "x"} {
			require.Equal(t, Ordinary, KindOf([]byte(other)), "%q", other)
		}
	}
}
