package http2

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPriorities(t *testing.T) {
	type priority struct {
		urgency     uint8
		incremental bool
	}
	for value, want := range map[string]priority{
		// RFC 9218 4
		"": {3, false}, "u=0": {0, false}, "u=7, i": {7, true}, "i": {3, true}, "i=?0": {3, false}, "i=?1,u=1": {1, true},
		"u=8": {3, false}, "u=-1": {3, false}, "u=1.0": {3, false}, "u=\"1\"": {3, false}, "u": {3, false}, "u=?1": {3, false},
		"i=1": {3, false}, "u=1, i=8": {1, false}, "u=1, x=(a b);c=d, i": {1, true},
		// RFC 8941 4.2
		"  u=1  ": {1, false}, "u=1\t,\ti": {1, true}, "u=1,": {3, false}, ",u=1": {3, false}, "u=1 i": {3, false},
		"u=1,,i": {3, false}, "u =1": {3, false}, "u= 1": {3, false}, "U=1": {3, false}, "u=1;a;b=?0;  c=:YQ==:": {1, false},
		"u=1, u=2": {2, false}, "u=1, u=9": {3, false}, "i, i=?0": {3, false},
		"u=1, a=(": {3, false}, "u=1, a=\"\\\"\"": {1, false},
		"u=1, a=\"\x7f\"": {3, false}, "u=1, a=*/:b": {1, false}, "u=01": {1, false}, "u=-0": {0, false},
		"u=000000000000001": {1, false}, "u=0000000000000001": {3, false}, "u=1, a=123456789012.123": {1, false},
		"u=1, a=1234567890123.1": {3, false}, "u=1, a=1.1234": {3, false}, "u=1, a=1.": {3, false}, "u=1, a=?2": {3, false},
		"u=1, a=(\"x\"5)": {3, false}, "u=1, a=(5": {3, false}, "u=1, a=( )": {1, false},
	} {
		var got priority
		got.urgency, got.incremental = ParsePriority([]byte(value))
		require.Equal(t, want, got, "%q", value)
	}
	id, urgency, incremental, err := ReadPriorityUpdate([]byte("\x80\x00\x00\x05u=2, i"))
	require.Nil(t, err)
	require.Equal(t, []any{uint32(5), uint8(2), true}, []any{id, urgency, incremental})
	for _, p := range []string{"\x00\x00\x00\x00u=1", "\x00\x00\x00\x02u=1"} { // RFC 9218 7.1
		_, _, _, err = ReadPriorityUpdate([]byte(p))
		require.Equal(t, errUpdated, err)
	}
}

// The grammar of RFC 8941 as regular expressions.
var (
	keyOf   = `[a-z*][a-z0-9_.*-]*`
	tokenOf = "[A-Za-z*][!#$%&'*+\\-.^_|~:/0-9A-Za-z`]*"
	textOf  = `"(?:[ !#-\[\]-~]|\\["\\])*"`
	itemOf  = `(?:\?[01]|:[A-Za-z0-9+/=]*:|` + textOf + `|` + tokenOf + `|-?[0-9]{1,12}\.[0-9]{1,3}|-?[0-9]{1,15})`
	parsOf  = `(?:; *` + keyOf + `(?:=` + itemOf + `)?)*`
	listOf  = `\( *(?:` + itemOf + parsOf + `(?: +` + itemOf + parsOf + `)*)? *\)`
	member  = `(` + keyOf + `)(?:=(` + listOf + `|` + itemOf + `))?` + parsOf
	members = regexp.MustCompile(`^ *(?:` + member + `(?:[ \t]*,[ \t]*` + member + `)*[ \t]*)? *$`)
	one     = regexp.MustCompile(`^ *` + member + `[ \t]*(?:,[ \t]*|$)`)
)

func slowPriority(value string) (urgency uint8, incremental bool) {
	urgency = 3
	if !members.MatchString(value) {
		return urgency, false
	}
	for value = strings.TrimRight(value, " "); value != ""; {
		m := one.FindStringSubmatch(value)
		switch value = value[len(m[0]):]; m[1] {
		case "u":
			urgency = 3
			if n, err := strconv.Atoi(m[2]); err == nil && 0 <= n && n <= 7 {
				urgency = uint8(n)
			}
		case "i":
			incremental = m[2] == "" || m[2] == "?1"
		}
	}
	return urgency, incremental
}

func TestPrioritiesAreWhatTheGrammarSays(t *testing.T) {
	pieces := strings.Split("u|i|u=|i=|u=1|i=?1|=|,|, |;|; | |\t|?|1|0|7|8|-|.|\"|\\|(|)|( |:|a|*|A|\x7f|\xff|_|/", "|")
	r := rand.New(rand.NewPCG(1, 2))
	dictionaries := 0
	for range 200_000 {
		var value string
		for range r.IntN(9) {
			value += pieces[r.IntN(len(pieces))]
		}
		urgency, incremental := ParsePriority([]byte(value))
		u, i := slowPriority(value)
		require.Equal(t, []any{u, i}, []any{urgency, incremental}, "%q", value)
		if members.MatchString(value) {
			dictionaries++
		}
	}
	require.Greater(t, dictionaries, 2000)
}
