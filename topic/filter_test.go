package topic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/topic"
)

// TestMatch has the rules of MQTT 3.1.1, sections 4.7.1 to 4.7.3.
func TestMatch(t *testing.T) {
	for _, c := range []struct{ filter, yes, no string }{
		{"sport/tennis/player1/#", "sport/tennis/player1 sport/tennis/player1/a/b", "sport/tennis sport/tennis/player10"},
		{"sport/#", "sport sport/ sport/tennis", "sports /sport"},
		{"#", "sport / sport/$a a/b/c", "$SYS $SYS/a $"},
		{"sport/tennis/+", "sport/tennis/player1 sport/tennis/", "sport/tennis sport/tennis/player1/ranking"},
		{"sport/+", "sport/ sport/$a", "sport"},
		{"+/+", "/finance sport/tennis /", "finance a/b/c $SYS/a"},
		{"/+", "/finance / /$a", "finance a/b //"},
		{"+", "finance", "/finance / $SYS"},
		{"+/tennis/#", "sport/tennis sport/tennis/a /tennis", "tennis $SYS/tennis"},
		{"sport/+/player1", "sport/tennis/player1 sport//player1", "sport/player1 sport/a/b/player1"},
		{"$SYS/#", "$SYS $SYS/monitor/Clients", "SYS $SYSTEM"},
		{"$SYS/monitor/+", "$SYS/monitor/Clients", "$SYS/monitor"},
		{"+/monitor/Clients", "a/monitor/Clients", "$SYS/monitor/Clients"},
		{"ACCOUNTS", "ACCOUNTS", "Accounts ACCOUNTS/ /ACCOUNTS"},
		{"Accounts payable", "", "Accounts"},
		{"a//b", "a//b", "a/b a///b"},
	} {
		require.True(t, topic.ValidFilter(c.filter), c.filter)
		for _, name := range strings.Fields(c.yes) {
			require.True(t, topic.ValidName(name) && topic.Match(c.filter, name), "%s %s", c.filter, name)
		}
		for _, name := range strings.Fields(c.no) {
			require.True(t, topic.ValidName(name) && !topic.Match(c.filter, name), "%s %s", c.filter, name)
		}
	}
	long, deep := strings.Repeat("a", topic.MaxName+1), strings.Repeat("/", 128)
	for _, filter := range []string{"", "sport/tennis#", "sport/tennis/#/ranking", "sport+", "+sport", "##", "#/", "a/#b", "a/+b/c",
		"a\x00", "\xff", "\xed\xa0\x80", long, deep} {
		require.False(t, topic.ValidFilter(filter), "%.20q", filter)
	}
	for _, name := range []string{"", "+", "#", "a/+", "a/#", "a+", "a\x00b", "\xff", long, deep} {
		require.False(t, topic.ValidName(name), "%.20q", name)
	}
	require.True(t, topic.ValidName(long[1:]) && topic.ValidFilter(deep[1:]))
}
