package files

import (
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lines are the fields of a request, "Name: value" each.
type lines []string

func (l lines) Values(name string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, line := range l {
			if value, is := strings.CutPrefix(line, name+": "); is && !yield([]byte(value)) {
				return
			}
		}
	}
}

// the file of these tests was modified half a second after this one.
const (
	earlier = "Sat, 01 Aug 2026 11:59:59 GMT"
	then    = "Sat, 01 Aug 2026 12:00:00 GMT"
	later   = "Sat, 01 Aug 2026 12:00:01 GMT"
	tag     = `"a,b"`
)

var known = version{tag, time.Date(2026, 8, 1, 12, 0, 0, 500_000_000, time.UTC)}

// outcome is what follows from the fields: a status, and of 200 whether Range counts.
func outcome(v version, f lines) string {
	s := fmt.Sprint(v.status(f))
	if s == "200" && v.rangeField(append(f, "Range: bytes=0-")) != nil {
		s = "206"
	}
	return s
}

type given struct {
	name string
	want string
	lines
}

func evaluate(t *testing.T, v version, table []given) {
	t.Helper()
	for _, g := range table {
		require.Equal(t, g.want, outcome(v, g.lines), "%s: %q", g.name, g.lines)
	}
}

// What TestAgreesWithServeContent does not draw.
func TestConditions(t *testing.T) {
	evaluate(t, known, []given{
		{"RFC 9110 13.1.1: nothing", "412", lines{"If-Match: "}},
		{"13.1.4: two of them", "206", lines{"If-Unmodified-Since: " + earlier, "If-Unmodified-Since: " + earlier}},
		{"13.1.2: on another line", "304", lines{`If-None-Match: "x"`, "If-None-Match: " + tag}},
		{"13.1.2: nothing", "206", lines{"If-None-Match: "}},
		{"13.1.2: w has a case", "206", lines{"If-None-Match: w/" + tag}},
		{"13.1.3: two of them", "206", lines{"If-Modified-Since: " + later, "If-Modified-Since: " + later}},
		{"13.1.5: it is no list", "200", lines{"If-Range: " + tag + ", " + tag}},
		{"13.1.5: a later date: it has to be exact", "200", lines{"If-Range: " + later}},
		{"13.1.5: two of them", "200", lines{"If-Range: " + tag, "If-Range: " + tag}},
		{"14.2: two of Range", "200", lines{"Range: bytes=0-0"}},
	})
	require.Nil(t, known.rangeField(lines{"If-Range: " + tag}), "no Range at all")
}

func TestConditionsOnAFileOfUnknownVersion(t *testing.T) {
	evaluate(t, version{}, []given{
		{"none", "206", nil},
		{"it is none of them", "412", lines{"If-Match: " + tag}},
		{"not even of nothing", "412", lines{`If-Match: ""`}},
		{"but there is one", "206", lines{"If-Match: *"}},
		{"it is none of them", "206", lines{"If-None-Match: " + tag}},
		{"but there is one", "304", lines{"If-None-Match: *"}},
		{"since when?", "206", lines{"If-Modified-Since: " + later}},
		{"since when?", "206", lines{"If-Unmodified-Since: " + earlier}},
		{"unknown time", "200", lines{"If-Range: " + tag}},
		{"unknown time", "200", lines{"If-Range: " + then}},
		{"nor the first day", "200", lines{"If-Range: Mon, 01 Jan 0001 00:00:00 GMT"}},
	})
}

// lists of tags, and whether tag is found in them; the fuzzer begins with them.
var lists = map[string]bool{
	tag:                 true,
	"\t" + tag + " ,":   true,
	`,, ,"x", ,` + tag:  true,
	`"",` + tag:         true,
	"\"\xff\\\"," + tag: true, // obs-text is allowed, and a backslash is nothing special
	"\"W/\"," + tag:     true,
	"":                  false,
	`"a,b`:              false,
	`"a, b"`:            false,
	`"x" ` + tag:        false,
	tag + "x":           false,
	"\"x\ty\"," + tag:   false,
	`W/,` + tag:         false,
	"W/":                false,
}

// RFC 9110 8.8.3, 5.6.1.
func TestListsOfTags(t *testing.T) {
	for list, found := range lists {
		require.Equal(t, found, among([]byte(list), known.strongly), "%q", list)
	}
}

var (
	tagText = `(?:W/)?"[\x21\x23-\x7E\x80-\xFF]*"`
	oneTag  = regexp.MustCompile(tagText)
	tags    = regexp.MustCompile(`^[ \t,]*(?:` + tagText + `[ \t]*(?:,[ \t,]*|$))*$`)
)

// latin makes a character of each byte, for regular expressions, which cannot match bytes.
func latin(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(rune(text[i]))
	}
	return b.String()
}

// FuzzTags: in a valid list the model finds the same tags; in another one no tag is found that is not there.
func FuzzTags(f *testing.F) {
	for list := range lists {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		got := among([]byte(list), known.weakly)
		if !tags.MatchString(latin(list)) {
			require.True(t, !got || strings.Contains(list, tag), "%q", list)
			return
		}
		want := false
		for _, one := range oneTag.FindAllString(latin(list), -1) {
			want = want || strings.TrimPrefix(one, "W/") == tag
		}
		require.Equal(t, want, got, "%q", list)
	})
}
