package accesslog

import (
	"encoding/json"
	"flag"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/stretchr/testify/require"
)

func FuzzValues(f *testing.F) {
	for _, seed := range []string{"", "a", "\"\\\n\x00\x7f\xff", "é😀\u2028\xf0\x9f", strings.Repeat("😀", most/4) + "a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, b := range appendQuoted(nil, []byte(value)) {
			require.True(t, ' ' <= b && b <= '~' && b != '"')
		}
		text, got := appendString(nil, []byte(value)), ""
		require.NoError(t, json.Unmarshal(text, &got))
		if len(value) > most {
			value = value[:most] + "..."
		}
		want := ""
		for _, r := range value { // each byte that is not UTF-8 is one of these
			want += string(r)
		}
		require.Equal(t, want, got)
		for _, b := range text {
			require.True(t, ' ' <= b && b <= '~')
		}
	})
}

func TestAddresses(t *testing.T) {
	for _, row := range []struct {
		addr        net.Addr
		host, whole string
	}{
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, "192.0.2.1", "192.0.2.1:80"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 80}, "2001:db8::1", "[2001:db8::1]:80"},
		{&net.UnixAddr{Name: "\n", Net: "unix"}, "unix:", "unix:"},
		{nil, "-", "-"},
	} {
		require.Equal(t, row.host, string(appendAddr(nil, row.addr, false)))
		require.Equal(t, row.whole, string(appendAddr(nil, row.addr, true)))
	}
}

func TestFormatIsAFlag(t *testing.T) {
	var l Log
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	_ = l.Flags(flags)
	require.NoError(t, flags.Parse([]string{"-access-log-format", "json"}))
	require.Equal(t, JSON, l.Format)
	require.ErrorContains(t, flags.Parse([]string{"-access-log-format", "xml"}), `"xml" is not combined, common or json`)
}

// Without a log a server does not ask the kernel for the address of each client.
func TestWithoutTheFlagThereIsNoLog(t *testing.T) {
	for _, arguments := range [][]string{nil, {"-access-log", "x"}} {
		l, fs := &Log{}, flag.NewFlagSet("", flag.ContinueOnError)
		check, early := l.Flags(fs), l.OnResponse()
		require.NoError(t, fs.Parse(arguments))
		require.NoError(t, check())
		require.Equal(t, arguments != nil, l.OnResponse() != nil)
		if arguments == nil {
			require.NoError(t, l.Setup(act.New(act.Config{})))
			require.Nil(t, l.writer)
			early(nil, nil) // does nothing
		}
	}
}
