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

// noDates are texts that are not dates, and why.
var noDates = map[string]string{
	"":                                        "nothing",
	"0":                                       "what some clients say for never",
	"Sun, 06 Nov 1994 08:49:37 UTC":           "GMT is part of the format",
	"Sun, 06 Nov 1994 08:49:37":               "no zone",
	"Mon, 06 Nov 1994 08:49:37 GMT":           "it was a Sunday",
	"sun, 06 nov 1994 08:49:37 gmt":           "dates have case",
	"Sun, 6 Nov 1994 08:49:37 GMT":            "a digit too few",
	"Sun, 06 Nov 1994 08:49:37.5 GMT":         "a fraction",
	"Sun, 31 Feb 1994 08:49:37 GMT":           "no such day",
	"Sun, 06 Nov 1994 08:49:60 GMT":           "a leap second is no time of Go",
	"Sun, 06 Nov 1994  08:49:37 GMT":          "a space too many",
	"Sunday, 06-Nov-1994 08:49:37 GMT":        "a year of four digits",
	"Saturday, 06-Nov-94 08:49:37 GMT":        "it was a Sunday",
	"Sun Nov 6 08:49:37 1994":                 "asctime fills up with spaces",
	"Sun, 06 Nov 1994 08:49:37 GMT, and more": "too long",
}

// RFC 9110 5.6.7.
func TestDates(t *testing.T) {
	want := time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)
	for _, text := range []string{
		"Sun, 06 Nov 1994 08:49:37 GMT",
		"Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994",
	} {
		got, valid := date([]byte(text))
		require.True(t, valid, text)
		require.Equal(t, want, got.UTC(), text)
	}
	for text, why := range noDates {
		_, valid := date([]byte(text))
		require.False(t, valid, "%q: %s", text, why)
	}
}

func TestTagsDifferBetweenVersions(t *testing.T) {
	modified := time.Date(2026, 8, 1, 12, 0, 0, 123456789, time.UTC)
	v := versionOf(modified, 4096, 0)
	require.Equal(t, `"18c7aca493694d15-1000"`, v.tag)
	require.Equal(t, v, versionOf(modified.In(time.FixedZone("there", 3600)), 4096, 0), "whatever the zone")
	require.NotEqual(t, v.tag, versionOf(modified.Add(1), 4096, 0).tag)
	require.NotEqual(t, v.tag, versionOf(modified, 4097, 0).tag)
	require.Equal(t, len(v.tag), tagLen([]byte(v.tag)))
}

// A time that all files have does not change with the content: a client that relies on it keeps an old file.
func TestTimesThatAreIgnored(t *testing.T) {
	for what, modified := range map[string]time.Time{
		"embedded":     {},
		"the epoch":    time.Unix(0, 0),
		"Nix":          time.Unix(1, 0),
		"zip":          time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC),
		"before it":    time.Date(1901, 1, 1, 0, 0, 0, 0, time.UTC),
		"far too late": time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		require.Equal(t, version{}, versionOf(modified, 1, 1), what)
	}
}

// RFC 9110 8.8.2.1.
func TestLastModifiedIsNeverLaterThanNow(t *testing.T) {
	modified := time.Date(2026, 8, 1, 12, 0, 0, 999, time.UTC)
	v := versionOf(modified, 1, 1)
	require.Equal(t, "Sat, 01 Aug 2026 12:00:00 GMT", v.lastModified(modified.Add(time.Hour)))
	require.Equal(t, "Sat, 01 Aug 2026 11:59:59 GMT", v.lastModified(modified.Add(-time.Second).Local()))
}
