package zone_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/daimon-go/daimon/examples/dns/zone"
)

func example(t testing.TB) *zone.Zone {
	f, err := os.Open("../example.zone")
	require.NoError(t, err)
	defer f.Close()
	z, err := zone.Read(f)
	require.NoError(t, err)
	return z
}

// ask makes a query. size is that of EDNS, 0 without it.
func ask(name string, kind dnsmessage.Type, size int) []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	if size > 0 {
		var h dnsmessage.ResourceHeader
		if err := h.SetEDNS0(size, dnsmessage.RCodeSuccess, false); err != nil {
			panic(err)
		}
		m.Additionals = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.OPTResource{}}}
	}
	p, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return p
}

// text is an answer in a line: its code, "aa" if it is authoritative, "tc" if it is cut, and the records of its sections.
func text(t *testing.T, answer []byte) string {
	var m dnsmessage.Message
	require.NoError(t, m.Unpack(answer))
	require.EqualValues(t, 7, m.ID)
	require.True(t, m.Response)
	words := []string{strings.TrimPrefix(m.RCode.String(), "RCode")}
	for word, set := range map[string]bool{"aa": m.Authoritative, "tc": m.Truncated} {
		if set {
			words = append(words, word)
		}
	}
	slices.Sort(words[1:])
	for _, section := range [][]dnsmessage.Resource{m.Answers, m.Authorities, m.Additionals} {
		for _, r := range section {
			name := strings.TrimSuffix(r.Header.Name.String(), ".example.com.")
			words = append(words, fmt.Sprint(name, " ", strings.TrimPrefix(r.Header.Type.String(), "Type")))
		}
		words = append(words, "|")
	}
	return strings.Join(words, " ")
}

func TestAnswers(t *testing.T) {
	z := example(t)
	for _, q := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"web.example.com.", dnsmessage.TypeA, "Success aa web A | | |"},
		{"WEB.Example.com.", dnsmessage.TypeA, "Success aa WEB.Example.com. A | | |"},
		{"web.example.com.", dnsmessage.TypeTXT, "Success aa | example.com. SOA | |"},
		{"www.example.com.", dnsmessage.TypeAAAA, "Success aa www CNAME web AAAA | | |"},
		{"www.example.com.", dnsmessage.TypeMX, "Success aa www CNAME | | |"},
		{"www.example.com.", dnsmessage.TypeCNAME, "Success aa www CNAME | | |"},
		{"example.com.", dnsmessage.TypeNS, "Success aa example.com. NS example.com. NS | | |"},
		{"_tcp.example.com.", dnsmessage.TypeA, "Success aa | example.com. SOA | |"},
		{"none.example.com.", dnsmessage.TypeA, "NameError aa | example.com. SOA | |"},
		{"host.sub.example.com.", dnsmessage.TypeA, "Success | sub NS | ns.sub A |"},
		{"sub.example.com.", dnsmessage.TypeNS, "Success | sub NS | ns.sub A |"},
		{"example.org.", dnsmessage.TypeA, "Refused | | |"},
		{"notexample.com.", dnsmessage.TypeA, "Refused | | |"},
		{".", dnsmessage.TypeNS, "Refused | | |"},
		{"many.example.com.", dnsmessage.TypeA, "Success aa tc | | |"},
	} {
		require.Equal(t, q.want, text(t, z.Answer(nil, ask(q.name, q.kind, 0), true)), "%s %v", q.name, q.kind)
	}
}

func TestTheSizeOfAnswers(t *testing.T) {
	z := example(t)
	var m dnsmessage.Message
	for size, tc := range map[int]bool{0: true, 1: true, 512: true, 4096: true} {
		require.NoError(t, m.Unpack(z.Answer(nil, ask("many.example.com.", dnsmessage.TypeA, size), true)))
		require.Equal(t, tc, m.Truncated, size)
	}
	require.NoError(t, m.Unpack(z.Answer([]byte{}, ask("many.example.com.", dnsmessage.TypeA, 512), false)))
	require.Len(t, m.Answers, 100)
	require.Len(t, m.Additionals, 1, "what it can do itself")
	require.EqualValues(t, 1232, m.Additionals[0].Header.Class)
	require.Equal(t, "ab", string(z.Answer([]byte("ab"), []byte("no query"), true)), "nothing is answered")
}

func TestQueriesThatAreWrong(t *testing.T) {
	z := example(t)
	good := ask("web.example.com.", dnsmessage.TypeA, 512)
	with := func(at int, b ...byte) []byte {
		p := slices.Clone(good)
		copy(p[at:], b)
		return p
	}
	for what, q := range map[string]struct {
		query []byte
		code  dnsmessage.RCode
	}{
		"two questions":      {with(4, 0, 2), dnsmessage.RCodeFormatError},
		"no question":        {with(4, 0, 0), dnsmessage.RCodeFormatError},
		"an update":          {with(2, 5<<3), dnsmessage.RCodeNotImplemented},
		"another class":      {with(len(good)-11-2, 0, 3), dnsmessage.RCodeRefused},
		"a part of a record": {good[:len(good)-1], dnsmessage.RCodeFormatError},
		"two OPT records":    {append(with(10, 0, 2), good[len(good)-11:]...), dnsmessage.RCodeFormatError},
		"a name in itself":   {with(12, 0xc0, 12), dnsmessage.RCodeFormatError},
	} {
		h := z.Answer(nil, q.query, true)
		require.GreaterOrEqual(t, len(h), 12, what)
		require.Equal(t, q.code, dnsmessage.RCode(h[3]&0xf), what)
	}
	answer := z.Answer(nil, with(len(good)-5, 1), true)
	require.Equal(t, []byte{1, 0, 0, 0, 0, 0}, answer[len(answer)-6:], "BADVERS")
	require.Empty(t, z.Answer(nil, with(2, 0x80), true), "an answer")
}

func TestZonesThatAreWrong(t *testing.T) {
	const soa = "@ IN SOA ns root 1 2 3 4 5\n"
	for file, want := range map[string]string{
		"":                                     "a zone without an SOA",
		"www A 192.0.2.1":                      `line 1: "www", and no $ORIGIN before it`,
		"$ORIGIN a.\nwww A 192.0.2.1":          "line 2: a zone has one SOA, which comes first",
		"$ORIGIN a.\n" + soa + "x A ::1":       "line 3: ::1 is of the other family",
		"$ORIGIN a.\n" + soa + "x MX 70000 b":  "line 3: value out of range",
		"$ORIGIN a.\n" + soa + "x A 1.2.3.4 5": `line 3: "5" is too much`,
		"$ORIGIN a.\n" + soa + "x MX 1":        "line 3: something is missing at the end",
		"$ORIGIN a.\n" + soa + "x HINFO a b":   `line 3: records of type "HINFO" are not known`,
		"$ORIGIN a.\n" + soa + "b. A 1.2.3.4":  "line 3: b. is not in the zone a.",
		"$ORIGIN a.\n" + soa + `x TXT "a`:      "line 3: a quote without its end",
	} {
		_, err := zone.Read(strings.NewReader(file))
		require.EqualError(t, err, want, file)
	}
}

// Whatever comes, an answer has the ID of its query, and is not longer than the client allows.
func FuzzAnswer(f *testing.F) {
	z := example(f)
	f.Add(ask("www.example.com.", dnsmessage.TypeA, 4096))
	f.Add(ask("x.sub.example.com.", dnsmessage.TypeA, 0))
	f.Fuzz(func(t *testing.T, query []byte) {
		for _, udp := range []bool{true, false} {
			answer := z.Answer(nil, query, udp)
			if len(answer) == 0 {
				continue
			}
			require.Equal(t, binary.BigEndian.Uint16(query), binary.BigEndian.Uint16(answer))
			require.False(t, udp && len(answer) > 1232)
			require.NotZero(t, answer[2]&0x80)
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	z, query, out := example(b), ask("web.example.com.", dnsmessage.TypeA, 1232), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		out = z.Answer(out[:0], query, true)
	}
}
