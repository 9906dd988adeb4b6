package files

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
